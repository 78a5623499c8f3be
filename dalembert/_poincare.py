"""`poincare`: the states in which trajectories cross a surface, to round-off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import casadi as ca
import numpy as np

from dalembert.compiler import build_watch, state_function
from dalembert.ensemble import initial_states, outcomes, run_ensemble
from dalembert.errors import InputError, UnsupportedSystem
from dalembert.impacts import CollisionIntegrator
from dalembert.methods import OneStepMethod
from dalembert.problems._problem import Problem
from dalembert.simulation import _count, _positive, _steps, check_method
from dalembert.systems import MechanicalSystem, State, System
from dalembert.systems._states import States, with_multipliers

MOST_ITERATIONS = 60


@dataclass(frozen=True, eq=False)
class PoincareSection:
    """Crossings of a surface by one trajectory or many: arrays with one row a crossing, in the order of members and times.

    `member` says to which trajectory a crossing belongs; `crossings[i]` are those of member i alone. `status` and `message`
    tell how each trajectory ended, as in an `Ensemble`.
    """

    t: np.ndarray
    states: np.ndarray
    """All variables, (crossing, n)."""
    member: np.ndarray
    blocks: tuple[tuple[str, int], ...]
    status: tuple[str, ...]
    message: tuple[str, ...]
    system: System = field(repr=False)

    def __repr__(self) -> str:
        return f"<PoincareSection of {len(self.t)} crossings of {len(self.status)} trajectories>"

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, member: int) -> PoincareSection:
        if not -len(self) <= member < len(self):
            raise IndexError(f"member {member} of {len(self)}")
        member %= len(self)
        mine = self.member == member
        chosen = {"t": self.t[mine], "states": self.states[mine], "member": np.zeros(np.sum(mine), dtype=int)}
        return replace(self, **chosen, status=(self.status[member],), message=(self.message[member],))

    def _block(self, name: str) -> np.ndarray:
        first = 0
        for block, size in self.blocks:
            if block == name:
                return self.states[:, first : first + size]
            first += size
        raise AttributeError(
            f"these crossings have no {name}: their variables are {' and '.join(b for b, _ in self.blocks if b)}"
        )

    @property
    def q(self) -> np.ndarray:
        """Configurations of a mechanical system, (crossing, n)."""
        return self._block("q")

    @property
    def p(self) -> np.ndarray:
        """Momenta of a mechanical system, (crossing, n)."""
        return self._block("p")

    @property
    def y(self) -> np.ndarray:
        """The variables y of an ODAE or of an index-2 DAE."""
        return self._block("y")

    @property
    def z(self) -> np.ndarray:
        """The variables z of an ODAE."""
        return self._block("z")


def poincare(
    system: System | Problem,
    method: OneStepMethod,
    *,
    section: Callable,
    direction: Literal[1, -1] = 1,
    q0: Any = None,
    v0: Any = None,
    p0: Any = None,
    y0: Any = None,
    z0: Any = None,
    lam0: Any = None,
    psi0: Any = None,
    start: State | Sequence[State] | None = None,
    h: float | None = None,
    steps: int | None = None,
    t1: float | None = None,
    t0: float | None = None,
    params: Mapping[str, Any] | None = None,
    workers: int | None = None,
    simd: bool | None = None,
    progress: bool | None = None,
) -> PoincareSection:
    """Where trajectories cross the surface section(t, q, p, ...) = 0, upwards (direction=+1) or downwards (-1).

    `section` is a NumPy function of the state, written and compiled like the model: it names what it needs of t, q, p, v (y,
    z) and the parameters. A step across which its sign changes is made again with the length tau, from the state before it,
    and tau is solved for to round-off: a crossing is a state of the method itself, on the constraints, not an interpolation.
    Crossings that undo each other within one step are not seen. A start on the surface is not a crossing, and neither is an
    impact in which the momentum jumps from one side to the other. The other arguments
    are those of `da.simulate_many`: initial values and parameters may have a leading axis, one row a trajectory.

    Example:
        >>> import numpy as np, dalembert as da
        >>> oscillator = da.Hamiltonian(lambda q, p: (p @ p + q @ q) / 2, dim=1)
        >>> crossings = da.poincare(oscillator, da.Gauss(stages=5), section=lambda q: q[0], direction=-1,
        ...                         q0=[1.0], p0=[0.0], h=0.1, steps=300)
        >>> np.allclose(crossings.t, np.pi / 2 + 2 * np.pi * np.arange(5), rtol=0, atol=1e-13)
        True

    """
    if isinstance(system, Problem):
        h = system.h if h is None else h
        steps = system.steps if steps is None and t1 is None else steps
    initial = {"q0": q0, "v0": v0, "p0": p0, "y0": y0, "z0": z0, "lam0": lam0, "psi0": psi0}
    model, states = initial_states(system, start=start, t0=t0, params=params, **initial)
    check_method(method, model, "poincare")
    if method.starting is not None:
        raise UnsupportedSystem(f"a state of {method} belongs to its step size, so that no shorter step can end on the section")
    if direction not in (1, -1):
        raise InputError(f"direction is +1 (upwards) or -1 (downwards); got {direction!r}")
    h = _positive("h", h)
    steps = _steps(steps, t1, float(states.t[0]), h)
    workers = None if workers is None else _count("workers", workers, least=1)
    surface = state_function("section", section, model)
    watch = build_watch(model, {}, surface, int(direction))
    run = run_ensemble(model, method, states, h, steps, max(steps, 1), watch, workers, simd, progress)
    member = np.repeat(np.arange(len(states)), [len(events) for events in run.events])
    events = np.array([row for rows in run.events for row in rows]).reshape(len(member), model.n_state + 3)
    status, message = outcomes(run, h)
    if not len(member):
        return PoincareSection(events[:, 0], events[:, 1:-2], member, model.state_blocks, status, message, model)
    before = States(model, events[:, 0], events[:, 1:-2], states.theta[member], states.multipliers[member])
    before, values = with_multipliers(before), events[:, -2:]
    if isinstance(method, CollisionIntegrator) and isinstance(model, MechanicalSystem):
        tau, found = _locate_among_impacts(
            model, method, before, h, surface, values, workers, _meets_walls(run, member, before.t)
        )
    else:
        tau, found = _locate(model, method, before, h, surface, values, workers)
    real = np.isfinite(tau)
    crossings = (before.t + tau)[real], found[real], member[real]
    return PoincareSection(*crossings, model.state_blocks, status, message, model)


def _meets_walls(run: Any, member: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Which of the steps that begin at times t have an impact or a sustained contact in them."""
    meets = np.zeros(len(t), dtype=bool)
    for k in np.unique(member):
        mine, impacts, contacts = member == k, run.impacts[k], run.contacts[k]
        first, last = t[mine] - 1e-6 * run.h[k], t[mine] + (1 + 1e-6) * run.h[k]
        found = np.searchsorted(impacts.t, first) < np.searchsorted(impacts.t, last)
        for begin, end in zip(contacts.begin, contacts.end, strict=True):
            found |= (begin <= last) & (end >= first)
        meets[mine] = found
    return meets


