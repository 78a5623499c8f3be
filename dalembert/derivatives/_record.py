"""Runs that keep the unknowns of their steps, and the derivatives of these steps.

A `Record` makes the steps of a run with the driver of `da.simulate`, a segment at a time. Between two changes of programs or
parameters, as where redundant constraints are combined anew or a control changes, steps form a `Part`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dalembert.compiler._denormals import flushed_to_zero
from dalembert.compiler._linearised import MATRICES, Linearised, Sample, linearised
from dalembert.derivatives import _sweeps as sweeps
from dalembert.derivatives._sweeps import PLAN, WIDTH, Rooms, Sweep
from dalembert.engine import _driver as driver
from dalembert.engine._run import Run
from dalembert.engine._stepper import Stepper
from dalembert.errors import StepFailed

DENSE = 200
"""Unknowns up to which a step whose pivot order fails is solved by dense elimination."""


@dataclass(frozen=True)
class Part:
    """The steps from `begin` to `end`, which share programs and parameters."""

    begin: int
    end: int
    steps: tuple[Linearised, ...]
    thetas: tuple[np.ndarray, ...]
    fractions: tuple[float, ...]

    def sweep(self, h: float, offsets: np.ndarray) -> Sweep:
        """Memory and tables of all substeps, end to end."""
        plans = np.zeros(len(self.steps), PLAN)
        memory = np.zeros(sum(step.memory_size for step in self.steps))
        at_memory = at_tables = 0
        for plan, step, theta, fraction, record in zip(
            plans, self.steps, self.thetas, self.fractions, _columns(self.steps), strict=True
        ):
            for name, value in _plan(step).items():
                plan[name] = value
            plan["memory"], plan["tables"], plan["record"] = at_memory, at_tables, record
            memory[at_memory + step.layout.h] = fraction * h
            memory[at_memory + step.layout.theta :][: len(theta)] = theta
            at_memory, at_tables = at_memory + step.memory_size, at_tables + len(step.tables)
        return Sweep(plans, memory, np.concatenate([step.tables for step in self.steps]), offsets)

    def rooms(self, width: int) -> Rooms:
        """Memory for solves in so many directions."""
        n_u, layout = max(1, *(step.n_u for step in self.steps)), self.steps[0].layout
        n_z = layout.n_state + len(self.steps[0].chosen)
        columns = [np.zeros((n_u, width)) for _ in range(4)]
        dense = n_u * (n_u + 3) if n_u <= DENSE else 0
        return Rooms(np.zeros((n_z, width)), *columns, np.zeros(n_u), np.zeros(n_u), np.zeros(dense))


def _plan(step: Linearised) -> dict[str, int]:
    layout, places = step.layout, step.places
    known = {name: getattr(layout, name) for name in ("state", "x", "last", "n_state", "n_x", "n_theta", *MATRICES)}
    known |= {"linearise": step.code.addresses["linearise"], "last_kernel": step.code.addresses.get("last", 0)}
    known |= {"n_u": step.n_u, "matrix": places["matrix"], "last_matrix": places["last"]}
    known |= {f"n_{name}": count for name, count in zip(MATRICES, layout.n_entries, strict=True)}
    return known | {f"at_{name}": places[name] for name in MATRICES}


def _columns(steps: tuple[Linearised, ...]) -> list[int]:
    """Where each substep's part of a row begins."""
    widths = [step.layout.n_state + step.layout.n_x for step in steps]
    return [0, *np.cumsum(widths)[:-1].tolist()]


