"""Jay (1996): symplectic partitioned Runge-Kutta methods for constrained Hamiltonian systems.

L. Jay, SIAM J. Numer. Anal. 33 (1996) 368-387. Example 1 is a charged particle on a sphere, (5.1)-(5.4), Example 2 the
double pendulum, (5.5)-(5.8); both take 5000 steps of the 3-stage Lobatto IIIA-IIIB method with h = 0.12 and compare it with
Gauss and Radau IIA methods. `structure` goes beyond the figures.
"""

from dalembert.experiments.jay1996 import double_pendulum, orders, sphere, structure

EXPERIMENTS = (*sphere.EXPERIMENTS, *double_pendulum.EXPERIMENTS, *orders.EXPERIMENTS, *structure.EXPERIMENTS)

__all__ = ["EXPERIMENTS", "double_pendulum", "orders", "sphere", "structure"]
