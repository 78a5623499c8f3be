"""The public names of dalembert: what `da.simulate`, `da.Hamiltonian` and so on are.

`dalembert/__init__.py` loads this module when the first of them is asked for, so that `import dalembert` costs nothing. A new
public name is imported here, or named in `LATER` if few users need it, and added to `__all__`.
"""

from typing import TYPE_CHECKING

from dalembert import mechanisms, problems, systems, tableaux
from dalembert._calls import check_calls
from dalembert.compiler import step_function
from dalembert.contact import CVA, MCVA, MCVAA, MCVAC, VCI
from dalembert.errors import DalembertError, InconsistentStart, InputError, ModelError, StepFailed, UnsupportedSystem
from dalembert.mechanisms import Mechanism, from_mjcf, from_sympy, from_urdf
from dalembert.methods import (
    EMPRK,
    SPARK,
    SRK,
    ConstrainedEuler,
    ControlledSteps,
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
    ReversibleSteps,
    RungeKutta,
    Shake,
    SymplecticEuler,
    SymplecticSteps,
    UnderlyingODE,
    Variational,
    adjoint,
    compose,
    schemes,
)
from dalembert.modified import ModifiedHamiltonian, modified_hamiltonian
from dalembert.runs._accurate import suggest
from dalembert.runs._choice import Suggestion
from dalembert.runs._controls import PiecewiseLinear
from dalembert.runs._simulate import simulate
from dalembert.runs._trajectory import Contacts, Impacts, StoredTrajectory, Trajectory
from dalembert.systems import ODAE, Hamiltonian, IndexTwoDAE, Lagrangian, Spheres, State, consistent, forces
from dalembert.tableaux import Tableau
from dalembert.time_stepping import MoreauJean, NonsmoothRattle

if TYPE_CHECKING:  # loaded on first use, see LATER
    from dalembert import draw, experiments, plot, verify
    from dalembert.derivatives._bridges import to_jax, to_torch
    from dalembert.derivatives._fit import fit
    from dalembert.derivatives._fitted import Fit
    from dalembert.derivatives._gradient import gradient
    from dalembert.derivatives._gradient_many import gradient_many
    from dalembert.derivatives._hessian import hessian_product
    from dalembert.derivatives._optimal_control import OptimalControl
    from dalembert.derivatives._sensitivities import Sensitivities, sensitivities
    from dalembert.derivatives._tangent_map import lyapunov
    from dalembert.derivatives._transcription import OptimalRun
    from dalembert.explorer import explore
    from dalembert.runs._index_reduction import reduce_index
    from dalembert.runs._poincare import PoincareSection, poincare
    from dalembert.runs._reopen import load, resume
    from dalembert.runs._simulate_many import Ensemble, simulate_many
    from dalembert.verify._discrete_mechanics import DiscreteMechanics, momentum_map

LATER = {
    "explore": "explorer",
    "Fit": "derivatives._fitted",
    "OptimalControl": "derivatives._optimal_control",
    "OptimalRun": "derivatives._optimal_control",
    "Sensitivities": "derivatives._sensitivities",
    "fit": "derivatives._fit",
    "gradient": "derivatives._gradient",
    "gradient_many": "derivatives._gradient_many",
    "hessian_product": "derivatives._hessian",
    "lyapunov": "derivatives._tangent_map",
    "sensitivities": "derivatives._sensitivities",
    "to_jax": "derivatives._bridges",
    "to_torch": "derivatives._bridges",
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
"""Loaded on first use: {public name: the module that defines it}."""


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
    "ControlledSteps",
    "CortesMartinez",
    "DalembertError",
    "DiscreteLagrangeDAlembert",
    "DiscreteMechanics",
    "Ensemble",
    "Fit",
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
    "MoreauJean",
    "NonholonomicEuler",
    "NonsmoothRattle",
    "OneStepMethod",
    "OptimalControl",
    "OptimalRun",
    "PartitionedRungeKutta",
    "PiecewiseLinear",
    "PoincareSection",
    "RadauIIA",
    "Rattle",
    "ReversibleSteps",
    "RungeKutta",
    "Sensitivities",
    "Shake",
    "Spheres",
    "State",
    "StepFailed",
    "StoredTrajectory",
    "Suggestion",
    "SymplecticEuler",
    "SymplecticSteps",
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
    "explore",
    "fit",
    "forces",
    "from_mjcf",
    "from_sympy",
    "from_urdf",
    "gradient",
    "gradient_many",
    "hessian_product",
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
    "suggest",
    "systems",
    "tableaux",
    "to_jax",
    "to_torch",
    "verify",
]

check_calls(globals())
