"""What must hold: mechanical systems as mechanics writes them, with every derivative taken symbolically."""

from dalembert._calls import check_calls as _check_calls
from dalembert.systems import forces
from dalembert.systems._bound import BoundSystem
from dalembert.systems._consistent import consistent, state_at
from dalembert.systems._hamiltonian import Hamiltonian
from dalembert.systems._index_two_dae import IndexTwoDAE
from dalembert.systems._lagrangian import Lagrangian
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._odae import ODAE
from dalembert.systems._state import State
from dalembert.systems._system import System
from dalembert.systems._touching_spheres import Spheres

__all__ = [
    "ODAE",
    "BoundSystem",
    "Hamiltonian",
    "IndexTwoDAE",
    "Lagrangian",
    "MechanicalSystem",
    "Spheres",
    "State",
    "System",
    "consistent",
    "forces",
    "state_at",
]

_check_calls(globals())
