"""`poincare`: the states in which trajectories cross a surface, to round-off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack

import casadi as ca
import numpy as np

from dalembert._progress import preparing
from dalembert.compiler import build_watch
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, UnsupportedSystem
from dalembert.mechanisms import Mechanism
from dalembert.methods import OneStepMethod
from dalembert.methods._base import DerivedMethod
from dalembert.runs._arguments import Arguments, GivenRun, Policy
from dalembert.runs._crossings import Search, Surface
from dalembert.runs._drivers import driver_of, run_ensemble
from dalembert.runs._ensemble import Reduction, member_number
from dalembert.runs._from_tables import outcomes
from dalembert.runs._lengths import check_memory
from dalembert.runs._members import layout_of, table_of
from dalembert.runs._problem import Problem
from dalembert.runs._variables import Variables
from dalembert.systems import System
from dalembert.systems._model import one_line
from dalembert.systems._state_function import state_function
from dalembert.systems._states import States, redundant_rows, with_multipliers


@dataclass(frozen=True, eq=False)
class PoincareSection(Variables):
    """Crossings of a surface by one trajectory or many: arrays with one row a crossing, in the order of members and times.

    `q`, `p`, `v`, `energy`, `lam` and so on are named as in a `Trajectory`. `member` says to which trajectory a crossing
    belongs; `crossings[i]` are those of member i alone. `status` and `message` tell how each trajectory ended, as in an
    `Ensemble`, and `message` also if there are crossings that were not found.
    """

    t: np.ndarray
    states: np.ndarray
    """All variables, (crossing, n)."""
    member: np.ndarray
    blocks: tuple[tuple[str, int], ...]
    status: tuple[str, ...]
    message: tuple[str, ...]
    system: System = field(repr=False)
    _theta: np.ndarray = field(repr=False)
    """Parameters, and multipliers next to the crossing, (crossing, ...)."""
    _guesses: np.ndarray = field(repr=False)

    def __repr__(self) -> str:
        return f"<PoincareSection of {len(self.t)} crossings of {len(self.status)} trajectories>"

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, member: int) -> PoincareSection:
        member = member_number(member, len(self))
        mine = self.member == member
        rows: dict[str, Any] = {name: getattr(self, name)[mine] for name in ("t", "states", "_theta", "_guesses")}
        own: dict[str, Any] = {"status": (self.status[member],), "message": (self.message[member],)}
        return replace(self, **own, **rows, member=np.zeros(np.sum(mine), dtype=int))

    def _observe(self, name: str) -> np.ndarray:
        states = States(self.system, self.t, self.states, self._theta, self._guesses)
        if name in ("lam", "psi"):
            lam, psi = np.split(with_multipliers(states).multipliers, [self.system.n_holonomic], axis=1)
            return lam if name == "lam" else psi
        if name == "redundant":
            return redundant_rows(states)[:, None]
        return states.evaluate("H" if name == "energy" else name)


def poincare(
    system: System | Problem | Mechanism,
    method: OneStepMethod,
    *,
    section: Callable,
    direction: Literal[1, -1] = 1,
    workers: int | None = None,
    simd: bool | None = None,
    **given: Unpack[GivenRun],
) -> PoincareSection:
    """Where trajectories cross the surface section(t, q, p, ...) = 0, upwards (direction=+1) or downwards (-1).

    `section` is a NumPy function of the state, written and compiled like the model: it names what it needs of t, q, p, v (y,
    z) and the parameters. A step across which its sign changes is made again with the length tau, from the state before it,
    and tau is solved for to round-off: a crossing is a state of the method itself, on the constraints, not an interpolation.
    Crossings that undo each other within one step are not seen. A start on the surface is not a crossing, and neither is a
    jump from one side to the other: of the momentum in an impact, or of a section function that is not continuous, as an angle
    or at a pole. Where step sizes vary, partial steps are those of the method that `da.ReversibleSteps` or `da.ControlledSteps`
    was given, and the states of all steps are in memory. Where partial steps cannot be solved, or the section function is not a
    number, `message` says so. The other arguments are those of `da.simulate_many`: initial values and parameters may have a
    leading axis, one row a trajectory.

    Example:
        >>> import numpy as np, dalembert as da
        >>> oscillator = da.Hamiltonian(lambda q, p: (p @ p + q @ q) / 2, dim=1)
        >>> crossings = da.poincare(oscillator, da.Gauss(stages=5), section=lambda q: q[0], direction=-1,
        ...                         q0=[1.0], p0=[0.0], h=0.1, steps=300)
        >>> np.allclose(crossings.t, np.pi / 2 + 2 * np.pi * np.arange(5), rtol=0, atol=1e-13)
        True

    """
    progress = given.pop("progress", None)
    with preparing(progress):
        spec = Arguments.of("poincare", system, method, given).many()
    if method.starting is not None:
        raise UnsupportedSystem(f"a state of {method} belongs to its step size, so that no shorter step can end on the section")
    if spec.h < 0:
        raise InputError("a section is crossed forwards in time: take h > 0")
    if isinstance(direction, bool) or not isinstance(direction, (int, np.integer)) or direction not in (1, -1):
        raise InputError(f"direction is +1 (upwards) or -1 (downwards); got {one_line(direction)}")
    policy = Policy(progress=progress, workers=workers, simd=simd)
    with preparing(progress):
        return _section(spec, policy, state_function("section", section, spec.system), int(direction))


def _section(spec: RunSpec, policy: Policy, function: ca.Function, direction: int) -> PoincareSection:
    """The crossings of the runs that a spec describes."""
    model, states, method = spec.system, spec.start, spec.method
    assert isinstance(states, States)
    quantities = {} if method.varies_steps else {"section": function}
    spec = _storing(spec)
    watch = build_watch(model, quantities, function, direction) if quantities else None
    run = run_ensemble(spec, progress=policy.progress, watch=watch, workers=policy.workers, simd=policy.simd)
    layout = layout_of(spec, replace(policy, quantities=quantities))
    table = table_of(run, layout)
    if method.varies_steps:
        member, events, undefined = _among_states(run, states, function, direction)
    else:
        member = np.repeat(np.arange(len(states)), [len(found) for found in run.events])
        events = np.array([[*row, spec.h] for rows in run.events for row in rows]).reshape(len(member), model.n_state + 4)
        undefined = ~np.isfinite(Reduction(*table.columns["reduced_section"].T).mean)
    t, guesses = events[:, 0], states.multipliers[member]
    if not model.linear_in_multipliers:
        number = np.rint((t - states.t[member]) / spec.h).astype(int)
        stages = run.rows[member, number, model.n_state :]
        guesses = np.where(number[:, None] > 0, stages, guesses)
    before = with_multipliers(States(model, t, events[:, 1:-3], states.theta[member], guesses))
    tau, ends, why = _located(spec, before, Surface.of(function), events[:, -3:], policy.workers, run, member)
    status, message = outcomes(layout, states.t, run.steps_done, table.failures)
    real = np.isfinite(tau)
    return PoincareSection(
        t=(t + tau)[real],
        states=ends[real],
        member=member[real],
        blocks=model.state_blocks,
        status=status,
        message=_with_missing(message, member, t, why, undefined),
        system=model,
        _theta=before.theta[real],
        _guesses=before.multipliers[real],
    )


def _storing(spec: RunSpec) -> RunSpec:
    """The run with those states stored that are needed: all where steps vary, or where multipliers of stages tell a branch."""
    model, states = spec.system, spec.start
    if model.linear_in_multipliers and not spec.method.varies_steps:
        return replace(spec, save_every=max(spec.steps, 1))
    if spec.method.varies_steps and not model.linear_in_multipliers:
        raise UnsupportedSystem("multipliers enter nonlinearly, so that sections need steps of constant size here")
    assert isinstance(states, States)
    advice = "look for the crossings of fewer trajectories at a time, or in shorter runs"
    numbers = len(states) * (spec.steps + 1) * (model.n_state + model.n_multipliers + len(spec.method.clock_names))
    check_memory(8 * numbers, "all states, among which crossings are found,", advice)
    return spec


def _among_states(run: Any, states: States, function: ca.Function, direction: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps of varying size across the surface: members, (t, state, both values, step size), and where values are undefined."""
    (_, dim_y), (_, dim_z) = states.system.state_blocks
    n, members, events, undefined = dim_y + dim_z, [], [], np.zeros(len(states), dtype=bool)
    for member, done in enumerate(run.steps_done):
        y, z, t = np.split(run.rows[member, : done + 1, : n + 1], [dim_y, n], axis=1)
        theta = np.repeat(states.theta[member][:, None], len(t), axis=1)
        value = np.asarray(function.map(len(t))(t.T, y.T, z.T, theta), dtype=float).T
        undefined[member] = not np.all(np.isfinite(value))
        steps = np.flatnonzero((direction * value[:-1] < 0) & (direction * value[1:] >= 0))
        members.append(np.full(len(steps), member))
        events.append(np.hstack([t, y, z, value])[steps])
        events[-1] = np.hstack([events[-1], value[steps + 1], t[steps + 1] - t[steps]])
    return np.concatenate(members), np.concatenate(events), undefined


