"""Go on with a run that was written to disk.

Go on with a run that `dalembert run ... --save-to run.zarr` or da.simulate(..., save_to="run.zarr") began, as if it had never
stopped, and report on it.

PROBLEM is the model that the run began with: a name that `dalembert list problems` shows, or mymodel.py:name. Initial values,
step size and parameters are in the store.

examples:
  dalembert run pendulum --steps 1e5 --save-every 10 --save-to run.zarr
  dalembert resume run.zarr pendulum
  dalembert resume run.zarr pendulum --steps 2e5 --plot run.png
  dalembert resume run.zarr mymodel.py:system
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import dalembert as da
from dalembert._progress import busy
from dalembert.cli._methods import method
from dalembert.cli._models import model
from dalembert.cli._numbers import assignments, count
from dalembert.cli._report import add_output, conclude, prepare
from dalembert.cli._user_code import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert resume`."""
    parser.add_argument("store", metavar="RUN.zarr", help="what --save-to wrote")
    parser.add_argument("problem", metavar="PROBLEM", help="a name of the catalogue, or mymodel.py:name")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="as for the run that began")
    parser.add_argument("--method", metavar="NAME", help="the run's method, where its name alone does not say all about it")
    parser.add_argument("--steps", metavar="N", help="another total number of steps")
    out = parser.add_argument_group("output")
    add_output(out, saved="also write the run as one file")


def execute(options: argparse.Namespace) -> int:
    """Go on, write the files, report."""
    from dalembert.storage._run_store import RunStore
    from dalembert.storage._sweep_store import is_sweep

    path = Path(options.store)
    if is_sweep(path):
        raise UsageError(f"{path} is a sweep of many runs: go on with it in Python, by da.resume")
    header = RunStore.open(path).header
    with busy(f"building {options.problem}"):
        chosen = model(options.problem, assignments(options.set))
    if chosen.params:
        raise UsageError(f"the parameters of the run are in {path}: leave --set out")
    output = prepare(options, chosen)
    stepper = method(options.method or header.method)
    run = da.resume(
        path,
        chosen.subject,
        stepper,
        steps=count("--steps", options.steps),
        progress=sys.stderr.isatty(),
        on_failure="return",
    )
    return conclude(run, chosen, output, str(path))
