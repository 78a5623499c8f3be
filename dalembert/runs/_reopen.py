"""What is on disk, opened again: `load` reads a file, a run or a sweep, `resume` continues a run or a sweep."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Literal

from dalembert._progress import preparing
from dalembert.errors import InputError
from dalembert.mechanisms import Mechanism
from dalembert.methods import OneStepMethod
from dalembert.runs._arguments import Policy
from dalembert.runs._problem import Problem, stated
from dalembert.runs._stored_run import resume_run
from dalembert.runs._sweep import load_sweep, resume_sweep
from dalembert.runs._trajectory import StoredTrajectory, Trajectory
from dalembert.storage._sweep_store import is_sweep
from dalembert.systems import System
from dalembert.systems._model import one_line
from dalembert.systems._ramped import ramped


def load(path: str | os.PathLike[str], system: System | Problem | Mechanism | None = None) -> Any:
    """Read what `run.save` or `save_to=` wrote: a `Trajectory`, or the `Ensemble` of a sweep.

    Nothing in it is executed; the model is not in it. With `system`, the model that the run was made with, which is checked,
    the run also knows what follows from its states: energies, multipliers, and by `run.of(part)` the parts of a mechanism. A
    store can be read while it is written: what is complete is there.

    Example:
        >>> import os, tempfile, dalembert as da
        >>> m = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
        >>> rod = m.rod("rod", (0, 0), (0.4, 0), mass=0.3)
        >>> hinge = m.revolute(m.ground, rod, at=(0, 0))
        >>> path = os.path.join(tempfile.mkdtemp(), "run.zarr")
        >>> run = da.simulate(m, da.LobattoIIIAB(3), h=0.01, steps=20, save_to=path)
        >>> bool((da.load(path, m).of(hinge).angle == run.of(hinge).angle).all())
        True

    """
    _check_path(path)
    model, drawing = stated(system)
    if os.path.isdir(path):
        return load_sweep(path, model, drawing) if is_sweep(path) else StoredTrajectory.open(path, model, drawing)
    run = Trajectory.load(path)
    if model is None:
        return run
    if isinstance(model, System) and run.controls is not None and len(run.controls.ramps):
        model = ramped(model, tuple(run.controls.ramps.tolist()))
    if not isinstance(model, System) or model.fingerprint != run.fingerprint:
        raise InputError(f"the run in {path} belongs to another model: give the system that it was made with, or none")
    return replace(run, system=model, drawing=drawing)


def resume(
    path: str | os.PathLike[str],
    system: System | Problem | Mechanism,
    method: OneStepMethod,
    *,
    steps: int | None = None,
    progress: bool | None = None,
    on_failure: Literal["raise", "return"] = "raise",
    executor: Any = None,
    workers: int | None = None,
) -> Any:
    """Go on with a run that `simulate(..., save_to=path)` began, bit for bit as if it had never stopped.

    The model and the method are not in the store: give those that the run was started with, which is checked. Initial values,
    step size and parameters come from the store. The chunk that was under way when the run stopped is computed again. `steps`
    replaces the total number of steps, so that a finished run can be made longer.

    Of a sweep that `simulate_many(..., save_to=path)` began, the missing parts are computed, by `executor` or in `workers`
    threads.

    Example:
        >>> import os, tempfile, numpy as np, dalembert as da
        >>> folder, pendulum, method = tempfile.mkdtemp(), da.problems.pendulum(), da.Rattle()
        >>> paths = [os.path.join(folder, name) for name in ("whole.zarr", "halves.zarr")]
        >>> whole = da.simulate(pendulum, method, h=0.01, steps=2000, save_to=paths[0])
        >>> half = da.simulate(pendulum, method, h=0.01, steps=1000, save_to=paths[1])
        >>> halves = da.resume(paths[1], pendulum, method, steps=2000)
        >>> np.array_equal(whole.q, halves.q)
        True

    """
    _check_path(path)
    model, drawing = stated(system)
    policy = Policy(progress=progress, on_failure=on_failure, executor=executor, workers=workers, drawing=drawing)
    if is_sweep(path):
        if steps is not None:
            raise InputError(f"the runs of the sweep {path} have the length that they began with: leave steps= out")
        return resume_sweep(path, model, method, policy)
    if executor is not None or workers is not None:
        raise InputError(f"{path} is a single run, which one processor computes: leave executor= and workers= out")
    with preparing(progress):
        return resume_run(path, model, method, steps, policy)


def _check_path(path: Any) -> None:
    if not isinstance(path, (str, os.PathLike)) or "\0" in str(path):
        raise InputError(f'give the name of a run on disk, as in da.load("run.zarr"); got {one_line(path)}')
