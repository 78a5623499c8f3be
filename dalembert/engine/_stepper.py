"""One method's step as the driver sees it: a compiled program, its block of memory and its counters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dalembert.compiler import Program, build_program, first_guess
from dalembert.compiler._independence import combined_at, independent
from dalembert.compiler._lane_kernels import LaneCode
from dalembert.compiler._memory import Layout
from dalembert.compiler._metric import metric_at
from dalembert.compiler._stopping import FAR, fastest, watchful
from dalembert.engine import _driver as driver
from dalembert.engine._layout import KERNELS, LAYOUT, NEVER, NOT_BY_COMBINATIONS, WHERE_CONSTRAINTS_DO, Records
from dalembert.engine._rescue import orientation_at, tangent_guess
from dalembert.errors import InconsistentStart
from dalembert.methods import OneStepMethod
from dalembert.methods._clock import NEVER as NO_END
from dalembert.systems import State, System
from dalembert.systems._consistent import unpack
from dalembert.systems._redundant import hidden_parts
from dalembert.systems._states import States

LEAST_STEP = 1e-14
"""Of the time, and of the first step size: shorter steps lead nowhere."""

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
    counts: Records
    numbers: Records
    known: np.ndarray
    alone: bool = False
    """Whether the program is chosen as in a new process."""
    watchful: bool = True
    """Whether a solution may be in doubt."""
    given: Given | None = None
    """What would else be found out here."""
    clock: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """The time and the rate of steps at the start, where step sizes vary: then h is the size of the pending step."""
    t_end: float = NO_END
    """When the run ends, where step sizes vary; else in no time."""
    renewals: int = 0
    """How often combinations of redundant constraints were chosen anew."""
    trouble: str = ""
    """Why other pivots than the program's own were needed, if they were."""
    warned: bool = False
    """Whether the user has been told so."""
    program: Program = field(init=False)
    memory: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self._first_system = self.system
        if self.given is None:
            self._first_program = build_program(
                self.system, self.method, self.start, self.h, contiguous=self.contiguous, alone=self.alone
            )
            guess = first_guess(self._first_program.reduced, self.system, self.start, self.h)
            self._sign = float(orientation_at(self.system, self.start))
        else:
            self._first_program, guess, self._sign = self.given
        self.begin(self.start, np.zeros(self._first_program.layout.n_carried), guess)

    def begin(self, state: State, compensation: np.ndarray, guess: np.ndarray | None = None) -> None:
        """Start afresh from a state: guess, factors and what was learnt of their cost forget all earlier steps."""
        if self.system.combines is not None:
            self.system, self.start = self._first_system, state  # with combinations of its own
        self._begun, self.metric = state, metric_at(States.of(self.system, state))[0]
        if guess is None:
            guess = first_guess(self._first_program.reduced, self.system, state, self.h)
        self._load(self._first_program, state.packed, guess)
        self.memory[self.slots("clock")] = self.clock
        self.memory[self.slots("t_end")] = math.copysign(NO_END, self.h) if self.t_end == NO_END else self.t_end
        self.memory[self.slots("compensation")] = compensation
        begin_steps(self.counts, self.numbers, self.known)

    def _load(self, program: Program, state: np.ndarray, x: np.ndarray) -> None:
        self.program = program
        self.memory = np.zeros(program.memory_size)
        write_start(self.memory, program.layout, self.h, self.start.theta, state, x, self.metric, self.tolerance == 0.0)
        set_rules(self.counts, self.numbers, program, self.system, self._sign, self.tolerance)
        self.numbers["far"] = self.numbers["far"] if self.watchful else np.inf

    def slots(self, name: str) -> slice:
        """Where a part of the memory lies."""
        layout = self.program.layout
        sizes = {"x": layout.n_x, "accepted": layout.n_stage_multipliers, "compensation": layout.n_carried}
        sizes |= {"clock": layout.n_clock, **dict.fromkeys(("last_h", "taken", "t_end"), min(1, layout.n_clock))}
        return slice(getattr(layout, name), getattr(layout, name) + sizes.get(name, layout.n_state))

    def set_parameters(self, theta: np.ndarray) -> None:
        """Make the pending step with other parameters."""
        layout = self.program.layout
        self.memory[layout.theta : layout.theta + len(theta)], self.memory[layout.prepared] = theta, 0.0

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
        return bool(self.counts["mode"] != driver.GUESS_READY)

    def use(self, program: Program) -> None:
        """Go on with another program (another pivot order) from the current state."""
        names = ("compensation", "accepted", "clock", "last_h", "taken", "t_end")
        now, kept = self.time, {name: self.memory[self.slots(name)].copy() for name in names}
        self._load(program, self.state, self.unknowns)
        self.memory[program.layout.time] = now
        for name, values in kept.items():
            self.memory[self.slots(name)] = values

    def renew(self) -> bool:
        """Combine redundant constraints anew for the pending step; False if there are none, or that would change nothing."""
        if self.system.combines is None:
            return False
        stale = not np.array_equal(self.start.packed, self.state)
        here = combined_at(self.system, self.time, self.state, self.start.theta) if stale else None
        here = here or self._other_rows()
        if here is None:
            return False
        self.start = self._begun = here
        self.metric = metric_at(States.of(self.system, here))[0]
        x = first_guess(self.program.reduced, self.system, here, self.h)
        write_start(self.memory, self.program.layout, self.h, here.theta, self.state, x, self.metric, self.tolerance == 0.0)
        self.counts["mode"], self.counts["age"], self.counts["fresh"] = driver.GUESS_READY, -1, 1
        self.renewals += 1
        return True

    def shorten(self) -> bool:
        """Let the pending step be made with a quarter of its size; False if that would be next to nothing."""
        if abs(self.h) < LEAST_STEP * max(abs(self.time), abs(1 / self.clock[1])):
            return False
        self.h /= 4
        guess = tangent_guess(self)
        self.memory[self.program.layout.clock + 1] = 1 / self.h
        self.memory[self.slots("x")] = self.unknowns if guess is None else guess
        self.counts["mode"], self.counts["age"] = driver.GUESS_READY, -1
        self.counts["rejected"] += 1
        return True

    def give(self, x: np.ndarray) -> None:
        """Let the driver take a solution of the pending step that was found elsewhere."""
        self.memory[self.slots("x")] = x
        self.counts["mode"], self.counts["age"] = driver.SOLVED, -1
        self.counts["rescued"] += 1

    def _other_rows(self) -> State | None:
        """Combine other rows than at the start of the run, in another program, where those do not serve any more.

        If they do, rows are measured anew: at the start some may have shared no coordinate with the others, as those of a wheel
        that rolls along an axis, so that nothing said how they compare.
        """
        original, (theta, *_, factors) = self.system.combines[0], hidden_parts(self.system, self.start.theta)
        for known in (factors, None):
            try:
                system, here = independent(original, unpack(original, self.time, self.state, theta), known)
            except InconsistentStart:
                continue
            if system is original or system.n_multipliers != self.system.n_multipliers:
                continue
            if system is not self.system:
                self.system, self.start = system, here
                self.use(build_program(system, self.method, here, self.h, contiguous=self.contiguous))
                return here
            if known is None and not np.allclose(hidden_parts(system, here.theta)[3], factors, rtol=0.1, atol=0.0):
                return here
        return None


