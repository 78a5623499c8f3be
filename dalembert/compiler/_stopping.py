"""When Newton's iteration stops: one rule, for numbers in the compiled drivers and for expressions in kernels of lanes.

All sizes and rates of increments are squared, which saves a square root in every iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dalembert.systems import MechanicalSystem, System

ROUND_OFF = (0.5 * 2.220446049250313e-16) ** 2
STAGNATION = 1e-10**2
SMALL = 1e-13**2  # below this size a ratio of increments says nothing about convergence
SLOW, FAST = 0.3**2, 0.1**2
STALL = 0.5**2  # increments that shrink less than this have arrived at round-off
FASTEST_GUESS = 1e-5**2  # a lucky cancellation must not pass for fast convergence

FAR = 0.3**2  # a guess that is off by more than this part of the unknowns may lead to another solution
CLOSE = 1e-4**2  # increments below this may shrink slowly: no other solution is that near

STALE, SURE = 1e-300, 1e-290  # sizes of an orientation: where redundant rows should be combined anew; it is larger elsewhere

MAX_ITERATIONS = 40
MAX_REFRESHES = 8


def fastest(system: System) -> float:
    """The best rate of convergence to believe in.

    Multipliers may converge more slowly than the increments, which hardly show it, unless they are linear and belong to
    holonomic constraints.
    """
    as_fast = system.linear_in_multipliers and not system.n_nonholonomic
    return 1e-8**2 if as_fast else 1e-2**2


def doubt_rule(both: Callable, either: Callable) -> Callable:
    """What makes a solution doubtful, which may be another one than that which begins at h = 0 (engine/_follow.py).

    By Newton and Kantorovich there is only one solution near a guess from which increments shrink fast at once; that guesses
    for smaller steps are better still makes it the one that begins at h = 0. How fast they shrink does not depend on what
    increments are compared with, such as the speed of a carriage on which everything happens.
    """

    def doubts(size: Any, previous: Any, slow: Any, iteration: Any) -> tuple:
        """(far, slowly): the guess was off and the second increment not small, or an increment shrank slowly.

        Old factors may be slow without a reason to doubt: a step in doubt is solved with new ones before it is followed. An
        increment larger than the unknowns, as from rest, was not measured (`previous` is infinite): the second must be smaller
        still.
        """
        large = either(size > FAST * previous, both(previous == float("inf"), size > FAST**2))
        far = both(both(iteration == 2, previous > CLOSE), large)
        slowly = both(slow, size > CLOSE)
        return far, slowly

    return doubts


def watchful(system: System) -> bool:
    """Whether steps may be in doubt, and are followed then: in mechanics with holonomic constraints."""
    return isinstance(system, MechanicalSystem) and system.n_holonomic > 0


def stopping_rule(both: Callable, either: Callable, choose: Callable, larger: Callable) -> Callable:
    """The rule, in terms of the operations of numbers or of symbolic expressions: and, or, if-else, maximum."""

    def judge(
        size: Any, previous: Any, rate: Any, noise: Any, tolerance: Any, fastest: Any, stall: Any, iteration: Any
    ) -> tuple:
        """(converged, rate, slow, diverges) after an increment of this size; slow iterations need new factors.

        `previous` is the increment before, infinite in the first iteration, for which the rate of the last step stands in;
        `noise` is the size that rounding errors give to increments.
        """
        ratio = size / previous
        telling = both(ratio > 0.0, either(iteration == 2, size > larger(SMALL, noise)))
        rate = choose(telling, larger(larger(ratio, fastest), 1e-4 * rate), rate)  # one increment may be small by chance
        # Increments stop shrinking at round-off; slow convergence also looks like that, so it must have been fast before.
        # Early on, an increment that is small by chance makes the next one look like stagnation.
        fast_before = both(both(size <= STAGNATION, rate <= FAST), iteration > 3)
        stalled = both(ratio >= stall, either(size <= noise, fast_before))
        converged = either(either(size * rate <= ROUND_OFF, size <= tolerance), stalled)
        slow = ratio > SLOW
        # Increments that are larger than the unknowns, and grow, lead anywhere, maybe to another solution.
        grows = both(size > previous, previous > 1.0)
        diverges = either(grows, (size < float("inf")) == 0)
        return converged, rate, slow, diverges

    return judge
