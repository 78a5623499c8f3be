"""Jay (1996): symplectic partitioned Runge-Kutta methods for constrained Hamiltonian systems.

L. Jay, SIAM J. Numer. Anal. 33 (1996) 368-387. Example 1 is a charged particle on a sphere, (5.1)-(5.4), Example 2 the
double pendulum, (5.5)-(5.8); both take 5000 steps of the 3-stage Lobatto IIIA-IIIB method with h = 0.12 and compare it with
Gauss and Radau IIA methods. `structure`, `stiff_spring` and `heavy_top` go beyond the figures.
"""

from dalembert.experiments.jay1996 import double_pendulum, gauss, heavy_top, orders, sphere, stiff_spring, structure
from dalembert.experiments.jay1996._shared import JAY

EXPERIMENTS = JAY.of_modules(sphere, double_pendulum, gauss, orders, structure, stiff_spring, heavy_top)
