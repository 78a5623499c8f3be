"""Runs that keep the unknowns of their steps, and the derivatives of these steps.

A `Record` makes the steps of a run with the driver of `da.simulate`, a segment at a time. Between two changes of programs or
parameters, as where redundant constraints are combined anew or a control changes, steps form a `Part`. Derivatives of small
programs are kernels (`_kernel_sweeps`); those of large ones, and of steps in which a pivot order fails, are solved for by
loops over tables (`_sweeps`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dalembert.compiler import Program
from dalembert.compiler._denormals import flushed_to_zero
from dalembert.compiler._differential import WIDTH, Differential, differential
from dalembert.compiler._linearised import MATRICES, Linearised, Sample, linearised
from dalembert.derivatives import _sweeps as sweeps
from dalembert.derivatives._kernel_sweeps import KERNEL_PLAN, KernelSweep, pull_by_kernels, push_by_kernels
from dalembert.derivatives._sweeps import PLAN, Sweep
from dalembert.derivatives._table_solves import Rooms
from dalembert.engine import _driver as driver
from dalembert.engine._run import Run
from dalembert.engine._stepper import Stepper
from dalembert.errors import StepFailed

DENSE = 200
"""Unknowns up to which a step whose pivot order fails is solved by dense elimination."""


@dataclass(frozen=True)
class Substeps:
    """What the substeps of a method are differentiated by: programs, step sizes, where in a step they begin."""

    programs: tuple[Program, ...]
    samples: tuple[Sample, ...]
    sizes: tuple[float, ...]
    offsets: np.ndarray
    chosen: tuple[int, ...]

    @cached_property
    def columns(self) -> list[int]:
        """Where each substep's part of a row begins."""
        widths = [program.layout.n_state + program.layout.n_x for program in self.programs]
        return [0, *np.cumsum(widths)[:-1].tolist()]

    @property
    def linearised(self) -> list[Linearised]:
        """Their Jacobians as tables."""
        pairs = zip(self.programs, self.samples, strict=True)
        return [linearised(program.reduced, self.chosen, sample) for program, sample in pairs]

    def differentials(self, kind: str) -> list[Differential] | None:
        """Their derivatives of some kind as kernels, if all of them have some."""
        found = [differential(program, self.chosen, kind) for program in self.programs]
        return [each for each in found if each is not None] if all(found) else None


@dataclass(frozen=True)
class Part:
    """The steps from `begin` to `end`, which share programs and parameters."""

    begin: int
    end: int
    substeps: Substeps
    thetas: tuple[np.ndarray, ...]

    def kernel_sweep(self, differentials: list[Differential]) -> KernelSweep:
        """Memory of the kernels of all substeps, end to end."""
        plans, blocks, first = np.zeros(len(differentials), KERNEL_PLAN), [], 0
        given = zip(plans, differentials, self.thetas, self.substeps.sizes, self.substeps.columns, strict=True)
        for plan, each, theta, h, record in given:
            layout, block = each.layout, np.zeros((each.memory_size, each.width))
            block[layout.h], block[layout.theta :][: len(theta)] = h, theta[:, None]
            names = ("error", "state", "n_state", "x", "n_x", "z", "n_z")
            known = {name: getattr(layout, name) for name in names} | {"address": each.address, "record": record}
            for name, value in (known | {"memory": first}).items():
                plan[name] = value
            blocks.append(block.ravel())
            first += block.size
        return KernelSweep(plans, _aligned(np.concatenate(blocks)), self.substeps.offsets)

    def sweep(self) -> Sweep:
        """Memory and tables of all substeps, end to end."""
        steps = self.substeps.linearised
        plans, memory = np.zeros(len(steps), PLAN), np.zeros(sum(step.memory_size for step in steps))
        at_memory = at_tables = 0
        given = zip(plans, steps, self.thetas, self.substeps.sizes, self.substeps.columns, strict=True)
        for plan, step, theta, h, record in given:
            places = {"memory": at_memory, "tables": at_tables, "record": record}
            for name, value in (_plan(step) | places).items():
                plan[name] = value
            memory[at_memory + step.layout.h] = h
            memory[at_memory + step.layout.theta :][: len(theta)] = theta
            at_memory, at_tables = at_memory + step.memory_size, at_tables + len(step.tables)
        return Sweep(plans, memory, np.concatenate([step.tables for step in steps]), self.substeps.offsets)

    def choose_pivots(self, row: np.ndarray, t: float, h: float) -> None:
        """Choose the order of pivots of all substeps by a recorded step, which begins at t."""
        own = self.substeps
        given = zip(own.programs, own.columns, own.offsets.tolist(), own.sizes, self.thetas, strict=True)
        for program, first, offset, size, theta in given:
            state, x = np.split(row[first:][: program.layout.n_state + program.layout.n_x], [program.layout.n_state])
            linearised(program.reduced, own.chosen, Sample(x, t + offset * h, size, theta, state), anew=True)

    def rooms(self, width: int) -> Rooms:
        """Memory for solves in so many directions."""
        steps = self.substeps.linearised
        n_u = max(1, *(step.n_u for step in steps))
        n_z = steps[0].layout.n_state + len(self.substeps.chosen)
        u, rhs, rest, work, size = np.zeros((5, n_u, width))
        dense = np.zeros(n_u * (n_u + 3) if n_u <= DENSE else 0)
        return Rooms(np.zeros((n_z, width)), u, rhs, rest, work, size, np.zeros(n_u), np.zeros(2 * n_u), dense)