def write_start(
    slots: np.ndarray,
    layout: Layout,
    h: float | np.ndarray,
    theta: np.ndarray,
    state: np.ndarray,
    x: np.ndarray,
    metric: np.ndarray,
    exact: bool = True,
) -> None:
    """What the memory of a program holds before the first step, for one trajectory or many: slots are the first axis.

    Without `exact`, where steps are solved to a tolerance, what guesses miss is not continued: some of it is what is left.
    """
    slots[layout.h], slots[layout.exact], slots[layout.prepared] = h, float(exact), 0.0
    for first, values in ((layout.theta, theta), (layout.state, state), (layout.x, x), (layout.metric, metric)):
        slots[first : first + len(values)] = values


def set_rules(
    counts: Records,
    numbers: Records,
    program: Program,
    system: System,
    sign: float | np.ndarray,
    tolerance: float,
) -> None:
    """By what the driver judges iterations and steps of a program, for one trajectory or many."""
    counts["sign"], numbers["tolerance"] = sign, tolerance**2
    numbers["fastest"], numbers["cost_ratio"] = fastest(system), program.cost_ratio
    numbers["far"] = FAR if watchful(system) else np.inf
    numbers["dense_ratio"] = program.layout.n_x / 3 + 6  # n^3/3 products and scaling, against n^2


def begin_steps(counts: Records, numbers: Records, known: np.ndarray) -> None:
    """Let the driver forget all earlier steps, of one trajectory or many."""
    counts["age"], counts["mode"], counts["periods"], counts["judged"], counts["fresh"] = -1, driver.GUESS_READY, 0, 0, 1
    counts["pivoted_left"], counts["patience"] = 0, 0
    numbers["rate"], numbers["period_cost"] = 1.0, 0.0
    known[...] = 0.0


def _turns(system: System) -> int:
    """Whether the orientation may turn in a step that was followed."""
    if not system.linear_in_multipliers:
        return NEVER
    return WHERE_CONSTRAINTS_DO if system.combines is None else NOT_BY_COMBINATIONS


def driver_records(programs: Sequence[Program], codes: Sequence[Program | LaneCode]) -> tuple[np.ndarray, np.ndarray]:
    """Kernels of programs, compiled for one trajectory or for lanes, and where things lie in their memory and tables."""
    kernels, layouts = np.zeros(len(programs), dtype=KERNELS), np.zeros(len(programs), dtype=LAYOUT)
    for program, code, addresses, layout in zip(programs, codes, kernels, layouts, strict=True):
        way_out = {} if program.way_out is None else program.way_out.addresses
        for name, address in (code.code.addresses | way_out).items():
            addresses[name] = address
        slots, n_entries = program.layout, program.reduced.jacobian.nnz()
        places: dict[str, int] = {
            **program.index_start, "state": slots.state, "delta": slots.delta, "x": slots.x, "residual": slots.residual,
            "weights": slots.weights, "metric": slots.metric, "last_unknowns": slots.last_unknowns,
            "stage_multipliers": slots.stage_multipliers, "n_stage": slots.n_stage_multipliers, "n_state": slots.n_carried,
            "n_x": slots.n_x, "slots": slots.work, "n_entries": n_entries, "dense": program.dense,
            "straight_line": program.straight_line, "polish": program.reduced.polish,
            "taken": slots.taken, "turns": _turns(program.reduced.equations.step.definition),
        }  # fmt: skip
        for name, place in places.items():
            layout[name] = place
    return kernels, layouts
