"""A kernel that looks at every state of a run: it reduces quantities to a few numbers and notices crossings of a section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from dalembert.compiler._ir import Kernel, compile_kernels
from dalembert.compiler._jit import Code
from dalembert.errors import InputError
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import System
from dalembert.systems._state_function import state_function

REDUCED = ("first", "last", "min", "max", "mean", "comoment")
"""What is kept of a quantity; its least-squares slope follows from sum (k - mean of k)(x_k - mean of x), the comoment."""


@dataclass(frozen=True, eq=False)
class Watch:
    """The kernel, where things lie in its memory, and the memory as it is before the first state."""

    kernel: Kernel
    quantities: tuple[str, ...]
    start: np.ndarray
    n_theta: int
    state: int
    n_state: int
    crossed: int
    event: int
    event_size: int
    reduced: int

    @property
    def count(self) -> int:
        """Where the number of states that were seen lies."""
        return self.state + self.n_state

    @property
    def plan(self) -> np.ndarray:
        """What the driver must know: where the state goes, its size, where the flag and the event are, the event's size."""
        return np.array([self.state, self.n_state, self.crossed, self.event, self.event_size], dtype=np.int64)

    @kept
    @one_at_a_time
    def code(self, lanes: int) -> tuple[Code, int]:
        """Machine code for so many trajectories side by side, and the size of its memory for each of them."""
        code, used = compile_kernels([self.kernel], len(self.start), lanes)
        return code, len(self.start) + used


def reductions(reduce: Sequence[str] | Mapping[str, Any], system: System) -> tuple[dict[str, ca.Function], tuple[str, ...]]:
    """The quantities that `reduce=` names, as functions (t, y, z, theta), and the names under which impacts are counted."""
    if isinstance(reduce, str):
        reduce = [reduce]
    listed = isinstance(reduce, (Sequence, set, frozenset)) and all(isinstance(name, str) for name in reduce)
    if not isinstance(reduce, Mapping) and not listed:
        raise InputError(f'reduce is a list of names, as in reduce=["energy"], or maps names to functions; got {reduce!r}')
    wanted = dict(reduce) if isinstance(reduce, Mapping) else {name: name for name in reduce}
    counted = tuple(name for name, what in wanted.items() if isinstance(what, str) and what == "impacts")
    if counted and not system.n_unilateral:
        raise InputError('reduce names "impacts", which a system without unilateral= does not have: leave them out')
    wanted = {name: what for name, what in wanted.items() if name not in counted}
    quantities: dict[str, ca.Function] = {}
    for name, what in wanted.items():
        if callable(what):
            quantities[name] = state_function(f"reduce[{name!r}]", what, system)
        elif what == "energy" and "H" in system.function_names:
            quantities[name] = system.function("H")
        elif what == "residuals":
            quantities |= _residuals(system)
        else:
            raise InputError(
                'reduce names "energy", where the system has one, "residuals" or "impacts", or maps names to functions of the '
                f'state, as in reduce={{"height": lambda q: q[1]}}; got {what!r}'
            )
    return quantities, counted


def _residuals(system: System) -> dict[str, ca.Function]:
    """The largest residual of each kind of constraint, under the names of `run.residuals`."""
    t, theta = ca.SX.sym("t"), system.parameters.theta
    y, z = (ca.SX.sym("x", size) for _, size in system.state_blocks)
    index_two = system.state_blocks[1][0] == "y"
    found = {}
    for name, n in (("g", system.n_holonomic), ("g_dot", system.n_holonomic), ("k", system.n_nonholonomic)):
        if n:
            residual = system.function(name)(t, y, *(() if name == "g" else (z,)), theta)
            largest = ca.fabs(residual[0])
            for k in range(1, n):
                largest = _most(largest, ca.fabs(residual[k]))
            found["g" if index_two else name] = ca.Function("residual", [t, y, z, theta], [largest])
    return found


def _least(x: ca.SX, y: ca.SX) -> ca.SX:
    """The smaller of two numbers; nan if one of them is, which `fmin` would hide."""
    return ca.if_else(x <= y, x, ca.if_else(y < x, y, np.nan))


def _most(x: ca.SX, y: ca.SX) -> ca.SX:
    return -_least(-x, -y)


@one_at_a_time
def build_watch(
    system: System, quantities: dict[str, ca.Function], section: ca.Function | None = None, direction: int = 1
) -> Watch:
    """The kernel for these quantities and this section.

    Its memory begins with t, theta and the state, which the driver writes. An event is the time and the state before the
    section was crossed, and the values of the section function there and after the step.
    """
    n_theta, n = system.parameters.size, system.n_state
    slots, start = 0, []

    def room(size: int, value: float = 0.0) -> tuple[ca.SX, int]:
        nonlocal slots
        slots += size
        start.append(np.full(size, value))
        return ca.SX.sym("slot", size), slots - size

    (t, at_t), (theta, at_theta), (state, at_state), (count, at_count) = room(1), room(n_theta), room(n), room(1)
    y, z = ca.vertsplit(state, [0, system.state_blocks[0][1], n])
    inputs = [(t, at_t), (theta, at_theta), (state, at_state), (count, at_count)]
    outputs = [(count + 1, at_count)]
    at_reduced = slots
    for quantity in quantities.values():
        value = quantity(t, y, z, theta)
        old, slot = room(len(REDUCED))
        start[-1][REDUCED.index("min")], start[-1][REDUCED.index("max")] = np.inf, -np.inf
        first, _, least, most, mean, comoment = ca.vertsplit(old)
        new_mean = mean + (value - mean) / (count + 1)
        # the mean of k before this state, the number `count`, is (count - 1)/2
        new_comoment = comoment + (count + 1) / 2 * (value - new_mean)
        reduced = [ca.if_else(count, first, value), value, _least(least, value), _most(most, value), new_mean, new_comoment]
        inputs.append((old, slot))
        outputs.append((ca.vertcat(*reduced), slot))
    crossed, event, event_size = 0, 0, 0
    if section is not None:
        value = section(t, y, z, theta)
        (last, at_last), (_, crossed), (_, event) = room(n + 2, np.nan), room(1), room(n + 3)
        event_size, before = n + 3, last[-1]
        up, down = ca.logic_and(before < 0, value >= 0), ca.logic_and(before > 0, value <= 0)
        flag = up if direction > 0 else down
        inputs.append((last, at_last))
        outputs += [(ca.vertcat(t, state, value), at_last), (flag, crossed), (ca.vertcat(last, value), event)]
    memory = np.concatenate(start)
    return Watch(
        Kernel("watch", inputs, outputs),
        tuple(quantities),
        memory,
        n_theta,
        at_state,
        n,
        crossed,
        event,
        event_size,
        at_reduced,
    )
