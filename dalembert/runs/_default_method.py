"""The method that serves a system where none is named, as on the command line."""

from __future__ import annotations

from dalembert.contact import CVA, MoreauJean, NonsmoothRattle
from dalembert.methods import SRK, GaussLobattoSPARK, LobattoIIIAB, OneStepMethod, SymplecticEuler, compose
from dalembert.systems import IndexTwoDAE, MechanicalSystem, Spheres, System


def default_method(system: System) -> OneStepMethod:
    """A method of the kind that the constraints of a system ask for.

    Example:
        >>> import dalembert as da
        >>> default_method(da.problems.pendulum().system), default_method(da.problems.bouncing_ball().system)
        (LobattoIIIAB(stages=3), CVA(base='SVC', collision_tolerance=None))

    """
    if isinstance(system, IndexTwoDAE):
        return SRK("gauss")
    if isinstance(system, Spheres):
        return MoreauJean()
    if system.n_unilateral:
        return NonsmoothRattle() if "friction" in system.function_names or system.n_nonholonomic else CVA()
    if system.n_nonholonomic:
        return GaussLobattoSPARK(stages=2)
    return LobattoIIIAB() if isinstance(system, MechanicalSystem) else compose(SymplecticEuler(), 2)