class Record:
    """A run whose steps are kept, `room` of them at a time, to be differentiated with respect to the state and parameters."""

    def __init__(self, run: Run, chosen: tuple[int, ...], room: int) -> None:
        self.run, self.chosen, self.room = run, chosen, room
        self.rows = np.zeros((room, self.width(run)))
        self.parts: list[Part] = []

    @staticmethod
    def width(run: Run) -> int:
        """How many numbers a step leaves."""
        return sum(run.system.n_state + stepper.program.layout.n_x for stepper in run.steppers)

    def make(self, last: int, report: Callable[[int], None] | None = None) -> None:
        """Record the steps from where the run stands to step `last`, not more than there is room for."""
        self.first, self.parts = self.run.steps_done, []
        while self.run.steps_done < last:
            self._make_part(last)
            if report is not None:
                report(self.run.steps_done)

    def _make_part(self, last: int) -> None:
        run = self.run
        until = min(last, run.next_control)
        run.apply_controls()
        begin, part = run.steps_done, self._part(until)
        plans = part.sweep(run.h, run.offsets).plans
        with flushed_to_zero():
            given = (run.rows, until, run.save_every, run.start.t, run.h, self.rows, self.first, plans)
            status = sweeps.record(run.driven, *given)
        if run.steps_done > begin:
            self.parts.append(Part(begin, run.steps_done, part.steps, part.thetas, part.fractions))
        if status == driver.UNSOLVED:
            reason = run.rescue()
            if reason is not None:
                raise StepFailed(f"step {run.steps_done + 1} from t = {run.time:.6g} failed: {reason}")

    def _part(self, until: int) -> Part:
        run = self.run
        thetas = tuple(stepper.start.theta for stepper in run.steppers)
        steps = tuple(linearised(stepper.program.reduced, self.chosen, self._sample(stepper)) for stepper in run.steppers)
        return Part(run.steps_done, until, steps, thetas, tuple(fraction for _, fraction in run.method.substeps))

    @staticmethod
    def _sample(stepper: Stepper) -> Sample:
        """The pending step."""
        return Sample(stepper.unknowns, stepper.time, stepper.h, stepper.start.theta, stepper.state)

    def push(self, S: np.ndarray, seeds: np.ndarray, saved: np.ndarray, every: int, n_saved: int) -> int:
        """Push derivatives through the recorded steps, in place; how many of them are saved then."""
        run = self.run
        groups, kept = _grouped(S), np.zeros((len(saved), *_grouped(S).shape))
        given, first = _grouped(seeds), n_saved
        for part in self.parts:
            rooms, sweep = part.rooms(WIDTH), part.sweep(run.h, run.offsets)
            where = (part.begin, part.end, self.first, run.start.t, run.h)
            with flushed_to_zero():
                reached, n_saved = sweeps.push(sweep, self.rows, *where, groups, given, rooms, kept, every, n_saved)
            self._check(reached, part.end)
        S[:] = _ungrouped(groups, S.shape[1])
        for row in range(first, n_saved):
            saved[row] = _ungrouped(kept[row], S.shape[1])
        return n_saved

    def pull(self, covector: np.ndarray, forces: np.ndarray, of_parameters: Callable[[Part], np.ndarray]) -> None:
        """Pull a covector back through the recorded steps; `of_parameters` says where each part's share goes."""
        run = self.run
        for part in reversed(self.parts):
            rooms, sweep = part.rooms(1), part.sweep(run.h, run.offsets)
            own, where = forces[part.begin - self.first :], (part.begin, part.end, self.first, run.start.t, run.h)
            with flushed_to_zero():
                reached = sweeps.pull(sweep, self.rows, *where, covector, own, of_parameters(part), rooms)
            self._check(reached, part.begin)

    def _check(self, reached: int, wanted: int) -> None:
        if reached != wanted:
            t = self.run.start.t + reached * self.run.h
            raise StepFailed(f"the step from t = {t:.6g} has no derivative: its equations are singular there")


def _grouped(columns: np.ndarray) -> np.ndarray:
    """Columns in groups of `WIDTH`, the last one filled up with zeros: (group, row, column)."""
    n, count = columns.shape
    groups = -(-count // WIDTH)
    filled = np.zeros((n, groups * WIDTH))
    filled[:, :count] = columns
    return np.ascontiguousarray(filled.reshape(n, groups, WIDTH).transpose(1, 0, 2))


def _ungrouped(groups: np.ndarray, count: int) -> np.ndarray:
    """The columns that `_grouped` was given."""
    return groups.transpose(1, 0, 2).reshape(groups.shape[1], -1)[:, :count]
