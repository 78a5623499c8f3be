"""An ensemble in this process: made, advanced to its end with progress, and handed back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert._progress import ProgressLine
from dalembert.compiler import Watch
from dalembert.engine._spec import RunSpec
from dalembert.methods import OneStepMethod
from dalembert.runs._drivers import driver_of, make_ensemble_run, prepared
from dalembert.systems._states import States

if TYPE_CHECKING:
    from dalembert.engine._ensemble_run import EnsembleRun


def run_ensemble(
    spec: RunSpec,
    *,
    sizes: np.ndarray | None = None,
    watch: Watch | None = None,
    workers: int | None = None,
    simd: bool | None = None,
    progress: bool | None = None,
    tally_impacts: bool = False,
    began: Callable[[Any], None] | None = None,
) -> EnsembleRun:
    """The engine's run, after it has ended or was interrupted; `sizes` are step sizes of the members where they differ.

    `began` is shown the run before it advances, so that others can stop it.
    """
    states, method = spec.start, spec.method
    assert isinstance(states, States)
    if type(method).check_start is not OneStepMethod.check_start:
        for member in range(len(states)):
            method.check_start(spec.system, states[member], spec.h if sizes is None else float(sizes[member]))
    options = {"tally_impacts": tally_impacts} if driver_of(method).has_impacts else {}
    run = make_ensemble_run(prepared(spec), sizes=sizes, watch=watch, simd=simd, workers=workers, **options)
    if began is not None:
        began(run)
    line = ProgressLine(spec.steps * len(states), progress)
    try:
        run.advance(line.update)
    finally:
        line.close()
    return run
