"""The methods that serve a system where none is named."""

from __future__ import annotations

from dalembert.contact import CVA
from dalembert.errors import UnsupportedSystem
from dalembert.methods import SRK, GaussLobattoSPARK, LobattoIIIAB, OneStepMethod, SymplecticEuler, compose
from dalembert.systems import IndexTwoDAE, MechanicalSystem, Spheres, System
from dalembert.time_stepping import MoreauJean, NonsmoothRattle


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
        known = system.function_names
        by_events = "friction_law" in known or not ("friction" in known or system.n_nonholonomic)
        return CVA() if by_events else NonsmoothRattle()
    if system.n_nonholonomic:
        return GaussLobattoSPARK(stages=2)
    return LobattoIIIAB() if isinstance(system, MechanicalSystem) else compose(SymplecticEuler(), 2)


def family(system: System) -> tuple[OneStepMethod, ...]:
    """Methods of one kind that serve a system, by increasing order.

    Example:
        >>> import dalembert as da
        >>> [method.stages for method in family(da.problems.pendulum().system)]
        [2, 3, 4, 5, 6, 7, 8]

    """
    if isinstance(system, IndexTwoDAE):
        return tuple(SRK("gauss", stages) for stages in range(1, 7))
    spark: tuple[OneStepMethod, ...] = tuple(GaussLobattoSPARK(stages) for stages in range(1, 7))
    smooth = spark if system.n_nonholonomic else tuple(LobattoIIIAB(stages) for stages in range(2, 9))
    if isinstance(system, Spheres):
        return (default_method(system),)
    if system.n_unilateral:
        return tuple(each for each in map(CVA, smooth) if serves(each, system)) or (default_method(system),)
    if isinstance(system, MechanicalSystem):
        return smooth
    return spark if serves(spark[0], system) else tuple(compose(SymplecticEuler(), order) for order in (2, 4, 6, 8))


def serves(method: OneStepMethod, system: System) -> bool:
    """Whether a method takes a system."""
    try:
        method.check(system)
    except UnsupportedSystem:
        return False
    return True