def _locate_among_impacts(
    system: MechanicalSystem,
    method: CollisionIntegrator,
    before: States,
    h: float,
    surface: ca.Function,
    values: np.ndarray,
    workers: int | None,
    meets_walls: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """`_locate`: steps without impacts are those of the base method; tau is nan where an impact jumped across the surface."""
    tau, found = np.full(len(before), np.nan), before.packed.copy()
    smooth = replace(before, system=system.smooth)
    for rows, model, chosen, states in (
        (~meets_walls, system.smooth, method.full, smooth),
        (meets_walls, system, method, before),
    ):
        if np.any(rows):
            some = states.take(np.flatnonzero(rows))
            tau[rows], found[rows] = _locate(model, chosen, some, h, surface, values[rows], workers, model is system)
    return tau, found


def _locate(
    system: System,
    method: OneStepMethod,
    before: States,
    h: float,
    surface: ca.Function,
    values: np.ndarray,
    workers: int | None,
    kinks: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """The lengths tau of the steps from the states `before` that end on the surface, and these ends.

    A secant iteration inside of the bracket [0, h] for all crossings at once, until the values of the section function, in the
    beginning `values` at its ends, do not become smaller any more. In steps with impacts it has `kinks`, which every third
    iteration, a bisection, leaves behind, and may jump: then tau is nan.
    """
    count = len(before)
    low, high, change = np.zeros(count), np.full(count, h), np.abs(values[:, 1] - values[:, 0])
    at_low, at_high = values.T.copy()
    tau, found, least = np.full(count, h), before.packed.copy(), np.full(count, np.inf)
    guess, last, at_last = high - at_high * (high - low) / (at_high - at_low), low.copy(), at_low.copy()
    open_ = np.arange(count)
    stalled = np.zeros(count, dtype=int)
    for iteration in range(MOST_ITERATIONS):
        if not len(open_):
            break
        here = before.take(open_)
        run = run_ensemble(system, method, here, guess[open_], 1, 1, workers=workers, progress=False, typical_h=h)
        ends = run.last[:, : system.n_state]
        y, z = np.split(ends, [system.state_blocks[0][1]], axis=1)
        value = np.asarray(surface.map(len(here))((here.t + guess[open_])[None], y.T, z.T, here.theta.T), dtype=float).ravel()
        value[run.steps_done < 1] = np.nan
        better = np.abs(value) < least[open_]
        stalled[open_] = np.where(better, 0, stalled[open_] + 1)
        chosen = open_[better]
        tau[chosen], found[chosen], least[chosen] = guess[chosen], ends[better], np.abs(value[better])
        same_side = np.sign(value) == np.sign(at_low[open_])
        low[open_[same_side]], at_low[open_[same_side]] = guess[open_[same_side]], value[same_side]
        other = ~same_side & np.isfinite(value)
        high[open_[other]], at_high[open_[other]] = guess[open_[other]], value[other]
        with np.errstate(all="ignore"):
            secant = guess[open_] - value * (guess[open_] - last[open_]) / (value - at_last[open_])
        last[open_], at_last[open_] = guess[open_], value
        inside = (secant > low[open_]) & (secant < high[open_]) & (not kinks or iteration % 3 < 2)
        guess[open_] = np.where(inside, secant, (low[open_] + high[open_]) / 2)
        settled = (stalled[open_] >= 2) & ((not kinks) | (least[open_] <= 1e-9 * change[open_]))
        done = (least[open_] == 0) | settled | (high[open_] - low[open_] <= np.finfo(float).eps * h)
        open_ = open_[~done]
    if kinks:
        tau[(np.abs(at_high - at_low) > 1e3 * change * (high - low) / h) & (least > 1e-9 * change)] = np.nan
    return tau, found
