"""Pekarek & Murphey (2014): discrete Lagrangian mechanics for nonseparable systems, without impacts.

D. Pekarek and T. D. Murphey, Discrete Lagrangian mechanics for nonseparable nonsmooth systems, Int. J. Numer. Meth. Engng
(2014). `diagram` checks figure 2, `truncations` measures how well modified Hamiltonians are conserved, `energies` draws the
energy functions of figure 3 on the smooth motion before the first impact.
"""

from dalembert.experiments.pekarek2014 import diagram, energies, truncations

EXPERIMENTS = (*diagram.EXPERIMENTS, *truncations.EXPERIMENTS, *energies.EXPERIMENTS)
DOCUMENT = diagram.DOCUMENT

__all__ = ["DOCUMENT", "EXPERIMENTS", "diagram", "energies", "truncations"]
