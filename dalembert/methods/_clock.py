"""What a step of varying size carries beside the state: the time, and the rate 1/h at which steps are made."""

from __future__ import annotations

from dataclasses import dataclass, field

import casadi as ca

NEVER = 1e300
"""A time at which no run ends."""


@dataclass(frozen=True, eq=False)
class Clock:
    """How a step sets its own time and size, and what it leaves to the next one."""

    values: ca.SX
    """Symbols of t and 1/h where the step begins, and of what else a method carries behind them."""
    begin: ca.SX
    """The step's t0 and h in terms of these, of the initial state and of parameters.

    h is nan where there is no step size, and 0 where the run ends.
    """
    delta: ca.SX
    """Symbols of the increment of the state."""
    change: ca.SX
    """The increments of the values, in terms of all symbols of the step and `delta`."""
    end: ca.SX = field(default_factory=lambda: ca.SX.sym("end"))
    """A symbol for the time at which the run ends."""
    taken: ca.SX = field(default_factory=lambda: ca.SX(1))
    """1 if the step is taken, 0 if it is rejected and made again from the same state."""
    following: ca.SX | None = None
    """The values behind t after a step, taken or not, where steps may be rejected; they have no increments then."""
