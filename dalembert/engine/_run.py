"""A run: the arrays that the driver works on, and the loop around it that reports, rescues and stops."""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dalembert.compiler import Program, build_program, first_guess
from dalembert.engine import _driver as driver
from dalembert.engine import _layout as at
from dalembert.engine._rescue import orientation_at, rescue
from dalembert.errors import StepFailed
from dalembert.methods import OneStepMethod
from dalembert.systems import MechanicalSystem, State, state_at

CHUNK_SECONDS = 0.1


@dataclass
class Run:
    """The mutable side of one simulation."""

    system: MechanicalSystem
    method: OneStepMethod
    start: State
    h: float
    steps: int
    save_every: int
    newton_tolerance: float | None = None
    stage_multipliers: bool = False
    rescued: int = 0
    wall_time: float = 0.0
    build_time: float = 0.0
    program: Program = field(init=False)

    def __post_init__(self) -> None:
        began = time.perf_counter()
        self.counts = np.zeros(at.N_COUNTS, dtype=np.int64)
        self.numbers = np.zeros(at.N_NUMBERS)
        self.known = np.zeros(at.KNOWN_AGES)
        self._load(build_program(self.system, self.method, self.start, self.h))
        extra = self.program.layout.n_stage_lam if self.stage_multipliers else 0
        self.rows = _store(self.steps // self.save_every + 2, 2 * self.system.dim + extra)
        self.rows[0] = np.nan
        self.rows[0, : 2 * self.system.dim] = np.concatenate([self.start.q, self.start.p])
        self.counts[at.SAVED] = 1
        self._place(np.concatenate([self.start.q, self.start.p]))
        self.memory[self._slots("x")] = first_guess(self.program.reduced, self.system, self.start, self.h)
        self.counts[at.SIGN] = orientation_at(self.system, self.start)
        self.counts[at.AGE] = -1
        self.counts[at.MODE] = driver.GUESS_READY
        self.numbers[at.RATE] = 1.0
        self.numbers[at.TOLERANCE] = 0.0 if self.newton_tolerance is None else self.newton_tolerance**2
        self._advance_to(0)  # loads the compiled driver, so that no run's time includes it
        self.build_time = time.perf_counter() - began

    def _load(self, program: Program) -> None:
        self.program, slots = program, program.layout
        layout = np.zeros(at.N_LAYOUT, dtype=np.int64)
        for position, value in {
            at.STATE: slots.state, at.N_STATE: slots.n_state, at.DELTA: slots.delta, at.X: slots.x, at.N_X: slots.n_x,
            at.RESIDUAL: slots.residual, at.WEIGHTS: slots.weights, at.FACTORS: slots.factors,
            at.STRAIGHT_LINE: program.straight_line, at.POLISH: program.reduced.polish, at.STAGE_LAM: slots.stage_lam,
        }.items():  # fmt: skip
            layout[position] = value
        names = {"row_start": at.ROW_START, "diagonal": at.DIAGONAL, "column": at.COLUMN, "scatter": at.SCATTER,
                 "rows": at.ROWS, "columns": at.COLUMNS, "weight_of": at.WEIGHT_OF}  # fmt: skip
        for name, start in program.index_start.items():
            layout[names[name]] = start
        layout[at.N_ENTRIES] = program.reduced.jacobian.nnz()
        layout[at.FILLED] = slots.factors + layout[at.N_ENTRIES]
        self.layout = layout
        self.memory = np.zeros(program.memory_size)
        self.memory[slots.h] = self.h
        self.memory[slots.theta : slots.theta + slots.n_theta] = self.start.theta
        self.guess, self.work = np.zeros(slots.n_x), np.zeros(slots.n_x)
        self.numbers[at.COST_RATIO] = program.cost_ratio

    def _place(self, state: np.ndarray) -> None:
        self.memory[self._slots("state")] = state

    def _slots(self, name: str) -> slice:
        slots = self.program.layout
        size = slots.n_x if name == "x" else slots.n_state
        return slice(getattr(slots, name), getattr(slots, name) + size)

    @property
    def state(self) -> np.ndarray:
        """The current state (q, p)."""
        return self.memory[self._slots("state")].copy()

    @property
    def row(self) -> np.ndarray:
        """The current state as it would be stored."""
        slots = self.program.layout
        extra = self.memory[slots.stage_lam : slots.stage_lam + slots.n_stage_lam] if self.stage_multipliers else np.zeros(0)
        return np.concatenate([self.state, extra])

    @property
    def unknowns(self) -> np.ndarray:
        """The unknowns of the last step."""
        return self.memory[self._slots("x")].copy()

    @property
    def steps_done(self) -> int:
        """How many steps are behind us."""
        return int(self.counts[at.STEPS_DONE])

    @property
    def time(self) -> float:
        """Where the run stands."""
        return self.start.t + self.steps_done * self.h

    def stats(self) -> dict[str, float]:
        """What the run took."""
        return {
            "steps": self.steps_done,
            "newton_iterations": int(self.counts[at.ITERATIONS]),
            "factorizations": int(self.counts[at.FACTORIZATIONS]),
            "rescued_steps": self.rescued,
            "build_seconds": self.build_time,
            "wall_seconds": self.wall_time,
        }

    def advance(self, report: Callable[[int], None] | None = None) -> str | None:
        """Run to the end; the reason why not, if a step failed. KeyboardInterrupt leaves everything computed in place."""
        chunk = 100
        while self.steps_done < self.steps:
            began, before = time.perf_counter(), self.steps_done
            try:
                status = self._advance_to(min(self.steps, before + chunk))
            finally:
                elapsed = time.perf_counter() - began
                self.wall_time += elapsed
            if status == driver.UNSOLVED:
                reason = rescue(self)
                self.wall_time += time.perf_counter() - began - elapsed
                if reason is not None:
                    return reason
            done = self.steps_done - before
            if done:
                chunk = int(np.clip(chunk * CHUNK_SECONDS / max(elapsed, 1e-4), 1, min(10 * chunk, self.steps)))
            if report is not None:
                report(self.steps_done)
        return None

    def use(self, program: Program) -> None:
        """Go on with another program (another pivot order) from the current state."""
        state, compensation = self.state, self.memory[self._slots("compensation")].copy()
        self._load(program)
        self._place(state)
        self.memory[self._slots("compensation")] = compensation

    def accept(self, x: np.ndarray) -> None:
        """Take x for the solution of the pending step."""
        self.memory[self._slots("x")] = x
        self.counts[at.MODE] = driver.SOLVED
        self.counts[at.AGE] = -1
        self.rescued += 1

    def _advance_to(self, last_step: int) -> int:
        return driver.advance(
            self.program.addresses, self.layout, self.program.index, self.memory, self.counts, self.numbers, self.known,
            self.guess, self.work, self.rows, last_step, self.save_every, self.start.t, self.h,
        )  # fmt: skip


def _store(rows: int, columns: int) -> np.ndarray:
    """Room for the states, from the system's own pages.

    NumPy asks for huge pages, and the kernel's search for them took a fifth of the time of a run of two million steps.
    """
    pages = mmap.mmap(-1, 8 * rows * columns)
    return np.frombuffer(pages, dtype=float).reshape(rows, columns)


def one_step(system: MechanicalSystem, method: OneStepMethod, state: State, h: float) -> tuple[State, np.ndarray]:
    """One step of size h, which may be negative: the new state and the unknowns of the step."""
    run = Run(system, method, state, float(h), 1, 1)
    reason = run.advance()
    if reason is not None:
        raise StepFailed(f"the step from t = {state.t:g} failed: {reason}")
    n = system.dim
    new = run.state
    return state_at(system, new[:n], p0=new[n:], t0=state.t + h, theta=state.theta, check=False), run.unknowns