def _plan(step: Linearised) -> dict[str, int]:
    layout, places = step.layout, step.places
    known = {name: getattr(layout, name) for name in ("state", "x", "last", "n_state", "n_x", *MATRICES)}
    known |= {"linearise": step.code.addresses["linearise"], "last_kernel": step.code.addresses.get("last", 0)}
    known |= {"n_u": step.n_u, "matrix": places["matrix"], "last_matrix": places["last"]}
    known |= {f"n_{name}": count for name, count in zip(MATRICES, layout.n_entries, strict=True)}
    return known | {f"at_{name}": places[name] for name in MATRICES}


def _aligned(values: np.ndarray) -> np.ndarray:
    """The same numbers at an address that vectors of the processor can be loaded from."""
    room = np.zeros(len(values) + 8)
    first = -(room.ctypes.data // 8) % 8
    room[first : first + len(values)] = values
    return room[first : first + len(values)]


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
        with flushed_to_zero():
            columns = np.array(part.substeps.columns)
            given = (run.rows, until, run.save_every, run.start.t, run.h, self.rows, self.first, columns)
            status = sweeps.record(run.driven, *given)
        if run.steps_done > begin:
            self.parts.append(replace(part, end=run.steps_done))
        if status == driver.UNSOLVED:
            reason = run.rescue()
            if reason is not None:
                raise StepFailed(f"step {run.steps_done + 1} from t = {run.time:.6g} failed: {reason}")

    def _part(self, until: int) -> Part:
        run, steppers = self.run, self.run.steppers
        programs, samples = tuple(s.program for s in steppers), tuple(_sample(s) for s in steppers)
        substeps = Substeps(programs, samples, tuple(s.h for s in steppers), run.offsets, self.chosen)
        return Part(run.steps_done, until, substeps, tuple(s.start.theta for s in steppers))

    def push(self, S: np.ndarray, seeds: np.ndarray, saved: np.ndarray, every: int, n_saved: int) -> int:
        """Push derivatives through the recorded steps, in place; how many of them are saved then."""
        groups, given = _grouped(S), _grouped(seeds)
        kept, first = np.zeros((len(groups), len(saved), *groups.shape[1:])), n_saved
        for part in self.parts:
            kernels = part.substeps.differentials("push")
            if kernels is None:
                n_saved = self._push_by_tables(part, groups, given, kept, every, n_saved)
                continue
            sweep, before = part.kernel_sweep(kernels), n_saved
            for group in range(len(groups)):
                n_saved = self._push_group(part, sweep, groups[group], given[group], kept[group], every, before)
        S[:] = _ungrouped(groups, S.shape[1])
        for row in range(first, n_saved):
            saved[row] = _ungrouped(kept[:, row], S.shape[1])
        return n_saved

    def _push_group(
        self, part: Part, sweep: KernelSweep, S: np.ndarray, seeds: np.ndarray, kept: np.ndarray, every: int, n_saved: int
    ) -> int:
        """By kernels; a step in which these fail by tables."""
        begin, origin, before = part.begin, (self.first, self.run.start.t, self.run.h), np.zeros(S.shape)
        while True:
            with flushed_to_zero():
                given = (sweep, self.rows, begin, part.end, *origin, S, seeds, before, kept, every, n_saved)
                begin, n_saved = push_by_kernels(*given)
            if begin == part.end:
                return n_saved
            one = replace(part, begin=begin, end=begin + 1)
            n_saved = self._push_by_tables(one, S[None], seeds[None], kept[None], every, n_saved)
            begin += 1

    def _push_by_tables(self, part: Part, S: np.ndarray, seeds: np.ndarray, kept: np.ndarray, every: int, n_saved: int) -> int:
        begin, failed, origin, before = part.begin, -1, (self.first, self.run.start.t, self.run.h), np.zeros(S.shape)
        while True:
            with flushed_to_zero():
                given = (part.sweep(), self.rows, begin, part.end, *origin, S, seeds, before, part.rooms(WIDTH))
                begin, n_saved = sweeps.push(*given, kept, every, n_saved)
            if begin == part.end:
                return n_saved
            failed = self._choose_pivots(part, begin, failed)

    def pull(self, covector: np.ndarray, forces: np.ndarray, of_parameters: Callable[[Part], np.ndarray]) -> None:
        """Pull a covector back through the recorded steps; `of_parameters` says where each part's share goes.

        forces[k] is added to it before the k-th recorded step is pulled.
        """
        for part in reversed(self.parts):
            kernels, share = part.substeps.differentials("pull"), of_parameters(part)
            if kernels is None:
                self._pull_by_tables(part, covector, forces, share)
                continue
            sweep, end, before = part.kernel_sweep(kernels), part.end, np.zeros(len(covector) + len(share))
            while True:
                own, where = forces[part.begin - self.first :], (self.first, self.run.start.t, self.run.h)
                with flushed_to_zero():
                    given = (sweep, self.rows, part.begin, end, *where, covector, own, share, before)
                    end = pull_by_kernels(*given)
                if end == part.begin:
                    break
                self._pull_by_tables(replace(part, begin=end - 1, end=end), covector, forces, share)
                end -= 1

    def _pull_by_tables(self, part: Part, covector: np.ndarray, forces: np.ndarray, share: np.ndarray) -> None:
        own, origin = forces[part.begin - self.first :], (self.first, self.run.start.t, self.run.h)
        end, failed, before = part.end, -1, np.zeros(len(covector) + len(share))
        while True:
            with flushed_to_zero():
                given = (part.sweep(), self.rows, part.begin, end, *origin, covector, own, share, before)
                end = sweeps.pull(*given, part.rooms(1))
            if end == part.begin:
                return
            failed = self._choose_pivots(part, end - 1, failed)

    def _choose_pivots(self, part: Part, step: int, failed: int) -> int:
        """Choose the pivots by a step in which their order failed, which is returned; refuse if these fail there as well."""
        t = self.run.start.t + step * self.run.h
        if step == failed:
            raise StepFailed(
                f"the step from t = {t:.6g} has no derivative: its equations are singular there, or nearly so, for even "
                "the order of pivots that was chosen by this very step fails"
            )
        part.choose_pivots(self.rows[step - self.first], t, self.run.h)
        return step


def _sample(stepper: Stepper) -> Sample:
    """The pending step."""
    return Sample(stepper.unknowns, stepper.time, stepper.h, stepper.start.theta, stepper.state)


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
