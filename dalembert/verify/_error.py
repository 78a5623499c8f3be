"""How far a run is from the exact motion, estimated from the same run with half the step size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dalembert._progress import ProgressLine, busy
from dalembert.engine._spec import RunSpec
from dalembert.errors import DalembertError, InputError, StepFailed, UnsupportedSystem
from dalembert.methods._base import refuse_varying
from dalembert.runs._drivers import make_run
from dalembert.runs._pilot import order_of, positions, sizes
from dalembert.runs._simulate import trajectory_of
from dalembert.runs._trajectory import Trajectory
from dalembert.systems._units import units


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
    long as the run did; `progress` forces or forbids a line on the terminal after two seconds.

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
    refuse_varying(method, "da.verify.error")
    try:
        order = order_of(method, system)
    except UnsupportedSystem:
        order = 1
    steps, numbers = int(run.stats["steps"]), np.round((np.asarray(run.t) - run.t[0]) / run.h).astype(int)
    if run.t[0] != start.t or numbers[-1] != steps:
        raise InputError("this is a part of a run, whose errors come from what was before it: give the whole run")
    every = int(numbers[1]) if len(numbers) > 1 else 1
    controls = None if run.controls is None else replace(run.controls, hold=2 * run.controls.hold)
    spec = RunSpec(system, method, start, run.h / 2, 2 * steps, 2 * every, controls=controls)
    with busy("making the run again with half its steps", progress):
        made = make_run(spec)
        with ProgressLine(spec.steps, progress) as line:
            reason = made.advance(line.update)
    if reason is not None:
        raise StepFailed(f"the run with h/2 fails at t = {made.time:.6g}, where that with h does not: {reason}")
    q, finer = (positions(system, each.states[:]) for each in (run, trajectory_of(spec, made, "done", "", None)))
    errors = np.abs(q - finer) * 2**order / (2**order - 1)
    return ErrorEstimate(np.asarray(run.t), errors, float(np.max(errors / sizes(units(system), finer), initial=0.0)), order)
