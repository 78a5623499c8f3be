"""Pekarek & Murphey (2014): discrete Lagrangian mechanics for nonseparable nonsmooth systems.

D. Pekarek and T. D. Murphey, Discrete Lagrangian mechanics for nonseparable nonsmooth systems, Int. J. Numer. Meth. Engng
(2014). `diagram` checks figure 2 and `truncations` measures how well modified Hamiltonians are conserved, both without impacts;
`double_pendulum`, `energies` and `accuracy` are figures 1, 3 and 4, `properties` tables I and II, `tolerance` is section 4.1,
and `many_impacts` goes on where the paper ends.
"""

from dalembert.experiments.pekarek2014 import (
    accuracy,
    diagram,
    double_pendulum,
    energies,
    many_impacts,
    properties,
    tolerance,
    truncations,
)
from dalembert.experiments.pekarek2014._shared import PEKAREK

EXPERIMENTS = PEKAREK.of_modules(double_pendulum, diagram, truncations, tolerance, energies, accuracy, properties, many_impacts)
