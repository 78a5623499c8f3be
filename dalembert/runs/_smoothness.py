"""Is a motion smooth between the states of a run? Its states are predicted by their neighbours.

Let p_m be the polynomial of degree 6m - 1 that has the values, velocities and accelerations of the m states before and behind
a state, and r_m that state minus its value. Where the motion is analytic, r_m falls with m, as the m-th power of a number
below 1, until it is the error of a step, because accelerations are those of the exact motion; that error, with its sign,
changes little from step to step, and sixth differences of r_m take it away. Where a force has a kink, or changes within a step,
r_m does not fall, and alternates from state to state: it has the size h^3 of what steps across it err by. The less of
r_m and its differences counts.

B. Fornberg, Generation of finite difference formulas on arbitrarily spaced grids, Math. Comp. 51 (1988), 699-706, for
interpolation by neighbours; the weights below are Hermite's.
"""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np

from dalembert.compiler import Observer, flow, flow_observer
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import System
from dalembert.systems._states import States, with_multipliers

FEW, MANY = 3, 5
"""Neighbours on each side, for the two predictions that are compared."""
FALLS = 0.8
"""The second one is nearer by this factor at least, where the motion is smooth."""
SIXTH = np.array([-1.0, 6.0, -15.0, 20.0, -15.0, 6.0, -1.0]) / 20
"""What is left of a value without that which three neighbours on each side predict."""

NEEDED = MANY + len(SIXTH) // 2
"""States on each side that enter."""

WORTH = 4096
"""States of a run for whose accelerations a kernel is compiled."""


