"""How far a run is from the exact motion, estimated from the same run with half the step size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dalembert._progress import ProgressLine, busy
from dalembert.engine._spec import RunSpec
from dalembert.errors import DalembertError, InputError, StepFailed, UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.methods._base import DerivedMethod
from dalembert.runs._arguments import MOST_STEPS
from dalembert.runs._drivers import make_run, run_ensemble
from dalembert.runs._path import positions, sizes
from dalembert.runs._pilot import order_of
from dalembert.runs._simulate import trajectory_of
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import State, System
from dalembert.systems._states import States, with_multipliers
from dalembert.systems._units import units

PART = "this is a part of a run, whose errors come from what was before it: give the whole run"


@dataclass(frozen=True, eq=False)
class ErrorEstimate:
    """Estimated errors of the positions of a run."""

    t: np.ndarray
    q: np.ndarray
    """The error of every coordinate in every stored state, (time, coordinate)."""
    relative: float
    """The largest, relative to the largest magnitude of its coordinate, or to a thousandth of the largest of its unit."""
    order: int
    """That of the method, from which the estimate follows."""

    def __str__(self) -> str:
        return (
            f"estimated error of the positions: {self.relative:.1e} of their size, from half the steps and order {self.order}"
        )


def error(run: Trajectory, *, progress: bool | None = None) -> ErrorEstimate:
    """Estimate the error of the positions of a run: it is made again with half the step size.

    With a method of order p the difference of both, times 2^p/(2^p - 1), is the error of the first run, if h is small enough
    for errors to fall with h^p. Methods that claim no order, and time stepping over impacts, count as p = 1. It takes twice as
    long as the run did; `progress` forces or forbids a line on the terminal after two seconds. Where step sizes vary, both runs
    have states at different times: those of the second one are continued to the times of the first by parts of a step.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.double_pendulum()
        >>> rough, exact = (da.simulate(problem, da.LobattoIIIAB(s), h=0.05, t1=10.0) for s in (3, 8))
        >>> estimate = da.verify.error(rough)
        >>> true = abs(rough.q - exact.q).max()
        >>> bool(0.9 < estimate.q.max() / true < 1.1)
        True

    """
    if not isinstance(run, Trajectory):
        raise InputError(f"error takes a run that da.simulate returned; got {type(run).__name__}")
    system, method, start = run.system, run.solver, run.start
    if system is None or start is None:
        raise DalembertError("this run was loaded without its model, so that it cannot be made again: simulate it")
    if method is None:
        raise DalembertError(
            "this run was loaded without its method, so that it cannot be made again: da.resume(path, system, method) gives a "
            "stored run both"
        )
    if method.starting is not None:
        raise UnsupportedSystem(
            f"{method} prepares its first step by h, so that a run with h/2 starts elsewhere: it has no estimate"
        )
    if method.varies_steps:
        assert isinstance(method, DerivedMethod)
        finer, order = _beside_varying(run, system, start, method, progress), _order(method.method, system)
    else:
        finer, order = _with_half(run, system, start, method, progress), _order(method, system)
    errors = np.abs(positions(system, run.states[:]) - finer) * 2**order / (2**order - 1)
    return ErrorEstimate(np.asarray(run.t), errors, float(np.max(errors / sizes(units(system), finer), initial=0.0)), order)


def _order(method: OneStepMethod, system: System) -> int:
    try:
        return order_of(method, system)
    except UnsupportedSystem:
        return 1


def _with_half(run: Trajectory, system: System, start: State, method: OneStepMethod, progress: bool | None) -> np.ndarray:
    """The positions of the same run with h/2 at its stored states."""
    steps, numbers = int(run.stats["steps"]), np.round((np.asarray(run.t) - run.t[0]) / run.h).astype(int)
    if run.t[0] != start.t or numbers[-1] != steps:
        raise InputError(PART)
    every = int(numbers[1]) if len(numbers) > 1 else 1
    controls = None if run.controls is None else replace(run.controls, hold=2 * run.controls.hold)
    spec = RunSpec(system, method, start, run.h / 2, 2 * steps, 2 * every, controls=controls)
    return positions(system, _made(spec, progress).states[:])


def _made(spec: RunSpec, progress: bool | None) -> Trajectory:
    """A run with half the step size."""
    with busy("making the run again with half its steps", progress):
        made = make_run(spec)
        with ProgressLine(spec.steps, progress if spec.t_end is None else False) as line:
            reason = made.advance(line.update)
    if reason is not None:
        raise StepFailed(f"the run with h/2 fails at t = {made.time:.6g}, where that with h does not: {reason}")
    return trajectory_of(spec, made, "done", "", None)


def _beside_varying(run: Trajectory, system: System, start: State, method: DerivedMethod, progress: bool | None) -> np.ndarray:
    """The positions of a run in steps half as long at the times of one in steps that vary."""
    t, steps = np.asarray(run.t), int(run.stats["steps"])
    if t[0] != start.t:
        raise InputError(PART)
    end, most = (float(t[-1]), MOST_STEPS) if "rate" in method.clock_names else (None, 2 * steps)
    made = _made(RunSpec(system, method.halved(system), start, run.h / 2, most, t_end=end), progress)
    assert made.step_sizes is not None
    forwards = np.sign(run.h)
    before = np.searchsorted(forwards * made.t, forwards * t, side="right") - 1
    found, tau = np.asarray(made.states)[before], t - made.t[before]
    apart = np.flatnonzero(np.abs(tau) > 1e-14 * np.abs(made.step_sizes[before]))  # others are at times that are there
    if len(apart):
        each = (np.tile(values, (len(apart), 1)) for values in (start.theta, start.multipliers))
        states = with_multipliers(States(system, made.t[before[apart]], found[apart], *each))
        ends = run_ensemble(RunSpec(system, method.method, states, run.h, 1), sizes=tau[apart])
        if ends.failures:
            raise StepFailed(f"a part of a step fails near t = {t[apart[min(ends.failures)]]:.6g}")
        found[apart] = ends.last[:, : system.n_state]
    return positions(system, found)