def _with_missing(
    message: tuple[str, ...], member: np.ndarray, t: np.ndarray, why: np.ndarray, undefined: np.ndarray
) -> tuple[str, ...]:
    """The messages, with a sentence about crossings of each trajectory that are not there."""
    sentences = [[text] if text else [] for text in message]
    for k, mine in enumerate(sentences):
        missing = np.flatnonzero((member == k) & (why != ""))
        if len(missing):
            first = missing[0]
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            mine.append(f"no crossing was found in the step from t = {t[first]:.6g}{more}, because {why[first]}")
        if undefined[k]:
            mine.append("the section function was not a finite number at some states, next to which crossings are not seen")
    return tuple("; ".join(mine) for mine in sentences)


def _located(
    spec: RunSpec,
    before: States,
    surface: Surface,
    values: np.ndarray,
    workers: int | None,
    run: Any,
    member: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How long the steps from the states `before` to the surface are, where they end, and why not where they do not.

    `values` are those of the section function at the ends of the steps, and their sizes. Of a collision integrator, steps
    without impacts are those of the base method; of steps that vary in size, all are.
    """
    tau, ends, why = np.full(len(before), np.nan), before.packed.copy(), np.full(len(before), "", dtype=object)
    kinks, method, chosen, smooth = np.zeros(len(before), dtype=bool), spec.method, spec.method, before
    driver = driver_of(method)
    if method.varies_steps:
        assert isinstance(method, DerivedMethod)
        chosen = method.method
    if driver.has_impacts:
        model, chosen = driver.between_impacts(spec.system, method)
        kinks, smooth = _meets_walls(run, member, before.t), replace(before, system=model)
    h = float(np.median(values[:, -1])) if len(values) else spec.h
    for rows, stepper, states in ((~kinks, chosen, smooth), (kinks, method, before)):
        if np.any(rows):
            start = states.take(np.flatnonzero(rows))
            step = replace(spec, system=states.system, method=stepper, start=start, h=h, steps=1, save_every=1)
            search = Search(step, values[rows, -1], surface, workers)
            search.run(values[rows, :2], kinks=stepper is not chosen)
            tau[rows], ends[rows], why[rows] = search.tau, search.ends, search.why
    return tau, ends, why


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