def roughness(states: States, h: float, scale: np.ndarray, kernel: Observer | None = None) -> float:
    """The largest distance from predictions that do not become better, in units of `scale`; inf where it is not known.

    `states` are those of successive steps h, whose accelerations the `kernel` of `fast` gives in less time. Distances that
    rounding of the states can make are none.
    """
    system = states.system
    if not system.state_blocks[0][1] or system.large or len(states) <= 2 * MANY:
        return np.inf
    q, (v, a) = states.packed[:, : system.state_blocks[0][1]], rates(states, kernel)
    few, many = (deviations(q, h * v, h**2 * a, m) for m in (FEW, MANY))
    taken = SIXTH if len(states) > 2 * NEEDED else np.ones(1)
    inner = slice(len(taken) // 2, len(many) - len(taken) // 2)
    many = np.minimum(np.abs(many[inner]), np.abs(filtered(many, taken)))
    summed = np.sum(np.abs(weights(MANY)[1][0])) * np.sum(np.abs(taken))
    rounding = 2 * np.finfo(float).eps * summed * np.max(np.abs(q), axis=0)
    few, many = (np.max(each / scale, axis=1) for each in (np.abs(few), np.where(many <= rounding, 0.0, many)))
    few = np.pad(few, MANY, mode="edge")
    few = running_maxima(few, 2 * MANY + len(taken))  # of all that enter the other one
    with np.errstate(invalid="ignore"):
        return float(np.nan_to_num(np.max(np.where(many < FALLS * few, 0.0, many)), nan=np.inf))


def along(states: States, rows: np.ndarray, t: np.ndarray) -> States:
    """The states of a run, one a row, that begins with the first of these; their multipliers are guesses."""
    each = (np.tile(values[:1], (len(rows), 1)) for values in (states.theta, states.multipliers))
    return States(states.system, t, rows[:, : states.system.n_state], *each)


def running_maxima(x: np.ndarray, width: int) -> np.ndarray:
    """The largest of every so many successive numbers."""
    seen = 1
    while seen < width:
        further = min(seen, width - seen)
        x, seen = np.maximum(x[:-further], x[further:]), seen + further
    return x


def fast(states: States) -> Observer | None:
    """A kernel for the accelerations along a run from its first states, if the run is so long that it is worth compiling one.

    Multipliers of redundant constraints need more: where these depend on each other, they do so in all states.
    """
    y, z = np.split(states.packed[0], [states.system.state_blocks[0][1]])
    if len(states) < WORTH or states.system.redundant_rows(float(states.t[0]), y, z, states.theta[0]):
        return None
    return flow_observer(states.system)


def rates(states: States, kernel: Observer | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Velocities and accelerations in every state of a run, (state, coordinate)."""
    system = states.system
    n, m = system.state_blocks[0][1], system.n_holonomic
    if kernel is not None:
        return mapped(kernel, states, n)
    states = with_multipliers(states)
    (y, z), (lam, psi) = np.split(states.packed, [n], axis=1), np.split(states.multipliers, [m], axis=1)
    arguments = (each.T for each in (states.t[:, None], y, z, lam, psi, states.theta))
    v, a = _flow(system).map(len(states))(*arguments)
    return np.asarray(v, dtype=float).T, np.asarray(a, dtype=float).T


def mapped(kernel: Observer, states: States, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The same by a kernel, for states with the same parameters."""
    from dalembert.engine._driver import map_kernel  # loads Numba

    memory, values = np.zeros(kernel.memory_size), np.empty((len(states), 2 * n))
    memory[: kernel.n_theta] = states.theta[0]
    inputs = np.column_stack([states.t, states.packed])
    map_kernel(kernel.code.addresses["observe_flow"], memory, inputs, kernel.n_theta, values, kernel.first_output)
    return values[:, :n], values[:, n:]


@kept
@one_at_a_time
def _flow(system: System) -> ca.Function:
    """(t, y, z, lam, psi, theta) -> y_dot, y_ddot."""
    (_, first), (_, second) = system.state_blocks
    sizes = {"t": 1, "y": first, "z": second, "lam": system.n_holonomic, "psi": system.n_nonholonomic}
    symbols = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    theta = ca.SX.sym("theta", system.parameters.size)
    return ca.Function("flow", [*symbols.values(), theta], [ca.densify(each) for each in flow(system, symbols, theta)])


@functools.cache
def weights(m: int) -> tuple[np.ndarray, np.ndarray]:
    """The neighbours -m, ..., m, and how their values, first and second derivatives enter the polynomial at 0.

    For w(x) = prod (x - x_j)^3 it is w(x) sum_j sum_{k + l < 3} f_j^(k)/k! g_j^(l)/l! (x - x_j)^(k + l - 3), where g_j is
    1/w without the factor (x - x_j)^3.

    Example:
        >>> nodes, found = weights(3)
        >>> value = found[0] @ np.cos(0.3 * nodes) - found[1] @ (0.3 * np.sin(0.3 * nodes))
        >>> bool(abs(value - found[2] @ (0.09 * np.cos(0.3 * nodes)) - 1) < 1e-14)
        True

    """
    nodes = np.array([j for j in range(-m, m + 1) if j], dtype=float)
    apart = nodes[:, None] - nodes + np.diag(np.full(2 * m, np.inf))
    g = 1 / np.prod(np.where(np.isinf(apart), 1.0, apart), axis=1) ** 3
    first = -3 * np.sum(1 / apart, axis=1)
    second = (first**2 + 3 * np.sum(1 / apart**2, axis=1)) / 2
    whole, x = np.prod(-nodes) ** 3, -nodes
    zeroth = g * (x**-3 + first * x**-2 + second / x)
    return nodes.astype(int), whole * np.array([zeroth, g * (x**-2 + first / x), g / (2 * x)])


def deviations(q: np.ndarray, hv: np.ndarray, hha: np.ndarray, m: int) -> np.ndarray:
    """States minus what m neighbours on each side predict, for all that have MANY of them, (state, coordinate)."""
    rows = slice(MANY - m, len(q) - MANY + m)
    predicted = sum(filtered(x[rows], w) for x, w in zip((q, hv, hha), taps(m), strict=True))
    return q[MANY : len(q) - MANY] - predicted


@functools.cache
def taps(m: int) -> np.ndarray:
    """The weights of `weights` in a row each, from the first neighbour to the last one, with zero for the state itself."""
    nodes, found = weights(m)
    rows = np.zeros((3, 2 * m + 1))
    rows[:, nodes + m] = found
    return rows


def filtered(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """sum_j w_j x_(k + j) for every k and every column of x."""
    return np.stack([np.correlate(np.ascontiguousarray(column), w, "valid") for column in x.T], axis=1)
