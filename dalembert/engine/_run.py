"""A run: the driver's arrays, the rescue of steps that the compiled Newton iteration could not solve, and diagnosis."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from dalembert.compiler import Program, SingularMatrix, build_program, first_guess
from dalembert.engine import _driver as driver
from dalembert.engine import _layout as at
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
        self.rows = np.empty((self.steps // self.save_every, 2 * self.system.dim + extra))
        self._place(np.concatenate([self.start.q, self.start.p]))
        self.memory[self._slots("x")] = first_guess(self.program.reduced, self.system, self.start, self.h)
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
            at.RESIDUAL: slots.residual, at.WEIGHTS: slots.weights, at.FACTORS: slots.factors, at.N_PIVOTS: program.n_pivots,
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
        self.numbers[at.BASE_SIGN] = program.base_sign

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
                reason = self._rescue()
                if reason is not None:
                    return reason
            done = self.steps_done - before
            if done:
                chunk = int(np.clip(chunk * CHUNK_SECONDS / max(elapsed, 1e-4), 1, min(10 * chunk, self.steps)))
            if report is not None:
                report(self.steps_done)
            if done and not np.all(np.isfinite(self.memory[self._slots("state")])):
                return "the state is no longer finite"
        return None

    def _advance_to(self, last_step: int) -> int:
        return driver.advance(
            self.program.addresses, self.layout, self.program.index, self.memory, self.counts, self.numbers, self.known,
            self.guess, self.work, self.rows, last_step, self.save_every, self.start.t, self.h,
        )  # fmt: skip

    # -- the last resort: exact Newton with LAPACK ----------------------------------------------------------------------

    def _rescue(self) -> str | None:
        """Solve the pending step by damped exact Newton; None on success, else the reason of the failure."""
        began = time.perf_counter()
        reduced, slots = self.program.reduced, self.program.layout
        data = (self.time, self.h, self.start.theta, self.state)
        equations = ca.Function("equations", [reduced.x, *reduced.data], [reduced.residual, reduced.jacobian])
        guesses = [self.unknowns]
        tangent = self._tangent_guess()
        if tangent is not None:
            guesses.append(tangent)
        flipped = False
        for guess in guesses:
            x = exact_newton(lambda y: tuple(np.asarray(value, dtype=float) for value in equations(y, *data)), guess)
            if x is None:
                continue
            sign = np.linalg.slogdet(np.asarray(equations(x, *data)[1], dtype=float))[0]
            if self.counts[at.SIGN] and sign != self.counts[at.SIGN] and self.system.n_holonomic:
                flipped = True
                continue
            self._repivot(x)
            self.memory[slots.x : slots.x + slots.n_x] = x
            self.counts[at.MODE] = driver.SOLVED
            self.counts[at.AGE] = -1
            self.rescued += 1
            self.wall_time += time.perf_counter() - began
            return None
        return self._diagnose(flipped)

    def _tangent_guess(self) -> np.ndarray | None:
        n = self.system.dim
        state = self.state
        try:
            here = state_at(self.system, state[:n], p0=state[n:], t0=self.time, theta=self.start.theta, check=False)
        except np.linalg.LinAlgError:
            return None
        return first_guess(self.program.reduced, self.system, here, self.h)

    def _repivot(self, x: np.ndarray) -> None:
        """Choose a new pivot order if the fixed one has become unstable at x."""
        n = self.system.dim
        state = self.state
        here = State(self.time, state[:n], np.zeros(n), state[n:], np.zeros(0), {}, self.start.theta)
        try:
            program = build_program(self.system, self.method, here, self.h, guess=x)
        except SingularMatrix:
            return
        if program.order != self.program.order:
            compensation = self.memory[self._slots("compensation")].copy()
            self._load(program)
            self._place(state)
            self.memory[self._slots("compensation")] = compensation

    def _diagnose(self, flipped: bool) -> str:
        n = self.system.dim
        q, p = self.state[:n], self.state[n:]
        t, theta = self.time, self.start.theta
        for name, arguments in {"H_p": (t, q, p), "H_q": (t, q, p), "force": (t, q, p), "g": (t, q), "G": (t, q)}.items():
            if not np.all(np.isfinite(self.system.evaluate(name, *arguments, theta=theta))):
                return f"the model left its domain: {name} is not finite at q = {q}, p = {p}"
        if self.system.n_holonomic:
            v = self.system.evaluate("H_p", t, q, p, theta=theta)
            here, there = (self._independence(t + k * self.h, q + k * self.h * v) for k in (0, 1))
            if flipped or min(here, there) < 1e-3:
                return (
                    "the holonomic constraints lose independence here (g_q loses rank: its smallest singular value is "
                    f"{min(here, there):.1e}), so the motion beyond is not determined: change the start or remove the singular "
                    "configuration from the model"
                )
        return "Newton's iteration for the step equations diverged: reduce h, or check that the model is smooth here"

    def _independence(self, t: float, q: np.ndarray) -> float:
        G = self.system.evaluate("G", t, q, theta=self.start.theta)
        if not np.all(np.isfinite(G)):
            return 0.0
        return float(np.linalg.svd(G / np.maximum(np.linalg.norm(G, axis=1, keepdims=True), 1e-300), compute_uv=False)[-1])


def one_step(system: MechanicalSystem, method: OneStepMethod, state: State, h: float) -> tuple[State, np.ndarray]:
    """One step of size h, which may be negative: the new state and the unknowns of the step."""
    run = Run(system, method, state, float(h), 1, 1)
    reason = run.advance()
    if reason is not None:
        raise StepFailed(f"the step from t = {state.t:g} failed: {reason}")
    n = system.dim
    new = run.state
    return state_at(system, new[:n], p0=new[n:], t0=state.t + h, theta=state.theta, check=False), run.unknowns


def exact_newton(equations: Callable[[np.ndarray], tuple[np.ndarray, ...]], x: np.ndarray) -> np.ndarray | None:
    """Damped Newton iteration to round-off, or None."""
    with np.errstate(all="ignore"):  # what overflows is not finite, and so not accepted
        return _damped_newton(equations, x)


def _damped_newton(equations: Callable[[np.ndarray], tuple[np.ndarray, ...]], x: np.ndarray) -> np.ndarray | None:
    residual, jacobian = equations(x)
    norm, previous = np.linalg.norm(residual), np.inf
    for _ in range(60):
        if not (np.isfinite(norm) and np.all(np.isfinite(jacobian))):
            return None
        try:
            increment = np.linalg.solve(jacobian, residual.ravel())
        except np.linalg.LinAlgError:
            return None
        size = float(np.linalg.norm(increment)) / max(float(np.linalg.norm(x)), 1e-300)
        damping = 1.0
        while damping > 1e-4:
            trial = x - damping * increment
            trial_residual, trial_jacobian = equations(trial)
            trial_norm = np.linalg.norm(trial_residual)
            if trial_norm < (1 - damping / 4) * norm or size < 1e-9:
                break
            damping /= 2
        else:
            return None
        x, residual, jacobian, norm = trial, trial_residual, trial_jacobian, trial_norm
        if (size < 1e-9 and size >= previous / 2) or size == 0.0:
            return x
        previous = size
    return None
