"""Small and Jay (2011): discontinuous collocation methods for DAEs in mechanics.

S. Small, L. O. Jay, slides of 11 July 2011: the (s, s)-Gauss-Lobatto SPARK and EMPRK methods for systems with holonomic and
nonholonomic constraints. `pendulum` and `skate` are their numerical examples, `orders` and `existence` their theorems.
"""

from dalembert.experiments.small_jay2011 import existence, orders, pendulum, skate

EXPERIMENTS = (*pendulum.EXPERIMENTS, *skate.EXPERIMENTS, *orders.EXPERIMENTS, *existence.EXPERIMENTS)

__all__ = ["EXPERIMENTS", "existence", "orders", "pendulum", "skate"]
