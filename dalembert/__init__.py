"""dalembert: structure-preserving simulation of constrained mechanical systems.

    import numpy as np
    import dalembert as da

    run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3))
    run.plot("double_pendulum.png")

Write a model as plain NumPy functions (`Hamiltonian`, `Lagrangian`), choose a method by its name in the literature
(`LobattoIIIAB`, `Rattle`), and `simulate`. Derivatives, Newton iterations and machine code are derived from these.
"""

import importlib as _importlib
from typing import TYPE_CHECKING
from typing import Any as _Any

from dalembert import mechanisms, problems, systems, tableaux
from dalembert.compiler import step_function
from dalembert.contact import CVA, MCVA, MCVAA, MCVAC, VCI
from dalembert.errors import DalembertError, InconsistentStart, InputError, ModelError, StepFailed, UnsupportedSystem
from dalembert.mechanisms import Mechanism, from_mjcf, from_sympy, from_urdf
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
    schemes,
)
from dalembert.modified import ModifiedHamiltonian, modified_hamiltonian
from dalembert.runs._simulate import simulate
from dalembert.runs._trajectory import Contacts, Impacts, StoredTrajectory, Trajectory
from dalembert.systems import ODAE, Hamiltonian, IndexTwoDAE, Lagrangian, State, consistent, forces
from dalembert.tableaux import Tableau

if TYPE_CHECKING:
    from dalembert import draw, experiments, plot, verify
    from dalembert.derivatives._gradient import gradient
    from dalembert.derivatives._sensitivities import Sensitivities, sensitivities
    from dalembert.derivatives._tangent_map import lyapunov
    from dalembert.runs._index_reduction import reduce_index
    from dalembert.runs._poincare import PoincareSection, poincare
    from dalembert.runs._reopen import load, resume
    from dalembert.runs._simulate_many import Ensemble, simulate_many
    from dalembert.verify._discrete_mechanics import DiscreteMechanics, momentum_map

from dalembert._version import __version__ as __version__

# Loaded on first use, so that importing dalembert stays fast: {public name: the module that defines it}.
_ROOMS = ("draw", "experiments", "plot", "verify")
_LATER = {
    "Sensitivities": "derivatives._sensitivities",
    "gradient": "derivatives._gradient",
    "lyapunov": "derivatives._tangent_map",
    "sensitivities": "derivatives._sensitivities",
    "PoincareSection": "runs._poincare",
    "poincare": "runs._poincare",
    "DiscreteMechanics": "verify._discrete_mechanics",
    "momentum_map": "verify._discrete_mechanics",
    "Ensemble": "runs._simulate_many",
    "simulate_many": "runs._simulate_many",
    "reduce_index": "runs._index_reduction",
    "load": "runs._reopen",
    "resume": "runs._reopen",
}


def __getattr__(name: str) -> _Any:
    if name in _ROOMS:
        return _importlib.import_module(f"dalembert.{name}")
    if name in _LATER:
        value = globals()[name] = getattr(_importlib.import_module(f"dalembert.{_LATER[name]}"), name)
        return value
    raise AttributeError(f"module 'dalembert' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


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
    "Mechanism",
    "ModelError",
    "ModifiedHamiltonian",
    "NonholonomicEuler",
    "OneStepMethod",
    "PartitionedRungeKutta",
    "PoincareSection",
    "RadauIIA",
    "Rattle",
    "RungeKutta",
    "Sensitivities",
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
    "from_mjcf",
    "from_sympy",
    "from_urdf",
    "gradient",
    "load",
    "lyapunov",
    "mechanisms",
    "modified_hamiltonian",
    "momentum_map",
    "plot",
    "poincare",
    "problems",
    "reduce_index",
    "resume",
    "schemes",
    "sensitivities",
    "simulate",
    "simulate_many",
    "step_function",
    "systems",
    "tableaux",
    "verify",
]
