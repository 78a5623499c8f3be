"""`dalembert resume`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import dalembert as da
from dalembert._run_store import RunStore
from dalembert.cli._read import Unusable, assignments, count, method, model
from dalembert.cli._run import finish, measure, prepare_files, table, write
from dalembert.stored import is_sweep

SUMMARY = "go on with a run that was written to disk"

DESCRIPTION = """\
Go on with a run that `dalembert run ... --save-to run.zarr` or da.simulate(..., save_to="run.zarr") began, as if it had never
stopped, and report on it.

PROBLEM is the model that the run began with: a name that `dalembert list problems` shows, or mymodel.py:name. Initial values,
step size and parameters are in the store.
"""

EPILOG = """\
examples:
  dalembert run pendulum --steps 1e5 --save-every 10 --save-to run.zarr
  dalembert resume run.zarr pendulum
  dalembert resume run.zarr pendulum --steps 2e5 --plot run.png
  dalembert resume run.zarr mymodel.py:system
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert resume`."""
    parser.add_argument("store", metavar="RUN.zarr", help="what --save-to wrote")
    parser.add_argument("problem", metavar="PROBLEM", help="a name of the catalogue, or mymodel.py:name")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="as for the run that began")
    parser.add_argument("--method", metavar="NAME", help="the run's method, where its name alone does not say all about it")
    parser.add_argument("--steps", metavar="N", help="another total number of steps")
    out = parser.add_argument_group("output")
    out.add_argument("--save", metavar="FILE.npz", help="also write the run as one file")
    out.add_argument("--plot", metavar="FILE", help="draw the run as .png, .pdf or .svg")
    out.add_argument("--animate", metavar="FILE", help="film the mechanism as .html, .gif or .mp4")
    out.add_argument("--json", action="store_true", help="print the report as JSON, and nothing else")


def execute(options: argparse.Namespace) -> int:
    """Go on, write the files, report."""
    path = Path(options.store)
    if is_sweep(path):
        raise Unusable(f"{path} is a sweep of many runs: go on with it in Python, by da.resume")
    header = RunStore.open(path).header
    chosen = model(options.problem, assignments(options.set))
    if chosen.params:
        raise Unusable(f"the parameters of the run are in {path}: leave --set out")
    prepare_files(options, chosen)
    stepper = method(options.method or header.method, None)
    run = da.resume(
        path,
        chosen.subject,
        stepper,
        steps=count("--steps", options.steps),
        progress=sys.stderr.isatty(),
        on_failure="return",
    )
    files, troubles = write(run, chosen, options)
    report = measure(run, chosen, [str(path), *files])
    print(json.dumps(report, indent=2) if options.json else table(report))
    return finish(run, troubles)
