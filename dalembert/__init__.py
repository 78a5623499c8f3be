"""dalembert: structure-preserving simulation of constrained mechanical systems.

    import numpy as np
    import dalembert as da

    run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3))
    run.plot("double_pendulum.png")

Write a model as plain NumPy functions (`Hamiltonian`, `Lagrangian`), choose a method by its name in the literature
(`LobattoIIIAB`, `Rattle`), and `simulate`. Derivatives, Newton iterations and machine code are derived from these.
"""

import importlib
from typing import TYPE_CHECKING, Any

from dalembert import forces, problems, schemes, systems, tableaux
from dalembert.compiler import step_function
from dalembert.errors import DalembertError, InconsistentStart, InputError, ModelError, StepFailed, UnsupportedSystem
from dalembert.impacts import CVA, MCVA, MCVAA, MCVAC, VCI
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
from dalembert.simulation import simulate
from dalembert.systems import ODAE, Hamiltonian, IndexTwoDAE, Lagrangian, State, consistent
from dalembert.tableaux import Tableau
from dalembert.trajectory import Contacts, Impacts, Trajectory

if TYPE_CHECKING:
    from dalembert import draw, experiments, plot, verify
    from dalembert._poincare import PoincareSection, poincare
    from dalembert.discrete import DiscreteMechanics, momentum_map
    from dalembert.ensemble import Ensemble, simulate_many
    from dalembert.index_reduction import reduce_index
    from dalembert.stored import StoredTrajectory, load, resume

__version__ = "0.1.0"

# Loaded on first use, so that importing dalembert stays fast.
LATER = {
    "_poincare": ("PoincareSection", "poincare"),
    "discrete": ("DiscreteMechanics", "momentum_map"),
    "ensemble": ("Ensemble", "simulate_many"),
    "index_reduction": ("reduce_index",),
    "stored": ("StoredTrajectory", "load", "resume"),
}
PLACES = {name: module for module, names in LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in ("draw", "experiments", "plot", "verify"):
        return importlib.import_module(f"dalembert.{name}")
    if name in PLACES:
        value = globals()[name] = getattr(importlib.import_module(f"dalembert.{PLACES[name]}"), name)
        return value
    raise AttributeError(f"module 'dalembert' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


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
