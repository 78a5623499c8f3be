"""The catalogue: systems of the literature with their constants, initial values and references."""

from dalembert.problems._problem import Problem
from dalembert.problems.pendulums import chain, double_pendulum, pendulum

__all__ = ["Problem", "chain", "double_pendulum", "pendulum"]
