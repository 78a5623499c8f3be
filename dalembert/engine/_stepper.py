"""One method's step as the driver sees it: a compiled program, its block of memory and its counters."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dalembert.compiler import Program, build_program, first_guess
from dalembert.compiler._memory import Layout
from dalembert.compiler._stopping import fastest
from dalembert.engine import _driver as driver
from dalembert.engine import _layout as at
from dalembert.engine._rescue import orientation_at
from dalembert.methods import OneStepMethod
from dalembert.systems import State, System

Given = tuple[Program, np.ndarray, float]
"""A program for a start, its first guess and its orientation, as ensembles find them for all members at once."""


@dataclass(eq=False)
class Stepper:
    """Steps of size h, which may be negative, of one method; alone, or as one substep of a composition."""

    system: System
    method: OneStepMethod
    start: State
    h: float
    contiguous: bool
    tolerance: float
    counts: np.ndarray
    numbers: np.ndarray
    known: np.ndarray
    given: Given | None = None
    """What would else be found out here."""
    rescued: int = 0
    trouble: str = ""
    """Why other pivots than the program's own were needed, if they were."""
    warned: bool = False
    """Whether the user has been told so."""
    program: Program = field(init=False)
    memory: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        if self.given is None:
            self._first_program = build_program(self.system, self.method, self.start, self.h, contiguous=self.contiguous)
            guess = first_guess(self._first_program.reduced, self.system, self.start, self.h)
            self._sign = float(orientation_at(self.system, self.start))
        else:
            self._first_program, guess, self._sign = self.given
        self.begin(self.start, np.zeros(self.system.n_state), guess)

    def begin(self, state: State, compensation: np.ndarray, guess: np.ndarray | None = None) -> None:
        """Start afresh from a state: guess, factors and what was learnt of their cost forget all earlier steps."""
        self._begun = state
        if guess is None:
            guess = first_guess(self._first_program.reduced, self.system, state, self.h)
        self._load(self._first_program, state.packed, guess)
        self.memory[self.slots("compensation")] = compensation
        begin_steps(self.counts, self.numbers, self.known)

    def _load(self, program: Program, state: np.ndarray, x: np.ndarray) -> None:
        self.program, self.layout = program, driver_layout(program)
        self.memory = np.zeros(program.memory_size)
        write_start(self.memory, program.layout, self.h, self.start.theta, state, x)
        set_rules(self.counts, self.numbers, program, self.system, self._sign, self.tolerance)

    def slots(self, name: str) -> slice:
        """Where a part of the memory lies."""
        layout = self.program.layout
        size = {"x": layout.n_x, "accepted": layout.n_stage_multipliers}.get(name, layout.n_state)
        return slice(getattr(layout, name), getattr(layout, name) + size)

    @property
    def time(self) -> float:
        """Where the pending step begins."""
        return float(self.memory[self.program.layout.time])

    @property
    def state(self) -> np.ndarray:
        """The current state as one vector."""
        return self.memory[self.slots("state")].copy()

    @property
    def unknowns(self) -> np.ndarray:
        """The unknowns of the last step, or the guess for the pending one."""
        return self.memory[self.slots("x")].copy()

    @property
    def multipliers(self) -> np.ndarray:
        """Multipliers near the current state, on the run's branch: the method's own of the last step, or those begun with."""
        own = self.memory[self.slots("accepted")].copy()
        return own if self.steps_made and len(own) == self.system.n_multipliers else self._begun.multipliers

    @property
    def steps_made(self) -> bool:
        """Whether a step has been made."""
        return bool(self.counts[at.MODE] != driver.GUESS_READY)

    def use(self, program: Program) -> None:
        """Go on with another program (another pivot order) from the current state."""
        now, kept = self.time, {name: self.memory[self.slots(name)].copy() for name in ("compensation", "accepted")}
        self._load(program, self.state, self.unknowns)
        self.memory[program.layout.time] = now
        for name, values in kept.items():
            self.memory[self.slots(name)] = values

    def accept(self, x: np.ndarray) -> None:
        """Take x for the solution of the pending step."""
        self.memory[self.slots("x")] = x
        self.counts[at.MODE] = driver.SOLVED
        self.counts[at.AGE] = -1
        self.rescued += 1


def write_start(
    slots: np.ndarray,
    layout: Layout,
    h: float | np.ndarray,
    theta: np.ndarray,
    state: np.ndarray,
    x: np.ndarray,
) -> None:
    """What the memory of a program holds before the first step, for one trajectory or many: slots are the first axis."""
    slots[layout.h] = h
    for first, values in ((layout.theta, theta), (layout.state, state), (layout.x, x)):
        slots[first : first + len(values)] = values


def set_rules(
    counts: np.ndarray,
    numbers: np.ndarray,
    program: Program,
    system: System,
    sign: float | np.ndarray,
    tolerance: float,
) -> None:
    """By what the driver judges iterations and steps of a program, for one trajectory or many."""
    counts[..., at.SIGN], numbers[..., at.TOLERANCE] = sign, tolerance**2
    numbers[..., at.FASTEST], numbers[..., at.COST_RATIO] = fastest(system), program.cost_ratio


def begin_steps(counts: np.ndarray, numbers: np.ndarray, known: np.ndarray) -> None:
    """Let the driver forget all earlier steps, of one trajectory or many."""
    counts[..., [at.AGE, at.MODE, at.PERIODS]] = -1, driver.GUESS_READY, 0
    numbers[..., [at.RATE, at.PERIOD_COST]] = 1.0, 0.0
    known[...] = 0.0


def driver_layout(program: Program) -> np.ndarray:
    """Where things lie in a program's memory and tables, as the driver reads it."""
    slots = program.layout
    layout = np.zeros(at.N_LAYOUT, dtype=np.int64)
    for position, value in {
        at.STATE: slots.state, at.N_STATE: slots.n_state, at.DELTA: slots.delta, at.X: slots.x, at.N_X: slots.n_x,
        at.RESIDUAL: slots.residual, at.WEIGHTS: slots.weights, at.FACTORS: slots.factors,
        at.STRAIGHT_LINE: program.straight_line, at.POLISH: program.reduced.polish,
        at.STAGE_MULTIPLIERS: slots.stage_multipliers, at.N_STAGE: slots.n_stage_multipliers,
        at.FILLED: program.filled, at.DENSE: program.dense,
    }.items():  # fmt: skip
        layout[position] = value
    names = {"row_start": at.ROW_START, "diagonal": at.DIAGONAL, "column": at.COLUMN, "scatter": at.SCATTER,
             "rows": at.ROWS, "columns": at.COLUMNS, "weight_of": at.WEIGHT_OF, "entry_row": at.ENTRY_ROW,
             "entry_column": at.ENTRY_COLUMN}  # fmt: skip
    for name, start in program.index_start.items():
        layout[names[name]] = start
    layout[at.N_ENTRIES] = program.reduced.jacobian.nnz()
    return layout
