"""A run to its end."""

from __future__ import annotations

from dalembert.engine._spec import RunSpec
from dalembert.errors import StepFailed
from dalembert.runs._drivers import make_run, prepared
from dalembert.runs._simulate import trajectory_of
from dalembert.runs._trajectory import Trajectory


def completed(spec: RunSpec) -> Trajectory:
    """A run to its end; a step that fails is an error."""
    run = make_run(prepared(spec))
    reason = run.advance()
    if reason is not None:
        raise StepFailed(f"step {run.steps_done + 1} from t = {run.time:.6g} failed: {reason}")
    return trajectory_of(spec, run, "done", "", None)
