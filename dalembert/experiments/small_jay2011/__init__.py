"""Small and Jay (2011): discontinuous collocation methods for DAEs in mechanics.

S. Small, L. O. Jay, slides of 11 July 2011: the (s, s)-Gauss-Lobatto SPARK and EMPRK methods for systems with holonomic and
nonholonomic constraints. `pendulum` and `skate` are their numerical examples, `orders` and `existence` their theorems.
"""

from dalembert.experiments.small_jay2011 import existence, orders, pendulum, skate
from dalembert.experiments.small_jay2011._shared import SMALL_JAY

EXPERIMENTS = SMALL_JAY.of_modules(pendulum, skate, orders, existence)
