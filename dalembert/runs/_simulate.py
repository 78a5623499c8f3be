"""`simulate`: from a system, a method and initial values to a trajectory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dalembert._progress import ProgressLine
from dalembert.draw import Drawing
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, StepFailed
from dalembert.methods import OneStepMethod
from dalembert.runs._arguments import (
    check_memory,
    check_method,
    check_stage_multipliers,
    count,
    given_values,
    number_of_steps,
    positive,
    problem_length,
)
from dalembert.runs._drivers import make_run, prepared
from dalembert.runs._problem import Problem
from dalembert.runs._stored import stream
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import State, System, state_at
from dalembert.systems._consistent import check_domain, check_start, unpack

if TYPE_CHECKING:
    from dalembert.engine._run import Run


def simulate(
    system: System | Problem,
    method: OneStepMethod,
    *,
    q0: Any = None,
    v0: Any = None,
    p0: Any = None,
    y0: Any = None,
    z0: Any = None,
    lam0: Any = None,
    psi0: Any = None,
    start: State | None = None,
    h: float | None = None,
    steps: int | None = None,
    t1: float | None = None,
    t0: float | None = None,
    save_every: int = 1,
    save_to: str | os.PathLike[str] | None = None,
    params: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    newton_tolerance: float | None = None,
    stage_multipliers: bool = False,
    on_failure: Literal["raise", "return"] = "raise",
) -> Trajectory:
    """Integrate `system` by `method` from consistent initial values, with a constant step size h.

    Give q0 with v0 or p0 (y0 and z0 for an ODAE), or `start` (as `da.consistent` returns it), the step size `h` and either
    `steps` or the final time `t1`; a `Problem` brings all of these. `lam0` and `psi0` are guesses for multipliers that enter
    nonlinearly: they choose the branch. Step k stands at t0 + k*h. Every `save_every`-th state is stored, and the last one.
    With `save_to="run.zarr"` they are written to disk while the run goes on, and `da.resume` can continue it (needs zarr).

    A step that cannot be solved raises `da.StepFailed`, whose `.run` holds everything computed before it; with
    `on_failure="return"` the truncated trajectory is returned, its `status` "failed". Ctrl-C returns what was computed, with
    status "interrupted". `newton_tolerance` loosens the solution of the step equations from round-off to a relative tolerance:
    it exists to reproduce the energy drift of sloppy solves. `stage_multipliers` also stores `run.stage_lam` and
    `run.stage_psi`, the method's own multipliers next to the end of each step.

    Example:
        >>> import numpy as np, dalembert as da
        >>> pendulum = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2,
        ...                           holonomic=lambda q: [np.hypot(q[0], q[1]) - 1])
        >>> run = da.simulate(pendulum, da.LobattoIIIAB(stages=3), q0=[1, 0], p0=[0, 0], h=0.1, steps=1000)
        >>> bool(np.abs(run.residuals["g"]).max() < 1e-14)
        True

    """
    h, steps = problem_length(system, h, steps, t1)
    drawing = system.drawing if isinstance(system, Problem) else None
    initial = {"q0": q0, "v0": v0, "p0": p0, "y0": y0, "z0": z0, "lam0": lam0, "psi0": psi0}
    system, start = initial_state(system, start=start, t0=t0, params=params, **initial)
    check_method(method, system, "simulate")
    if on_failure not in ("raise", "return"):
        raise InputError(f'on_failure is "raise" or "return"; got {on_failure!r}')
    h = positive("h", h)
    steps = number_of_steps(steps, t1, start.t, h)
    method.check_start(system, start, h)
    save_every = count("save_every", save_every, least=1)
    if newton_tolerance is not None:
        newton_tolerance = positive("newton_tolerance", newton_tolerance)
    check_stage_multipliers(method, stage_multipliers)
    # Where multipliers enter nonlinearly, those of the stages tell on which branch a stored state is.
    stage_multipliers = bool(stage_multipliers) or not system.linear_in_multipliers
    spec = RunSpec(system, method, start, h, steps, save_every, newton_tolerance, stage_multipliers)
    if save_to is not None:
        return stream(save_to, spec, progress, on_failure, drawing)
    check_memory(steps // save_every * 8 * system.n_state)
    return _run(spec, progress, on_failure, drawing)


def _run(spec: RunSpec, progress: bool | None, on_failure: str, drawing: Drawing | None) -> Trajectory:
    run = make_run(prepared(spec))
    line = ProgressLine(spec.steps, progress)
    status, message = "done", ""
    try:
        reason = run.advance(line.update)
        if reason is not None:
            status, message = "failed", f"step {run.steps_done + 1} from t = {run.time:.6g} failed: {reason}"
    except KeyboardInterrupt:
        status, message = "interrupted", f"interrupted after {run.steps_done} of {spec.steps} steps, at t = {run.time:.6g}"
    finally:
        line.close()
    trajectory = _trajectory(spec, run, status, message, drawing)
    if status == "failed" and on_failure == "raise":
        raise StepFailed(message + " (what was computed before it is in the exception's .run)", trajectory)
    return trajectory


def _trajectory(spec: RunSpec, run: Run, status: str, message: str, drawing: Drawing | None) -> Trajectory:
    system, method = spec.system, spec.method
    n, done = system.n_state, run.steps_done
    saved = done // run.save_every
    numbers = np.arange(saved + 1) * run.save_every
    if done % run.save_every:
        run.rows[saved + 1] = run.row
        numbers = np.append(numbers, done)
    rows = run.rows[: len(numbers)]
    stage = np.split(rows[:, n:], [system.n_holonomic], axis=1) if run.stage_multipliers else (None, None)
    return Trajectory(
        t=run.start.t + numbers * run.h,
        states=rows[:, :n],
        blocks=system.state_blocks,
        h=run.h,
        method=str(method),
        parameters=system.parameters.unflatten(run.start.theta),
        status=status,
        message=message,
        stats=run.stats(),
        fingerprint=system.fingerprint,
        system=system,
        start=run.start,
        solver=method,
        stage_lam=stage[0],
        stage_psi=stage[1],
        impacts=getattr(run, "impacts", None),
        contacts=getattr(run, "contacts", None),
        drawing=drawing,
    )


def initial_state(
    system: System | Problem,
    *,
    start: State | None = None,
    t0: float | None = None,
    params: Mapping[str, Any] | None = None,
    check: bool = True,
    **initial: Any,
) -> tuple[System, State]:
    """The system and the state in which a run starts, from a problem, from initial values or from `start`."""
    system, t0, given = given_values(system, start is not None, t0, initial)
    if start is None:
        return system, state_at(system, t0=0.0 if t0 is None else t0, params=params, **given)
    if not isinstance(start, State):
        raise InputError(f"start is a state that da.consistent returned; got {type(start).__name__}")
    if t0 is not None and t0 != start.t:
        raise InputError(
            f"start= brings its own time, t = {start.t:g}: leave t0 out, or make the state with da.consistent(..., t0=...)"
        )
    if start.fingerprint != system.fingerprint:
        raise InputError("start= belongs to another model: make the state with da.consistent(system, ...) for this one")
    theta = system.parameters.vector(params, base=start.theta)
    if check:
        check_start(system, start.t, start.first, start.second, theta)
    state = unpack(system, start.t, start.packed, theta, start.multipliers)
    if check:
        check_domain(system, state)
    return system, state
