"""dalembert: structure-preserving simulation of constrained mechanical systems.

    import numpy as np
    import dalembert as da

    run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3))
    run.plot("double_pendulum.png")

Write a model as plain NumPy functions (`Hamiltonian`, `Lagrangian`), choose a method by its name in the literature
(`LobattoIIIAB`, `Rattle`), and `simulate`. Derivatives, Newton iterations and machine code are derived from these.
"""

import importlib
from typing import Any

from dalembert import draw, forces, problems, schemes, systems, tableaux, verify
from dalembert.compiler import step_function
from dalembert.discrete import DiscreteMechanics, momentum_map
from dalembert.ensemble import Ensemble, simulate_many
from dalembert.errors import DalembertError, InconsistentStart, InputError, ModelError, StepFailed, UnsupportedSystem
from dalembert.impacts import CVA, MCVA, MCVAA, MCVAC, VCI
from dalembert.index_reduction import reduce_index
from dalembert.methods import (
    EMPRK,
    SPARK,
    SRK,
    ConstrainedEuler,
    CortesMartinez,
    DiscreteLagrangeDAlembert,
    Gauss,
    GaussLobattoEMPRK,
    GaussLobattoSPARK,
    HalfExplicitEuler,
    LobattoGalerkin,
    LobattoIIIAB,
    LobattoIIIC,
    LobattoSPARK,
    McLachlanPerlmutter,
    NonholonomicEuler,
    OneStepMethod,
    PartitionedRungeKutta,
    RadauIIA,
    Rattle,
    RungeKutta,
    Shake,
    SymplecticEuler,
    UnderlyingODE,
    Variational,
    adjoint,
    compose,
)
from dalembert.modified import ModifiedHamiltonian, modified_hamiltonian
from dalembert.poincare import PoincareSection, poincare
from dalembert.simulation import simulate
from dalembert.stored import StoredTrajectory, load, resume
from dalembert.systems import ODAE, Hamiltonian, IndexTwoDAE, Lagrangian, State, consistent
from dalembert.tableaux import Tableau
from dalembert.trajectory import Contacts, Impacts, Trajectory

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that importing dalembert stays fast.
    if name in ("experiments", "plot"):
        return importlib.import_module(f"dalembert.{name}")
    raise AttributeError(f"module 'dalembert' has no attribute {name!r}")


__all__ = [
    "CVA",
    "EMPRK",
    "MCVA",
    "MCVAA",
    "MCVAC",
    "ODAE",
    "SPARK",
    "SRK",
    "VCI",
    "ConstrainedEuler",
    "Contacts",
    "CortesMartinez",
    "DalembertError",
    "DiscreteLagrangeDAlembert",
    "DiscreteMechanics",
    "Ensemble",
    "Gauss",
    "GaussLobattoEMPRK",
    "GaussLobattoSPARK",
    "HalfExplicitEuler",
    "Hamiltonian",
    "Impacts",
    "InconsistentStart",
    "IndexTwoDAE",
    "InputError",
    "Lagrangian",
    "LobattoGalerkin",
    "LobattoIIIAB",
    "LobattoIIIC",
    "LobattoSPARK",
    "McLachlanPerlmutter",
    "ModelError",
    "ModifiedHamiltonian",
    "NonholonomicEuler",
    "OneStepMethod",
    "PartitionedRungeKutta",
    "PoincareSection",
    "RadauIIA",
    "Rattle",
    "RungeKutta",
    "Shake",
    "State",
    "StepFailed",
    "StoredTrajectory",
    "SymplecticEuler",
    "Tableau",
    "Trajectory",
    "UnderlyingODE",
    "UnsupportedSystem",
    "Variational",
    "adjoint",
    "compose",
    "consistent",
    "draw",
    "experiments",
    "forces",
    "load",
    "modified_hamiltonian",
    "momentum_map",
    "plot",
    "poincare",
    "problems",
    "reduce_index",
    "resume",
    "schemes",
    "simulate",
    "simulate_many",
    "step_function",
    "systems",
    "tableaux",
    "verify",
]
