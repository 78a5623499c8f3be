"""Modified Hamiltonians of symplectic methods, by the Hamilton-Jacobi recursion."""

from dalembert.modified._modified import ModifiedHamiltonian, modified_hamiltonian

__all__ = ["ModifiedHamiltonian", "modified_hamiltonian"]
