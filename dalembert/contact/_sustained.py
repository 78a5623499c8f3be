"""Events of contact: walls that are touched become constraints until a guard is zero, and then others, or none.

An event is a hit, a force that would pull, friction at its limit, or a slip that stops. All are zeros of guards, located like
collisions. Each of them moves time or changes what is touched, and they come to an end: a wall that is left and met again
within one step, or whose friction changes twice at one instant, stays as it is until that step ends, and more than
MOST_IN_A_STEP events in one step end the run.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dalembert._interrupts import uninterrupted
from dalembert.compiler import SingularMatrix
from dalembert.contact import CVA
from dalembert.contact._collision_times import BEHIND, MERGE, ROUND_OFF
from dalembert.contact._complementarity import OPEN, pressing_walls
from dalembert.contact._contact_base import AFTER_RELEASE, InStep, Mode
from dalembert.contact._frictional import friction_at, frictional_impact
from dalembert.contact._here import Here
from dalembert.contact._resolution import MOST_IN_A_STEP
from dalembert.contact._shared_impulses import shares
from dalembert.engine._spec import RunSpec
from dalembert.errors import DalembertError
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._consistent import unpack
from dalembert.systems._projection import project_momentum, project_position

if TYPE_CHECKING:
    from dalembert.contact._impact_run import ImpactRun

LONGEST = 4096
"""Steps in contact after which the contact forces are looked at."""


@dataclass
class Contact:
    """The motion of a run's system while it touches some walls, from a state in which impacts accumulate, or from a hit.

    The forces N grad phi, and of friction T slip_v^T, follow from the hidden constraints. Where a guard is zero, the walls
    that press, stick and slide are found anew. Other walls are met by CVA on the system in contact; an impact for which a wall
    in contact would have to pull ends the contact, and all walls that touch then take part in it as in free motion. All but
    the steps themselves is done by one thread at a time.
    """

    run: ImpactRun
    touching: tuple[int, ...]
    released: tuple[int, ...]
    """Walls that touch as well, but have just been left."""
    begin: float
    t: float
    here: np.ndarray
    """Where the motion stands: (q, p) at t."""
    settled: bool = False
    """Whether the walls in contact are known to press."""
    slides: dict[int, int] = field(default_factory=dict)
    """With friction: how the walls in contact slide, 1 or -1, or 0 if they stick."""
    struck: dict[int, float] = field(default_factory=dict)
    """With friction: when walls were hit last."""
    _in_step: InStep = field(default_factory=InStep)
    _changed: dict[int, tuple[float, str]] = field(default_factory=dict)
    """When friction changed last, for each wall, and what ended."""

    def move(self, strike: bool, hit: int | None = None) -> str | None:
        """Go on until no wall is touched at the end of a step, or no more steps are asked for; why not, if that cannot be.

        `strike` says that one of the walls that touch is about to be hit, `hit` that a wall with friction is hit now.
        """
        try:
            if strike:
                self._strike()
            if hit is not None:
                self._hit(hit)
            return self._move()
        except (DalembertError, SingularMatrix, np.linalg.LinAlgError) as error:
            reason = str(error) or "the equations of the contact are singular here: reduce h, or change the start"
            return f"the contact that begins at t = {self.begin:.6g} could not be resolved ({reason})"

    def _move(self) -> str | None:
        run, chunk, events = self.run, 16, 0
        while run.steps_done < run.until:
            left = self._after(1) - self.t
            if left <= MERGE * run.h:
                self._stand(self._after(1), self.here)
                self._record(self.here[None])
                continue
            if not self.settled:
                with uninterrupted():
                    self._settle()
                chunk = 16
            whole = left >= (1 - 1e-9) * run.h
            struck = any(self.t - t <= MERGE * run.h for t in self.struck.values())
            if whole and not (self.touching or self._in_step or struck):
                return None
            h, steps = (run.h, min(chunk, run.until - run.steps_done)) if whole else (left, 1)
            if self._in_step or struck:  # a second hit at once is known as such only here
                steps = 1
            with uninterrupted():
                part, before = self._part(h, steps), run.steps_done
            reason = part.advance()
            with uninterrupted():
                reason = self._follow(part, reason)
            if reason is not None:
                return reason
            events, chunk = (0, min(2 * chunk, LONGEST)) if run.steps_done > before else (events + 1, 16)
            if events > MOST_IN_A_STEP:
                return f"there are more than {MOST_IN_A_STEP} impacts and contacts in one step: reduce h"
        return None

    def _after(self, steps: int) -> float:
        """When some more steps of the run end, as the run has it, so that contact lasts until there and not to round-off."""
        return self.run.start.t + (self.run.steps_done + steps) * self.run.h

    @property
    def _at(self) -> Here:
        """Where the motion of the run's own system stands."""
        return Here.of(self.run.walled, self.run.start.theta, self.t, self.here)

    @property
    def _began(self) -> Here:
        """Where the run began."""
        start = self.run.start
        return Here.of(self.run.walled, start.theta, start.t, start.packed)

    @one_at_a_time
    def _settle(self, without_sticking: Collection[int] = ()) -> None:
        """Let go of walls that would have to pull, and project the momentum onto the tangents of the others."""
        here, walled = self._at, self.run.walled
        if self.touching and walled.n_tangents:
            stuck = [k for k in self.touching if self.slides.get(k) == 0]
            friction = friction_at(here, self._began, self.touching, self.run.h)
            modes = friction.modes(stuck, without_sticking, self._in_step.kept)
            self.slides = {k: mode for k, mode in modes.items() if mode != OPEN}
            self._leave([k for k in self.touching if modes[k] == OPEN])
        elif self.touching:
            held, first = here.on(walled.in_contact(self.touching)), walled.n_holonomic
            last = first + len(self.touching)
            bound = np.array([True] * first + [k in self._in_step.kept for k in self.touching] + [True] * walled.n_nonholonomic)
            press = pressing_walls(held("multiplier_matrix"), held("multiplier_rhs"), bound)[first:last]
            self._leave([k for k, presses in zip(self.touching, press, strict=True) if not presses])
        if self.touching:
            model, q, off = self._mode.system(walled), here.q, np.abs(here("phi")) > ROUND_OFF * here("phi_rounding")
            if np.any(off[list(self.touching)]):  # else a short step would move there at a speed that means nothing
                q = project_position(model, here.t, q, here.p, here.theta)
            self.here = np.concatenate([q, project_momentum(model, here.t, q, here.p, here.theta)])
        self.settled = True

    def _leave(self, walls: list[int]) -> None:
        self.touching = tuple(k for k in self.touching if k not in walls)
        self.released += tuple(walls)
        self._in_step.left |= set(walls)

    @property
    def _mode(self) -> Mode:
        return Mode(self.touching, tuple(self.slides[k] for k in self.touching) if self.run.walled.n_tangents else ())

    @one_at_a_time
    def _part(self, h: float, steps: int) -> ImpactRun:
        """Steps in contact, or free ones if there is none, in which the other walls are met by CVA."""
        run, mode, began = self.run, self._mode, time.perf_counter()
        self.others, self.model = mode.others(run.walled), mode.system(run.walled)
        base = mode.base(run.collision.full, run.walled, AFTER_RELEASE if self._in_step.let_go else 0)
        method, start = CVA(base), unpack(self.model, self.t, self.here, run.start.theta)
        part = run.part_of(RunSpec(self.model, method, start, h, steps), self.others)
        built = time.perf_counter() - began
        run.build_time, run.wall_time = run.build_time + built, run.wall_time - built  # wall_time has all of the contact
        part.event_state.touch([self.others.index(k) for k in self.released])
        kept = [len(self.others) + j for j, (k, ends, _) in enumerate(mode.guards) if self._in_step.ignores(k, ends)]
        part.event_state.marks("ignored")[kept] = 1
        return part

    @one_at_a_time
    def _follow(self, part: ImpactRun, reason: str | None) -> str | None:
        """Take over what a part did up to where something else begins; the reason why it cannot go on from there."""
        impacts, struck = self._impacts(part)
        if part.walled.combines is not None:
            self.run.adopt(part.start.theta)
        steps = part.steps_done
        if struck is not None:  # a hit at the end of a step may be noted with that step or with the next one
            steps = int(np.clip(np.ceil((struck["t"] - part.start.t) / part.h - MERGE) - 1, 0, steps))
        self.run.add_impacts(impacts)
        rows = part.rows[1 : steps + 1]
        if struck is not None:
            self._stand(float(struck["t"]), np.concatenate([struck["q"], struck["p_before"]]), rows)
            self.released = (int(struck["which"]),)
            self._strike()
        elif part.guarded is not None:
            t, here, which = part.guarded
            self._stand(t, here, rows)
            if which < len(self.others):
                self._hit(self.others[which])
            else:
                self._pass(*self._mode.guards[which - len(self.others)][:2])
        elif part.accumulation is not None:
            t, here, walls, left, ahead = part.accumulation
            self._stand(t, here, rows)
            self._touch([self.others[k] for k in walls], [self.others[k] for k in left])
            if ahead:
                self._strike()
        else:
            self._stand(self._after(steps) if steps else self.t, part.rows[steps].copy(), rows)
            self.settled = not self._in_step
            if reason is not None:
                return f"{reason} (in contact since t = {self.begin:.6g})" if self.touching else reason
        return None

    def _pass(self, wall: int, ends: str) -> None:
        """Go on behind a guard that is zero."""
        held, now = self.touching, {k: how for k, (t, how) in self._changed.items() if self.t - t <= MERGE * self.run.h}
        if ends == "pressing" or self._stops_pressing(wall):
            self._leave([wall])
            others = set(range(self.run.walled.n_unilateral)) - self._in_step.left
            self.touching = tuple(sorted({*self.touching, *(k for k in others if self._at.rests_on(k, self.run.h))}))
        elif wall in now:
            self._in_step.rubbing.add(wall)
            self.settled = True
        else:
            before = self.slides.copy()
            if ends == "sliding":
                self.slides[wall] = 0
            self._changed[wall], now[wall] = (self.t, ends), ends
            self._settle([k for k, how in now.items() if how == "sticking"])  # as all feet of a table begin to slide at once
            self._in_step.rubbing -= {k for k, way in before.items() if self.slides.get(k) != way}
        self._in_step.let_go |= not set(held) <= set(self.touching)

    def _stops_pressing(self, wall: int) -> bool:
        """Whether N falls through zero together with another guard, as where mu N was all of the limit of friction."""
        place, at = len(self.others) + self.touching.index(wall), self._at.on(self.model)
        N, rate, blur = (at(name)[place] for name in ("guards", "guard_rate", "guard_rounding"))
        return bool(rate < 0 and ROUND_OFF * blur - MERGE * self.run.h * rate >= N)

    def _hit(self, wall: int) -> None:
        """The impact on a wall with friction, in which all walls take part that touch now."""
        again = self.t - self.struck.get(wall, -np.inf) <= MERGE * self.run.h
        held = [*self.touching, *([wall] if again else [])]
        walls = {*self.touching, wall, *filter(self._on, range(self.run.walled.n_unilateral))}
        p, entries, resting = frictional_impact(self._at, self._began, walls, held)
        if again:  # flights have become too short to be resolved
            resting.add(wall)
            self._in_step.kept |= self._in_step.left & {wall}
        self.run.add_impacts(entries)
        self.here, self.struck[wall], self.settled = np.concatenate([self.here[: len(p)], p]), self.t, False
        if not self.touching:
            self.begin = self.t
        self.released = tuple(walls - resting)
        self.touching, self.slides = tuple(sorted(resting)), {}

    def _stand(self, t: float, here: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Go on to a state, over those that are the ends of steps; the walls in contact were so until there."""
        for which in self.touching:
            if t > self.t:
                self.run.note_contact(which, self.t, t, self.slides.get(which, 0))
        if rows is not None and len(rows):
            self._record(rows)
        self.t, self.here, self.settled = t, here, False
        self.released = tuple(k for k in self.released if self._on(k))

    def _on(self, wall: int) -> bool:
        """Whether a wall that has been left still touches, as far as round-off and times known to MERGE h can tell."""
        phi, blur, rate = (self._at(name)[wall] for name in ("phi", "phi_rounding", "phi_dot"))
        return bool(phi <= BEHIND * ROUND_OFF * blur + MERGE * self.run.h * abs(rate))

    def _record(self, rows: np.ndarray) -> None:
        for row in rows:
            self.run.record(row)
        self.t, self.released = self.run.time, ()
        self._in_step = InStep()

    def _touch(self, walls: list[int], left: list[int]) -> None:
        """Impacts accumulate on more walls."""
        if not self.touching:
            self.begin = self.t
        self._in_step.kept |= self._in_step.left & set(walls)
        self.touching = tuple(sorted({*self.touching, *walls}))
        self.released = tuple(left)

    def _strike(self) -> None:
        """Leave all walls for an impact in which those that touch take part as in free motion."""
        self.touching, self.released = (), tuple(sorted({*self.touching, *self.released}))
        self.here = self.run.collide(self.t, self.here, list(self.released))

    def _impacts(self, part: ImpactRun) -> tuple[list[np.void], np.void | None]:
        """The entries of the log for impacts on other walls, and the one for which a wall in contact would have to pull.

        p+ = p- + lambda grad phi + G^T mu: where mu > 0, the wall in contact has an entry of its own.
        """
        entries: list[np.void] = []
        for found in part.event_state.logged:
            entry = found.copy()
            entry["which"] = self.others[int(found["which"])]
            held = self.run.walled, self.model, self.run.start.theta, self.touching
            more = shares(*held, entry) if self.touching else []
            if more is None:
                return entries, entry
            entries += [entry, *more]
        return entries, None
