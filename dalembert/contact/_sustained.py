"""Sustained contact: where impacts accumulate, the wall becomes a holonomic constraint until it would have to pull."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from dalembert.compiler import SingularMatrix
from dalembert.contact import CVA
from dalembert.contact import _plan as at
from dalembert.contact._collision_times import MERGE
from dalembert.contact._pressing import pressing_walls
from dalembert.engine._run import Run
from dalembert.engine._spec import RunSpec
from dalembert.errors import DalembertError, StepFailed, UnsupportedSystem
from dalembert.methods import LobattoIIIAB, OneStepMethod
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import MechanicalSystem
from dalembert.systems._consistent import unpack
from dalembert.systems._newton import solve_rows
from dalembert.systems._projection import project_momentum
from dalembert.systems._states import States

if TYPE_CHECKING:
    from dalembert.contact._impact_run import ImpactRun

LONGEST = 4096
"""Steps in contact after which the contact forces are looked at."""
MOST_IN_A_STEP = 1000
OFF_THE_WALL = 1e-8
"""How far steps in contact may leave a wall, as a fraction of what phi and phi_dot consist of: round-off is far less."""
NO_IMPULSE = 1e-12
"""A fraction of the impulse on the wall that is hit, or of the momentum, that is taken for round-off."""


def base_in_contact(base: OneStepMethod, system: MechanicalSystem) -> OneStepMethod:
    """The method for steps in contact: one that keeps phi = 0 and phi_dot = 0.

    That is the base itself if it keeps g and g_dot, or else the base with projection if that has the same order; if not (as for
    Gauss methods, whose order projection halves), the method of Lobatto IIIA-IIIB of the same order.
    """
    if base.keeps >= {"g", "g_dot"}:
        return base
    order = min((base.order_unconstrained or base.order or {"q": 2}).values())
    if hasattr(base, "projected"):
        projected: OneStepMethod = replace(base, projected=True)  # type: ignore[type-var]
        if min(projected.order.values(), default=0) >= order:
            with contextlib.suppress(UnsupportedSystem):
                projected.check(system.smooth)
                return projected
    return LobattoIIIAB(stages=max(2, (order + 1) // 2 + 1))


@dataclass
class Contact:
    """The motion of a run's system while it touches some walls, from a state in which impacts accumulate.

    The contact forces N grad phi follow from the hidden constraints. Where one of them has N < 0 at the end of a step, the
    walls that press are found anew (`pressing_walls`), and the others are walls as in free motion: N is of the size of h there,
    and what it has done in this step, of the size of h^2. Other walls are met by CVA on the system in contact; an impact for
    which a wall in contact would have to pull ends the contact, and all walls that touch then take part in it as in free
    motion. All but the steps themselves is done by one thread at a time.
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
    _left_in_step: set[int] = field(default_factory=set)
    """Walls that stopped pressing within the current step..."""
    _kept_in_step: set[int] = field(default_factory=set)
    """... and those of them on which impacts accumulated again: they stay in contact until its end."""

    def move(self, strike: bool) -> str | None:
        """Go on until no wall is touched at the end of a step, or no more steps are asked for; why not, if that cannot be.

        `strike` says that one of the walls that touch is about to be hit.
        """
        try:
            if strike:
                self._strike()
            return self._move()
        except (DalembertError, SingularMatrix, np.linalg.LinAlgError) as error:
            return f"the contact that begins at t = {self.begin:.6g} could not be resolved ({error})"

    def _move(self) -> str | None:
        run, chunk, events = self.run, 16, 0
        while run.steps_done < run.until:
            left = run.start.t + (run.steps_done + 1) * run.h - self.t
            if left <= MERGE * run.h:
                self._stand(self.t + left, self.here)
                self._record(self.here[None])
                continue
            if not self.settled:
                self._settle()
                chunk = 16
            whole = left >= (1 - 1e-9) * run.h
            if whole and not self.touching:
                return None
            h, steps = (run.h, min(chunk, run.until - run.steps_done)) if whole else (left, 1)
            part, before = self._part(h, steps), run.steps_done
            reason = self._follow(part, part.advance())
            if reason is not None:
                return reason
            events, chunk = (0, min(2 * chunk, LONGEST)) if run.steps_done > before else (events + 1, 16)
            if events > MOST_IN_A_STEP:
                return f"there are more than {MOST_IN_A_STEP} impacts and contacts in one step: reduce h"
        return None

    @one_at_a_time
    def _settle(self) -> None:
        """Let go of walls that would have to pull, and project the momentum onto the tangents of the others."""
        t, theta, (q, p), walled = self.t, self.run.start.theta, np.split(self.here, 2), self.run.walled
        if self.touching:
            held = walled.in_contact(self.touching)
            matrix, rhs = (held.evaluate(f"multiplier_{part}", t, q, p, theta=theta) for part in ("matrix", "rhs"))
            first = held.n_holonomic - len(self.touching)
            bound = np.array([True] * first + [k in self._kept_in_step for k in self.touching])
            press = pressing_walls(matrix, rhs, bound)[first:]
            left = tuple(k for k, presses in zip(self.touching, press, strict=True) if not presses)
            self.touching = tuple(k for k in self.touching if k not in left)
            self.released += left
            self._left_in_step |= set(left)
        if self.touching:
            self.here = np.concatenate([q, project_momentum(walled.in_contact(self.touching), t, q, p, theta)])
        self.settled = True

    @one_at_a_time
    def _part(self, h: float, steps: int) -> Run:
        """Steps in contact, or free ones if there is none, in which the other walls are met by CVA."""
        run = self.run
        system, self.method = run.walled, run.collision.full
        if self.touching:
            system = run.walled.in_contact(self.touching)
            self.method = base_in_contact(self.method, system)
        self.others = [k for k in range(run.walled.n_unilateral) if k not in self.touching]
        self.model = system if self.others else system.smooth
        state = unpack(self.model, self.t, self.here, run.start.theta)
        if not self.others:
            return Run(RunSpec(self.model, self.method, state, h, steps))
        part = run.part_of(RunSpec(system, CVA(self.method), state, h, steps))
        part.touch([self.others.index(k) for k in self.released])
        return part

    @one_at_a_time
    def _follow(self, part: Run, reason: str | None) -> str | None:
        """Take over what a part did up to where something else begins; the reason why it cannot go on from there."""
        impacts, struck = self._impacts(part)
        steps = part.steps_done
        if struck is not None:  # a hit at the end of a step may be noted with that step or with the next one
            steps = int(np.clip(np.ceil((struck[at.LOG_T] - part.start.t) / part.h - MERGE) - 1, 0, steps))
        press = self._pressing(part, steps)
        kept = press.index(False) + 1 if False in press else steps
        end = part.start.t + kept * part.h
        if False in press and kept < part.steps_done:
            impacts = impacts[impacts[:, at.LOG_T] < end]
        self.run.add_impacts(impacts)
        accumulation = getattr(part, "accumulation", None)
        if False not in press and struck is not None:
            self._stand(float(struck[at.LOG_T]), struck[at.LOG_STATE :][: len(self.here)].copy(), part.rows[1 : kept + 1])
            self.released = (int(struck[at.LOG_WHICH]),)
            self._strike()
        elif False not in press and accumulation is not None:
            t, here, walls, left, ahead = accumulation
            self._stand(t, here, part.rows[1 : kept + 1])
            self._touch([self.others[k] for k in walls], [self.others[k] for k in left])
            if ahead:
                self._strike()
        else:
            self._stand(end, part.rows[kept].copy(), part.rows[1 : kept + 1])
            self.settled = False not in press
            if reason is not None and self.settled:
                return f"{reason} (in contact since t = {self.begin:.6g})" if self.touching else reason
        return None

    def _stand(self, t: float, here: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Go on to a state, over those that are the ends of steps; the walls in contact were so until there."""
        for which in self.touching:
            if t > self.t:
                self.run.note_contact(which, self.t, t)
        if rows is not None and len(rows):
            self._record(rows)
        self.t, self.here, self.settled = t, here, False

    def _record(self, rows: np.ndarray) -> None:
        for row in rows:
            self.run.record(row)
        self.t, self.released = self.run.time, ()
        self._left_in_step.clear()
        self._kept_in_step.clear()

    def _touch(self, walls: list[int], left: list[int]) -> None:
        """Impacts accumulate on more walls."""
        if not self.touching:
            self.begin = self.t
        self._kept_in_step |= self._left_in_step & set(walls)
        self.touching = tuple(sorted({*self.touching, *walls}))
        self.released = tuple(left)

    def _strike(self) -> None:
        """Leave all walls for an impact in which those that touch take part as in free motion."""
        self.touching, self.released = (), tuple(sorted({*self.touching, *self.released}))
        self.here = self.run.collide(self.t, self.here, list(self.released))

    def _pressing(self, part: Run, steps: int) -> list[bool]:
        """Whether all walls in contact press at the end of each step of a part, all of whose ends must be on them."""
        count, rows, theta = len(self.touching), part.rows[1 : steps + 1], self.run.start.theta
        if not count or not steps:
            return [True] * steps
        times = part.start.t + np.arange(1, steps + 1) * part.h
        states = States(self.model, times, rows, np.tile(theta, (steps, 1)), np.zeros((steps, self.model.n_multipliers)))
        matrix, rhs, G, v = (states.evaluate(name) for name in ("multiplier_matrix", "multiplier_rhs", "G", "v"))
        phi, rate, G, push = (
            states.evaluate("g")[:, -count:], states.evaluate("g_dot")[:, -count:], G[:, -count:], np.abs(rhs[:, -count:])
        )  # fmt: skip
        moving, q, start = np.abs(rate - np.einsum("ijk,ik->ij", G, v)), rows[:, : v.shape[1]], self.run.start
        # a state at rest in a corner at the origin still has the rounding errors of where it came from
        fastest = np.einsum("ijk,ik->ij", np.abs(G), np.abs(v) + np.abs(start.v)) + moving + part.h * push
        largest = np.einsum("ijk,ik->ij", np.abs(G), np.abs(q) + np.abs(start.q)) + moving * np.abs(times)[:, None]
        largest += part.h * fastest
        off = (np.abs(phi) > OFF_THE_WALL * largest) | (np.abs(rate) > OFF_THE_WALL * fastest)
        if np.any(off | ~np.isfinite(phi + rate)):
            which = self.touching[int(np.argmax(np.any(off | ~np.isfinite(phi + rate), axis=0)))]
            raise StepFailed(
                f"steps of {self.method} do not stay on unilateral[{which}]: reduce h, or take a base that keeps holonomic "
                "constraints, such as da.LobattoIIIAB(stages=2)"
            )
        return np.all(solve_rows(matrix, rhs)[:, -count:] <= 0, axis=1).tolist()

    def _impacts(self, part: Run) -> tuple[np.ndarray, np.ndarray | None]:
        """The impacts on other walls as rows of the log, and the one for which a wall in contact would have to pull.

        p+ = p- + lambda grad phi + G^T mu: where mu > 0, the wall in contact has a row of its own.
        """
        rows: list[np.ndarray] = []
        log = part.log[: part.plan[at.LOGGED]] if self.others else []  # type: ignore[attr-defined]
        for found in log:
            row = found.copy()
            row[at.LOG_WHICH] = self.others[int(found[at.LOG_WHICH])]
            more = self._shares(row) if self.touching else []
            if more is None:
                return self._as_log(rows), row
            rows += [row, *more]
        return self._as_log(rows), None

    def _as_log(self, rows: list[np.ndarray]) -> np.ndarray:
        return np.array(rows).reshape(len(rows), self.run.log.shape[1])

    def _shares(self, row: np.ndarray) -> list[np.ndarray] | None:
        """The rows of walls in contact that press in an impact, whose own row is shortened by theirs; None if one pulls."""
        walled, theta, n = self.run.walled, self.run.start.theta, len(self.here) // 2
        t, which, impulse = row[at.LOG_T], int(row[at.LOG_WHICH]), row[at.LOG_IMPULSE]
        q, before, after = np.split(row[at.LOG_STATE :], 3)
        walls, H_pp = walled.evaluate("phi_q", t, q, theta=theta), walled.evaluate("H_pp", t, q, before, theta=theta)
        strength = np.sqrt(np.einsum("ij,jk,ik->i", walls, H_pp, walls))
        G = self.model.evaluate("G", t, q, theta=theta)
        mu = np.linalg.lstsq(G.T, after - before - impulse * walls[which], rcond=None)[0][-len(self.touching) :]
        size = mu * strength[list(self.touching)]
        none = NO_IMPULSE * (impulse * strength[which] + np.sqrt(max(before @ H_pp @ before, 0.0)))
        if np.any(size < -none):
            return None
        rows, p = [row], after - (mu * (size > none)) @ walls[list(self.touching)]
        for k, share in zip(self.touching, mu * (size > none), strict=True):
            if share:
                row = rows[-1]
                last, row[at.LOG_STATE + 2 * n :] = row.copy(), p
                last[at.LOG_WHICH], last[at.LOG_IMPULSE], last[at.LOG_STATE + n : at.LOG_STATE + 2 * n] = k, share, p
                last[at.LOG_BEFORE] = row[at.LOG_AFTER] = walled.evaluate("H", t, q, p, theta=theta)[0]
                p = p + share * walls[k]
                rows.append(last)
        return rows[1:]
