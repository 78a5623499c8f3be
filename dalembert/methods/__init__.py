"""The methods, as published: one file a family, each a function from a symbolic system to the equations of a step."""

from dalembert.methods import schemes
from dalembert.methods._base import OneStepMethod
from dalembert.methods._step import Step, StepEquations
from dalembert.methods.collocation import Gauss, LobattoIIIC, RadauIIA
from dalembert.methods.composition import adjoint, compose
from dalembert.methods.controlled_steps import ControlledSteps
from dalembert.methods.euler import ConstrainedEuler, SymplecticEuler
from dalembert.methods.half_explicit import HalfExplicitEuler, Shake
from dalembert.methods.index_two import SRK, LobattoSPARK
from dalembert.methods.lagrange_dalembert import DiscreteLagrangeDAlembert
from dalembert.methods.lobatto import LobattoIIIAB, Rattle
from dalembert.methods.nonholonomic_integrators import CortesMartinez, McLachlanPerlmutter, NonholonomicEuler
from dalembert.methods.runge_kutta import PartitionedRungeKutta, RungeKutta
from dalembert.methods.spark import EMPRK, SPARK, GaussLobattoEMPRK, GaussLobattoSPARK
from dalembert.methods.step_sizes import ReversibleSteps, SymplecticSteps
from dalembert.methods.underlying_ode import UnderlyingODE
from dalembert.methods.variational import LobattoGalerkin, Variational

__all__ = [
    "EMPRK",
    "SPARK",
    "SRK",
    "ConstrainedEuler",
    "ControlledSteps",
    "CortesMartinez",
    "DiscreteLagrangeDAlembert",
    "Gauss",
    "GaussLobattoEMPRK",
    "GaussLobattoSPARK",
    "HalfExplicitEuler",
    "LobattoGalerkin",
    "LobattoIIIAB",
    "LobattoIIIC",
    "LobattoSPARK",
    "McLachlanPerlmutter",
    "NonholonomicEuler",
    "OneStepMethod",
    "PartitionedRungeKutta",
    "RadauIIA",
    "Rattle",
    "ReversibleSteps",
    "RungeKutta",
    "Shake",
    "Step",
    "StepEquations",
    "SymplecticEuler",
    "SymplecticSteps",
    "UnderlyingODE",
    "Variational",
    "adjoint",
    "compose",
    "schemes",
]
