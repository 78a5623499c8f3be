"""Sustained contact: where impacts accumulate, the wall becomes a holonomic constraint until it would have to pull."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert._one_thread import one_at_a_time, symbolic
from dalembert.compiler import SingularMatrix
from dalembert.engine._run import Run, make_run
from dalembert.errors import DalembertError
from dalembert.impacts import CVA
from dalembert.methods import OneStepMethod
from dalembert.systems import MechanicalSystem, State
from dalembert.systems._consistent import unpack
from dalembert.systems._newton import solve_rows
from dalembert.systems._projection import project_momentum
from dalembert.systems._states import States

if TYPE_CHECKING:
    from dalembert.engine._impact_run import ImpactRun

LONGEST = 4096
"""Steps in contact after which the contact forces are looked at."""


@dataclass
class Contact:
    """The motion of a run's system while it touches some walls, from a state in which impacts accumulate.

    The contact force N grad phi follows from the hidden constraint. The contact ends with the first step at whose end N < 0:
    N is of the size of h there, and what it has done in this step, of the size of h^2. All but the steps themselves is done by
    one thread at a time.
    """

    run: ImpactRun
    touching: tuple[int, ...]
    begin: float

    def __post_init__(self) -> None:
        assert self.run.walled is not None and self.run.collision is not None
        self.system: MechanicalSystem = self.run.walled.in_contact(self.touching)
        base = self.run.collision.full
        self.method: OneStepMethod = CVA(base) if self.system.n_unilateral else base
        self.model = self.system if self.system.n_unilateral else self.system.smooth
        self.goes_on = False
        self.others = [k for k in range(self.run.walled.n_unilateral) if k not in self.touching]

    def move(self, t: float, q: np.ndarray, p: np.ndarray) -> str | None:
        """Go on in contact until it ends or no more steps are asked for; the reason, if that cannot be done."""
        run, theta = self.run, self.run.start.theta
        try:
            with symbolic:
                p = project_momentum(self.model, t, q, p, theta)
                state = unpack(self.model, t, np.concatenate([q, p]), theta)
            end = run.start.t + (run.steps_done + 1) * run.h
            if end - t > 1.5e-8 * run.h:
                inner = make_run(self.model, self.method, state, end - t, 1, 1)
                reason = inner.advance()
                if reason is not None:
                    return f"{reason} (in contact since t = {self.begin:.6g})"
                self._take(inner, 1)
                with symbolic:
                    state = unpack(self.model, end, inner.state, theta)
            else:
                run.record(state.packed)
            chunk = 16
            while run.steps_done < run.until and self._presses(state):
                inner = make_run(self.model, self.method, state, run.h, min(chunk, run.until - run.steps_done), 1)
                reason = inner.advance()
                pressing = self._pressing(inner)
                kept = pressing.index(False) + 1 if False in pressing else len(pressing)
                self._take(inner, kept)
                if kept:
                    with symbolic:
                        state = unpack(self.model, run.time, inner.rows[kept], theta)
                if reason is not None and kept == len(pressing):
                    return f"{reason} (in contact since t = {self.begin:.6g})"
                chunk = min(2 * chunk, LONGEST)
            self.goes_on = self._presses(state)
        except (DalembertError, SingularMatrix, np.linalg.LinAlgError) as error:
            return f"the contact that begins at t = {self.begin:.6g} could not be resolved ({error})"
        return None

    @one_at_a_time
    def _pressing(self, inner: Run) -> list[bool]:
        """Whether the walls press at the end of each step of a run in contact."""
        rows, theta = inner.rows[1 : inner.steps_done + 1], self.run.start.theta
        times = self.run.time + np.arange(1, len(rows) + 1) * self.run.h
        states = States(
            self.model, times, rows, np.tile(theta, (len(rows), 1)), np.zeros((len(rows), self.model.n_multipliers))
        )
        multipliers = solve_rows(states.evaluate("multiplier_matrix"), states.evaluate("multiplier_rhs"))
        return np.all(multipliers[:, -len(self.touching) :] <= 0, axis=1).tolist()

    def _presses(self, state: State) -> bool:
        return bool(np.all(state.lam[-len(self.touching) :] <= 0))

    def _take(self, inner: Run, steps: int) -> None:
        """Add the first steps of a run in contact to the main one, and its impacts on other walls."""
        end = inner.start.t + (steps + 1e-9) * inner.h
        impacts = getattr(inner, "impacts", None)
        if impacts is not None:
            self.run.add_impacts(impacts, impacts.t <= end, self.others)
        for which, begin, finish in getattr(inner, "held", []):
            if begin < end:
                self.run.hold(self.others[which], begin, min(finish, end))
        for row in inner.rows[1 : steps + 1]:
            self.run.record(row)
