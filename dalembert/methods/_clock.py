"""What a step of varying size carries beside the state: the time, and the rate 1/h at which steps are made."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

CLOCK = 2
"""How many numbers a clock has: t and 1/h."""


@dataclass(frozen=True, eq=False)
class Clock:
    """How a step sets its own time and size, and what it leaves to the next one."""

    values: ca.SX
    """Symbols of t and 1/h where the step begins."""
    begin: ca.SX
    """The step's t0 and h in terms of these, of the initial state and of parameters; nan where there is no step size."""
    delta: ca.SX
    """Symbols of the increment of the state."""
    change: ca.SX
    """The increments of t and 1/h, in terms of all symbols of the step and `delta`."""
