"""The methods, as published: one file a family, each a function from a symbolic system to the equations of a step."""

from dalembert.methods._base import OneStepMethod
from dalembert.methods._step import Step, StepEquations
from dalembert.methods.composition import adjoint, compose
from dalembert.methods.euler import ConstrainedEuler, SymplecticEuler
from dalembert.methods.families import Gauss, LobattoIIIC, RadauIIA
from dalembert.methods.half_explicit import HalfExplicitEuler, Shake
from dalembert.methods.lobatto import LobattoIIIAB, Rattle
from dalembert.methods.runge_kutta import PartitionedRungeKutta, RungeKutta
from dalembert.methods.spark import EMPRK, SPARK, GaussLobattoEMPRK, GaussLobattoSPARK
from dalembert.methods.underlying_ode import UnderlyingODE
from dalembert.methods.variational import LobattoGalerkin, Variational

__all__ = [
    "EMPRK",
    "SPARK",
    "ConstrainedEuler",
    "Gauss",
    "GaussLobattoEMPRK",
    "GaussLobattoSPARK",
    "HalfExplicitEuler",
    "LobattoGalerkin",
    "LobattoIIIAB",
    "LobattoIIIC",
    "OneStepMethod",
    "PartitionedRungeKutta",
    "RadauIIA",
    "Rattle",
    "RungeKutta",
    "Shake",
    "Step",
    "StepEquations",
    "SymplecticEuler",
    "UnderlyingODE",
    "Variational",
    "adjoint",
    "compose",
]
