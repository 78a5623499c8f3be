"""`simulate`: from a system, a method and initial values to a trajectory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from dalembert._progress import ProgressLine, preparing
from dalembert.draw import Drawing
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, StepFailed
from dalembert.mechanisms import Mechanism
from dalembert.methods import OneStepMethod
from dalembert.runs._accurate import accurate
from dalembert.runs._arguments import Arguments, GivenRun, Policy
from dalembert.runs._default_method import default_method
from dalembert.runs._drivers import make_run, prepared
from dalembert.runs._lengths import check_memory
from dalembert.runs._problem import Problem, stated
from dalembert.runs._stored_run import stream
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import State, System

if TYPE_CHECKING:
    from dalembert.engine._run import Run


def simulate(
    system: System | Problem | Mechanism,
    method: OneStepMethod | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    save_every: int = 1,
    save_to: str | os.PathLike[str] | None = None,
    controls: Mapping[str, Any] | None = None,
    newton_tolerance: float | None = None,
    stage_multipliers: bool = False,
    on_failure: Literal["raise", "return"] = "raise",
    **given: Unpack[GivenRun],
) -> Trajectory:
    """Integrate `system` by `method` from consistent initial values, with a constant step size h.

    With `rtol`, the tolerated error of every coordinate relative to its largest magnitude (and `atol`, which is added to it), h
    is chosen, and the method, too, if none is given, from short runs: `run.error` is the estimated error, `run.choice` the
    reason. Without `rtol` and a method a usual one is taken that serves the system; `run.method` names it.

    Give q0 with v0 or p0 (y0 and z0 for an ODAE), or `start` (as `da.consistent` returns it), the step size `h` and either
    `steps` or the final time `t1`; a `Problem` brings all of these. `lam0` and `psi0` are guesses for multipliers that enter
    nonlinearly: they choose the branch. Step k stands at t0 + k*h. Every `save_every`-th state is stored, and the last one.
    With `save_to="run.zarr"` they are written to disk while the run goes on, and `da.resume` can continue it (needs zarr).

    `controls` gives parameters one value for each step, as in controls={"u": array}, or for each of equally many steps;
    `da.PiecewiseLinear(values)` is linear in between.

    A step that cannot be solved raises `da.StepFailed`, whose `.run` holds everything computed before it; with
    `on_failure="return"` the truncated trajectory is returned, its `status` "failed". Ctrl-C returns what was computed, with
    status "interrupted"; before the first step, while equations are compiled, it raises `KeyboardInterrupt`. After two seconds
    a line on the terminal says what is being prepared, then how many steps are done; `progress` forces or forbids it.
    `newton_tolerance` loosens the solution of the step equations from round-off to a relative tolerance:
    it exists to reproduce the energy drift of sloppy solves, whose steps may also end on another branch. `stage_multipliers`
    also stores `run.stage_lam` and `run.stage_psi`, the method's own multipliers next to the end of each step.

    Example:
        >>> import numpy as np, dalembert as da
        >>> pendulum = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2,
        ...                           holonomic=lambda q: [np.hypot(q[0], q[1]) - 1])
        >>> run = da.simulate(pendulum, da.LobattoIIIAB(stages=3), q0=[1, 0], p0=[0, 0], h=0.1, steps=1000)
        >>> bool(np.abs(run.residuals["g"]).max() < 1e-14)
        True

    """
    own: dict[str, Any] = {"save_every": save_every, "newton_tolerance": newton_tolerance, "controls": controls}
    progress, tolerant, posed = given.pop("progress", None), rtol is not None or atol is not None, stated(system)[0]
    chosen = default_method(posed) if method is None and not tolerant and isinstance(posed, System) else method
    arguments = Arguments.of("simulate", system, chosen, given, **own, stage_multipliers=stage_multipliers)
    policy = Policy(progress=progress, on_failure=on_failure, save_to=save_to, drawing=arguments.drawing)
    if save_to is not None and controls is not None:
        raise InputError("a stored run does not keep controls: leave save_to out, or state the force as a function of t")
    with preparing(progress):
        if tolerant:
            return accurate(arguments, rtol, atol, lambda spec: _execute(spec, policy), in_memory=save_to is None)
        return _execute(arguments.single(), policy)


def _execute(spec: RunSpec, policy: Policy) -> Trajectory:
    if policy.save_to is not None:
        return stream(spec, policy)
    if spec.t_end is None:
        check_memory(spec.steps // spec.save_every * 8 * spec.system.n_state)
    return _run(spec, policy)


def _run(spec: RunSpec, policy: Policy) -> Trajectory:
    run = make_run(prepared(spec))
    status, message = "done", ""
    total = spec.steps if spec.t_end is None else 1000
    with ProgressLine(total, policy.progress, "steps" if spec.t_end is None else "thousandths of the time") as line:
        try:
            reason = run.advance(lambda steps: line.update(steps if spec.t_end is None else _passed(spec, run)))
            if reason is not None:
                status, message = "failed", f"step {run.steps_done + 1} from t = {run.time:.6g} failed: {reason}"
        except KeyboardInterrupt:
            status = "interrupted"
            of_all = "" if spec.t_end is not None else f" of {spec.steps}"
            message = f"interrupted after {run.steps_done}{of_all} steps, at t = {run.time:.6g}"
    trajectory = trajectory_of(spec, run, status, message, policy.drawing)
    if status == "failed" and policy.on_failure == "raise":
        raise StepFailed(message + " (what was computed before it is in the exception's .run)", trajectory)
    return trajectory


def _passed(spec: RunSpec, run: Run) -> int:
    """How many thousandths of the time until the end of a run are over."""
    assert spec.t_end is not None
    return round(1000 * (run.time - spec.t0) / (spec.t_end - spec.t0))


def trajectory_of(spec: RunSpec, run: Run, status: str, message: str, drawing: Drawing | None) -> Trajectory:
    """What a run has computed so far."""
    system, method, start = spec.system, spec.method, run.spec.start
    assert isinstance(start, State)
    n, done = system.n_state, run.steps_done
    saved = done // run.save_every
    numbers = np.arange(saved + 1) * run.save_every
    if done % run.save_every:
        run.rows[saved + 1] = run.row
        numbers = np.append(numbers, done)
    rows = run.rows[: len(numbers)]
    if status == "done" and spec.t_end is not None and method.rejects:
        rows[-1, n] = spec.t_end  # to which the last step led, up to a rounding error
    rows, clock = (run.stored(rows), len(method.clock_names)) if method.varies_steps else (rows, 0)
    stage = np.split(rows[:, n + clock :], [system.n_holonomic], axis=1) if run.stage_multipliers else (None, None)
    return Trajectory(
        t=rows[:, n].copy() if clock else run.start.t + numbers * run.h,
        states=rows[:, :n],
        blocks=system.state_blocks,
        h=run.h,
        method=str(method),
        parameters=system.parameters.unflatten(start.theta),
        status=status,
        message=message,
        stats=run.stats(),
        fingerprint=system.fingerprint,
        system=system,
        start=start,
        solver=method,
        stage_lam=stage[0],
        stage_psi=stage[1],
        step_sizes=method.step_sizes(system, rows[:, : n + clock], start.theta, run.h) if clock else None,
        impacts=getattr(run, "impacts", None),
        contacts=getattr(run, "contacts", None),
        drawing=drawing,
        controls=spec.controls,
    )
