"""Derivatives of runs with impacts and contacts: legs of smooth steps, free or in contact, and steps with events.

What happened when is read from the records of the run, its impacts and contacts; a step with events is made again from these,
piece by piece (`_impact_pieces`), and must end in the state in which it ended in the run. Events of contact are zeros of guards
(`contact._sustained`): a wall is hit, stops pressing, begins to slide or sticks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from dalembert.contact import CollisionIntegrator
from dalembert.contact._complementarity import OPEN
from dalembert.derivatives._completed import completed
from dalembert.derivatives._contact_modes import FrictionalImpact, Leg, Mode
from dalembert.derivatives._impact_pieces import SAME, Moving, Pieces, moves_alike, simultaneous, solved
from dalembert.derivatives._record import Part, Record
from dalembert.derivatives._start import Start
from dalembert.engine._run import Run
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, StepFailed
from dalembert.methods import OneStepMethod
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import MechanicalSystem, State
from dalembert.systems._consistent import unpack
from dalembert.systems._dependency import refuse_redundant

SMOOTH = 1000
"""Steps between events that are recorded at a time."""
SAME_TIME = 1e-9
"""A fraction of a step: events that are closer are simultaneous."""


class ImpactSteps:
    """A run with impacts, all of its states, and the derivatives of its steps."""

    def __init__(self, spec: RunSpec, chosen: tuple[int, ...]) -> None:
        system, method, start = spec.system, spec.method, spec.start
        assert isinstance(system, MechanicalSystem) and isinstance(method, CollisionIntegrator) and isinstance(start, State)
        if "friction_law" in system.function_names:
            raise InputError("derivatives through friction that depends on N are not computed: give a coefficient without N")
        refuse_redundant("a derivative through impacts", system, start.t, start.first, start.second, start.theta)
        self.spec, self.chosen, self.walled, self.collision, self.start = spec, chosen, system, method, start
        self.h, self.t0, self.n = spec.h, start.t, system.n_state
        self.identity = np.eye(self.n, self.n + len(chosen))
        self.seeds = np.zeros((len(start.theta), self.n + len(chosen)))
        self.seeds[list(chosen), self.n + np.arange(len(chosen))] = 1.0
        self._pieces: dict[tuple[Mode, CollisionIntegrator], Pieces] = {}

    @cached_property
    def run(self) -> Trajectory:
        """The run itself, with all states."""
        return completed(replace(self.spec, save_every=1))

    # -- what happened when ----------------------------------------------------------------------------------------

    def mode_at(self, t: float) -> Mode:
        """The walls that are in contact at a time, which is none of an event."""
        contacts = self.run.contacts
        assert contacts is not None
        here = np.flatnonzero((contacts.begin <= t) & (t < contacts.end))
        here = here[np.argsort(contacts.which[here], kind="stable")]
        slides = contacts.slides[here].tolist() if self.walled.n_tangents else ()
        return Mode(tuple(contacts.which[here].tolist()), tuple(slides))

    @cached_property
    def legs(self) -> list[Leg]:
        """All steps."""
        impacts, contacts, h, steps = self.run.impacts, self.run.contacts, self.h, self.spec.steps
        assert impacts is not None and contacts is not None
        if np.any(impacts.t <= self.t0 + SAME_TIME * h):
            raise InputError(
                "the run starts with an impact, which from other starts comes later or not at all: start off the wall"
            )
        ends = contacts.end[contacts.end < self.t0 + (steps - SAME_TIME) * h]
        times = np.unique(np.concatenate([impacts.t, contacts.begin, ends]))
        owners = np.clip(np.ceil((times - self.t0) / h - SAME_TIME).astype(int) - 1, 0, steps - 1)
        legs, k = list[Leg](), 0
        for step in [*np.unique(owners).tolist(), steps]:
            while k < step:
                last = min(step, k + SMOOTH)
                legs.append(Leg(k, last, self.mode_at(self.t0 + (k + 0.5) * h)))
                k = last
            if k < steps:
                mine = times[owners == step]
                first = (self.t0 + k * h + mine[0]) / 2
                legs.append(Leg(k, k + 1, self.mode_at(first) if mine[0] > self.t0 else Mode(), tuple(mine.tolist())))
                k += 1
        return legs

    def start_from(self, start: Start) -> Start:
        """The start; walls that are touched from the beginning are constraints of it."""
        contacts = self.run.contacts
        assert contacts is not None
        if not np.any(contacts.begin <= self.t0 + SAME_TIME * self.h):
            return start
        held = self.mode_at(self.t0 + SAME_TIME * self.h).system(self.walled)
        return replace(start, system=held, state=unpack(held, self.t0, self.start.packed, self.start.theta))

    # -- derivatives -----------------------------------------------------------------------------------------------

    def push(self, S: np.ndarray, seeds: np.ndarray, report: Callable[[int], None] = lambda _: None) -> np.ndarray:
        """The derivatives of all states, (time, variables, directions), from those of the first and of the parameters."""
        values = np.zeros((self.spec.steps + 1, *S.shape))
        values[0] = S
        for leg in self.legs:
            if leg.times:
                tangent = self._tangent(leg)
                values[leg.end] = tangent[:, : self.n] @ values[leg.begin] + tangent[:, self.n :] @ seeds
            else:
                self._record(leg).push(values[leg.begin].copy(), seeds, values[leg.begin :], 1, 1)
            report(leg.end)
        return values

    def pull(self, forces: np.ndarray, share: np.ndarray, report: Callable[[int], None]) -> np.ndarray:
        """The covector of the first state for `forces` on all states; what it gives to parameters is added to `share`."""

        def shared(_: Part) -> np.ndarray:
            return share

        covector = np.zeros(self.n)
        for leg in reversed(self.legs):
            if leg.times:
                pulled = (covector + forces[leg.end]) @ self._tangent(leg)
                covector = pulled[: self.n].copy()
                share[:] += pulled[self.n :]
            else:
                self._record(leg).pull(covector, forces[leg.begin + 1 : leg.end + 1], shared)
            report(self.spec.steps - leg.begin)
        return covector + forces[0]

    def _record(self, leg: Leg) -> Record:
        """Steps without events."""
        walled, collision = leg.mode.system(self.walled), self.collision
        method: OneStepMethod = leg.mode.base(collision.full, self.walled)
        state = unpack(walled.smooth, self.t0 + leg.begin * self.h, self.run.states[leg.begin], self.start.theta)
        run = Run(RunSpec(walled.smooth, method, state, self.h, leg.end - leg.begin))
        record = Record(run, self.chosen, leg.end - leg.begin)
        record.make(leg.end - leg.begin)
        self._check_same(run.state, leg)
        return record

    def _check_same(self, state: np.ndarray, leg: Leg) -> None:
        parts = (np.split(state - self.run.states[leg.end], 2), np.split(self.run.states, 2, axis=1))
        for off, states in zip(*parts, strict=True):
            if not np.max(np.abs(off)) <= SAME * np.max(np.abs(states)) + 1e-14:
                raise StepFailed(
                    f"the motion from t = {self.t0 + leg.begin * self.h:.6g} to {self.t0 + leg.end * self.h:.6g} could not be "
                    "made again from its impacts and contacts, so that it has no derivative here: events may be simultaneous; "
                    "reduce h, or change the start a little"
                )

    def _of(self, mode: Mode, collision: CollisionIntegrator) -> Pieces:
        key = (mode, collision)
        if key not in self._pieces:
            self._pieces[key] = Pieces(mode.system(self.walled), collision, self.h, self.start.theta, self.seeds)
        return self._pieces[key]

    def _tangent(self, leg: Leg) -> np.ndarray:
        """d (state after a step with events) / d (state before it, chosen parameters)."""
        begin, end = (self.t0 + k * self.h for k in (leg.begin, leg.end))
        tangent = np.vstack([np.zeros((1, self.identity.shape[1])), self.identity, np.zeros((1, self.identity.shape[1]))])
        point = Moving(np.concatenate([[begin], self.run.states[leg.begin], [0.0]]), tangent)
        mode, hit, let_go = leg.mode, None, False
        pieces = self._of(mode, mode.method(self.collision, self.walled) if mode.touching else self.collision)
        for t, following in zip(leg.times, [*leg.times[1:], end], strict=True):
            rows = self._rows(t)
            after = self.mode_at((t + following) / 2 if following - t > SAME_TIME * self.h else end + self.h / 2)
            if t > point.t:
                point = self._to_event(pieces, point, mode, after, t, rows, hit)
            elif t > self.t0 and (not rows or self._struck(mode, rows)):
                raise simultaneous(t)
            point, hit = self._impacts(pieces, point, mode, after, rows)
            let_go |= not rows and not set(mode.touching) <= set(after.touching)
            if after.touching or mode.touching:
                pieces, hit = self._of(after, after.method(self.collision, self.walled, let_go)), None
                point = solved(pieces.settle(point), t) if after.touching else point
            mode = after
        merged = end - point.t <= 1e-12 * self.h
        point = pieces.stop(point) if merged else solved(pieces.to_time(point, end, hit), end)
        self._check_same(point.state, leg)
        return point.tangent[1:-1]

    def _rows(self, t: float) -> list[int]:
        assert self.run.impacts is not None
        return np.flatnonzero(self.run.impacts.t == t).tolist()

    def _to_event(
        self, pieces: Pieces, point: Moving, mode: Mode, after: Mode, t: float, rows: list[int], hit: int | None
    ) -> Moving:
        """To the zero of the guard that was zero at t.

        Of several that were, each has its own time from other starts, which matters where forces jump or walls are struck.
        """
        struck, left = self._struck(mode, rows), self._left_with(rows[0]) if rows else np.inf
        if len(struck) > 1:
            raise simultaneous(t)
        found = [pieces.to_guard(point, guard, t, hit, left) for guard in struck or mode.guards_before(after, self.walled)]
        zeros = [there for there in found if there is not None and abs(there.t - t) <= SAME * self.h]
        if zeros and (not mode.stops(after) or all(moves_alike(there, zeros[0]) for there in zeros)):
            return zeros[0]
        if zeros:
            raise simultaneous(t)
        raise StepFailed(
            f"the event at t = {t:.6g} is not that of one wall alone, or it only grazes: the motion has no derivative there"
        )

    def _struck(self, mode: Mode, rows: list[int]) -> list[int]:
        """The guards of the walls that are struck and were not touched before, each once."""
        assert self.run.impacts is not None
        others = mode.others(self.walled)
        return sorted({others.index(k) for k in self.run.impacts.which[rows].tolist() if k in others})

    def _left_with(self, row: int) -> float:
        """The rate of phi after the impact before this one, if that was on the same wall; else infinite."""
        impacts = self.run.impacts
        assert impacts is not None
        wall = impacts.which[row]
        if row == 0 or impacts.which[row - 1] != wall:
            return np.inf
        before = (impacts.t[row - 1], impacts.q[row - 1], impacts.p_after[row - 1])
        return float(abs(self.walled.evaluate("phi_dot", *before, theta=self.start.theta)[wall]))

    def _impacts(self, pieces: Pieces, point: Moving, mode: Mode, after: Mode, rows: list[int]) -> tuple[Moving, int | None]:
        """The impacts of one instant, and the wall whose reset is still to come with the next partial step."""
        impacts = self.run.impacts
        assert impacts is not None
        if not rows:
            return point, None
        free = self._of(Mode(), self.collision)
        if self.walled.n_tangents:
            return self._with_friction(free, point, mode, rows), None
        which = impacts.which[rows].tolist()
        if pieces.coupled:
            if len(rows) > 1:
                raise InputError("the tangent of da.VCI is known for one impact at a time")
            return point, which[0]
        others = mode.others(self.walled)
        attempts = [(pieces, [others.index(k) for k in which if k in others])]
        if mode.touching:  # or all walls take part as in free motion
            attempts.append((free, which))
        for own, walls in attempts:
            there: Moving | None = point
            for wall in walls:
                there = None if there is None else own.reset(there, wall)
            if there is not None and self._is_after(there, rows[-1]):
                return there, None
        raise StepFailed(f"the impacts at t = {point.t:.6g} could not be made again: the motion has no derivative there")

    def _with_friction(self, free: Pieces, point: Moving, mode: Mode, rows: list[int]) -> Moving:
        """Impacts with friction at one instant: one for each time that a wall is listed again."""
        impacts = self.run.impacts
        assert impacts is not None
        groups: list[list[int]] = [[]]
        for row in rows:
            if impacts.which[row] in impacts.which[groups[-1]]:
                groups.append([])
            groups[-1].append(row)
        for group in groups:
            there = free.impact(point, self._frictional(point, mode, group))
            if there is None or not self._is_after(there, group[-1]):
                raise StepFailed(
                    f"the impact with friction at t = {point.t:.6g} could not be made again, as where restitution is lowered "
                    "because it would make energy: the motion has no derivative there"
                )
            point = there
        return point

    def _frictional(self, point: Moving, mode: Mode, rows: list[int]) -> FrictionalImpact:
        impacts, q = self.run.impacts, point.state[: self.walled.dim]
        assert impacts is not None
        mu, modes = self.walled.evaluate("friction", point.t, q, theta=self.start.theta), dict.fromkeys(mode.touching, OPEN)
        for row in rows:
            wall, N, T = int(impacts.which[row]), impacts.impulse[row], impacts.friction[row]
            at_limit = abs(T) >= (1 - 1e-12) * mu[wall] * N
            modes[wall] = (-1 if T > 0 else 1) if at_limit else 0
        walls = tuple(sorted(modes))
        return FrictionalImpact(walls, tuple(modes[k] for k in walls), mode.touching)

    def _is_after(self, point: Moving, row: int) -> bool:
        """Whether a momentum is that after an impact of the run."""
        assert self.run.impacts is not None
        before, after = self.run.impacts.p_before[row], self.run.impacts.p_after[row]
        size = np.max(np.abs(before)) + np.max(np.abs(after))
        return bool(np.max(np.abs(point.state[self.walled.dim :] - after)) <= SAME * size)


def impact_tangent(system: MechanicalSystem, method: OneStepMethod, state: State, h: float) -> tuple[State, np.ndarray]:
    """The state after one step of a collision integrator, and the derivative of the step map."""
    steps = ImpactSteps(RunSpec(system, method, state, h, 1), ())
    tangent = steps.push(np.eye(system.n_state), np.zeros((0, system.n_state)))[1]
    return unpack(system, state.t + h, steps.run.states[1], state.theta), tangent
