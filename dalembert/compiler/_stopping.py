"""When Newton's iteration stops: constants that the driver shares with the kernels for several trajectories at once.

All are squared, like all sizes and rates of increments, which saves a square root in every iteration.
"""

from dalembert.systems import System

ROUND_OFF = (0.5 * 2.220446049250313e-16) ** 2
STAGNATION = 1e-10**2
SMALL = 1e-13**2  # below this size a ratio of increments says nothing about convergence
SLOW, FAST = 0.3**2, 0.1**2
FASTEST_GUESS = 1e-5**2  # a lucky cancellation must not pass for fast convergence


def fastest(system: System) -> float:
    """The best rate of convergence to believe in.

    Multipliers may converge more slowly than the increments, which hardly show it, unless they are linear and belong to
    holonomic constraints.
    """
    as_fast = system.linear_in_multipliers and not system.n_nonholonomic
    return 1e-8**2 if as_fast else 1e-2**2
