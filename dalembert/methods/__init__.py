"""The methods, as published: one file a family, each a function from a symbolic system to the equations of a step."""

from dalembert.methods._base import OneStepMethod
from dalembert.methods._step import Step, StepEquations
from dalembert.methods.lobatto import LobattoIIIAB, Rattle

__all__ = ["LobattoIIIAB", "OneStepMethod", "Rattle", "Step", "StepEquations"]
