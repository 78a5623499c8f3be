"""What must hold: mechanical systems as mechanics writes them, with every derivative taken symbolically."""

from dalembert.systems._bound import BoundSystem
from dalembert.systems._consistent import State, consistent, state_at
from dalembert.systems._hamiltonian import Hamiltonian
from dalembert.systems._lagrangian import Lagrangian
from dalembert.systems._mechanical import MechanicalSystem

__all__ = ["BoundSystem", "Hamiltonian", "Lagrangian", "MechanicalSystem", "State", "consistent", "state_at"]
