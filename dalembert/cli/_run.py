"""`dalembert run`."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

import dalembert as da
from dalembert.cli._read import Model, Unusable, assignments, count, method, model, number, vector
from dalembert.errors import DalembertError, InconsistentStart
from dalembert.systems import IndexTwoDAE, MechanicalSystem, System
from dalembert.trajectory import Trajectory

SUMMARY = "simulate a problem of the catalogue, or a model of your own"

DESCRIPTION = """\
Simulate a problem of the catalogue, or a model of your own, and report on the run.

PROBLEM is a name that `dalembert list problems` shows, or mymodel.py:name, where `name` is a da.problems.Problem, a function
that returns one, or a da.Hamiltonian or da.Lagrangian (then give --q0, --p0 or --v0, --h and --steps), a da.ODAE (then give
--y0, --z0, --h and --steps) or a da.IndexTwoDAE (then --z0 is a guess of the algebraic variables, needed where they enter
nonlinearly).
"""

EPILOG = """\
examples:
  dalembert run double_pendulum
  dalembert run double_pendulum --method Rattle --h 0.02 --t1 100 --plot rattle.png
  dalembert run double_pendulum --set m2=3 --set l2=0.5 --save run.npz
  dalembert run chain --set links=16 --steps 1e5 --save-every 100 --plot chain.pdf
  dalembert run pendulum --steps 1e5 --save-every 10 --save-to run.zarr
  dalembert run pendulum --method 'RadauIIA(stages=3, projected=True)'
  dalembert run mass_on_surface --method 'SymplecticEuler(variant="natural")' --plot friction.png
  dalembert run mass_on_surface --method 'compose(SymplecticEuler, 4)' --set c_f=0.2
  dalembert run stadium_billiard --set B=0.5 --steps 300 --plot stadium.png
  dalembert run mymodel.py:system --q0 1,0 --p0 0,0 --h 1/50 --steps 1000 --plot mine.png
  dalembert run heavy_top --steps 400 --animate top.html
  dalembert run mymodel.py:system --q0 3,4 --v0 1,0 --project --h 0.1 --steps 100

Numbers may be arithmetic: 1/50, pi/6, -sqrt(0.75), 2*sin(pi/40). A step that cannot be solved ends the run with exit code 1,
Ctrl-C with 130; what was computed until then is reported, saved and plotted all the same.
"""


MECHANICS, NONHOLONOMIC, ODAE = "LobattoIIIAB", "GaussLobattoSPARK(stages=2)", "compose(SymplecticEuler, 2)"
INDEX_TWO, IMPACTS = "SRK(coefficients='gauss')", "CVA"
"""The methods that are taken if none is named."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert run`."""
    parser.add_argument("problem", metavar="PROBLEM", help="a name of the catalogue, or mymodel.py:name")
    how = parser.add_argument_group("method")
    how.add_argument("--method", metavar="NAME", help=f"see dalembert list methods ({MECHANICS}, if that serves the model)")
    how.add_argument("--stages", metavar="S", help="number of stages of the method")
    how.add_argument("--h", metavar="H", help="step size; the problem's own by default")
    length = how.add_mutually_exclusive_group()
    length.add_argument("--steps", metavar="N", help="number of steps; the problem's own by default")
    length.add_argument("--t1", metavar="T", help="final time, instead of --steps")
    what = parser.add_argument_group("model")
    what.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="change a constant; may be repeated")
    what.add_argument("--q0", metavar="LIST", help="initial positions, with commas between them")
    momenta = what.add_mutually_exclusive_group()
    momenta.add_argument("--p0", metavar="LIST", help="initial momenta")
    momenta.add_argument("--v0", metavar="LIST", help="initial velocities")
    what.add_argument("--y0", metavar="LIST", help="initial values of y, for a da.ODAE or da.IndexTwoDAE")
    what.add_argument("--z0", metavar="LIST", help="initial values of z for a da.ODAE, a guess of them for a da.IndexTwoDAE")
    what.add_argument("--lam0", metavar="LIST", help="guess of multipliers that enter nonlinearly: it chooses the branch")
    what.add_argument("--project", action="store_true", help="project the initial values onto the constraints first")
    out = parser.add_argument_group("output")
    out.add_argument("--save-every", metavar="K", default="1", help="store every K-th state (%(default)s)")
    out.add_argument("--save-to", metavar="RUN.zarr", help="write the run while it goes on, for dalembert resume and da.load")
    out.add_argument("--save", metavar="FILE.npz", help="write the run, for da.load")
    out.add_argument("--plot", metavar="FILE", help="draw the run as .png, .pdf or .svg")
    out.add_argument("--animate", metavar="FILE", help="film the mechanism as .html, .gif or .mp4")
    out.add_argument("--json", action="store_true", help="print the report as JSON, and nothing else")


def execute(options: argparse.Namespace) -> int:
    """Simulate, write the files, report."""
    chosen = model(options.problem, assignments(options.set))
    stepper = method(options.method or default_method(chosen.system), count("--stages", options.stages))
    prepare_files(options, chosen)
    try:
        run = da.simulate(
            chosen.subject,
            stepper,
            **_start(chosen, options),
            h=number("--h", options.h),
            steps=count("--steps", options.steps),
            t1=number("--t1", options.t1),
            save_every=count("--save-every", options.save_every),  # type: ignore[arg-type]
            save_to=options.save_to,
            progress=sys.stderr.isatty(),
            on_failure="return",
        )
    except InconsistentStart as error:
        hint = "" if options.project else " (on the command line, --project does so)"
        raise Unusable(f"{error}{hint}") from None
    files, troubles = write(run, chosen, options)
    files = files if options.save_to is None else [options.save_to, *files]
    report = measure(run, chosen, files)
    print(json.dumps(report, indent=2) if options.json else table(report))
    return finish(run, troubles)


def finish(run: Trajectory, troubles: list[str]) -> int:
    """Say what went wrong; the exit code."""
    if run.status != "done":
        print(f"dalembert: {run.message}", file=sys.stderr)
    for trouble in troubles:
        print(f"dalembert: {trouble}", file=sys.stderr)
    return {"done": 1 if troubles else 0, "failed": 1, "interrupted": 130}[run.status]


def default_method(system: System) -> str:
    """The method that is taken if none is named."""
    if isinstance(system, IndexTwoDAE):
        return INDEX_TWO
    if system.n_unilateral:
        return IMPACTS
    if system.n_nonholonomic:
        return NONHOLONOMIC
    return MECHANICS if isinstance(system, MechanicalSystem) else ODAE


def _start(chosen: Model, options: argparse.Namespace) -> dict[str, Any]:
    """The initial values and parameters, as `da.simulate` takes them."""
    given = {name: vector(getattr(options, name)) for name in ("q0", "p0", "v0", "y0", "z0", "lam0")}
    initial: dict[str, Any] = {name: values for name, values in given.items() if values is not None}
    problem, params = chosen.problem, chosen.params or None
    mechanical = isinstance(chosen.system, MechanicalSystem)
    guessed = isinstance(chosen.system, IndexTwoDAE)  # z0 chooses a branch, if there are several
    position, motion = ("q0", ("p0", "v0")) if mechanical else ("y0", ("z0",))
    if problem is None and (position not in initial or not (guessed or any(name in initial for name in motion))):
        wanted = "--q0, and --p0 or --v0" if mechanical else "--y0" if guessed else "--y0 and --z0"
        raise Unusable(f"{options.problem} is a system without initial values: give {wanted}")
    if problem is None and (options.h is None or (options.steps is None and options.t1 is None)):
        raise Unusable(f"{options.problem} is a system without a step size and a length: give --h, and --steps or --t1")
    if problem is not None and (position in initial or options.project):
        fixed = (position, "lam0", *(() if any(name in initial for name in motion) else motion))
        own = {name: getattr(problem, name) for name in fixed}
        initial = {name: values for name, values in own.items() if values is not None} | initial
    if not options.project:
        return {**initial, "params": params}
    t0 = 0.0 if problem is None else problem.t0
    return {"start": da.consistent(chosen.system, t0=t0, params=params, **initial), "params": params}


# -- files ---------------------------------------------------------------------------------------------------------------


def prepare_files(options: argparse.Namespace, chosen: Model) -> None:
    """Refuse files that cannot be written before the run begins, and make their directories."""
    from dalembert.draw._animation import check_film
    from dalembert.plot._style import check_suffix

    if options.animate is not None:
        check_film(options.animate)
        if chosen.problem is None or chosen.problem.drawing is None:
            raise Unusable(f"{options.problem} does not say how it is drawn: --animate needs a Problem with a drawing")
    if options.plot is not None:
        check_suffix(options.plot)
    if options.save is not None and Path(options.save).suffix not in ("", ".npz"):
        raise Unusable(f"a run is saved as .npz; got --save {options.save}")
    store = getattr(options, "save_to", None)
    for name in filter(None, (options.save, options.plot, options.animate, store)):
        try:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unusable(f"the directory of {name} cannot be made ({error.strerror}): choose another place") from None
        if Path(name).is_dir() and name != store:
            raise Unusable(f"{name} is a directory: give the name of a file")


def write(run: Trajectory, chosen: Model, options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Save, plot and film; the files written, and what went wrong."""
    from dalembert.plot import overview

    files, troubles = [], []
    if options.save is not None:
        try:
            files.append(str(run.save(options.save)))
        except DalembertError as error:
            troubles.append(str(error))
    if options.plot is not None:
        try:
            overview(run, options.plot, problem=chosen.problem)
            files.append(str(options.plot))
        except DalembertError as error:
            troubles.append(str(error))
    if options.animate is not None:
        try:
            run.animate(options.animate)
            files.append(str(options.animate))
        except DalembertError as error:
            troubles.append(str(error))
    return files, troubles


# -- the report ----------------------------------------------------------------------------------------------------------


def measure(run: Trajectory, chosen: Model, files: list[str]) -> dict[str, Any]:
    """What a run did, in numbers; only what JSON can hold."""
    steps, seconds = int(run.stats["steps"]), run.stats["wall_seconds"]
    others = {} if chosen.problem is None else chosen.problem.conserved
    return {
        "problem": chosen.name,
        "title": chosen.name if chosen.problem is None else chosen.problem.title,
        "method": run.method,
        "h": run.h,
        "steps": steps,
        "stored_states": len(run),
        "t0": float(run.t[0]),
        "t1": float(run.t[-1]),
        "status": run.status,
        "message": run.message,
        "build_seconds": run.stats["build_seconds"],
        "seconds": seconds,
        "steps_per_second": steps / seconds if seconds > 0 else None,
        "newton_iterations_per_step": run.stats["newton_iterations"] / steps if steps else None,
        "energy": _energy(run) if run.has_energy else None,
        "residuals": {name: _largest(values) for name, values in run.residuals.items() if values.shape[1]},
        "conserved": {name: _largest(f(run) - f(run)[0]) for name, f in others.items() if name != "energy"},
        "files": files,
    }


def _energy(run: Trajectory) -> dict[str, Any]:
    energy = run.energy
    slope = da.verify.drift(energy, run.t).slope if len(run) > 2 else None
    return {"initial": float(energy[0]), "max_error": _largest(energy - energy[0]), "slope": slope}


def _largest(values: Any) -> float | None:
    """The largest absolute value; None if it is not a number, for which JSON has no word."""
    result = float(np.max(np.abs(values)))
    return result if math.isfinite(result) else None


def table(report: dict[str, Any]) -> str:
    """The report as a table."""
    energy = report["energy"]
    rows = [
        ("steps", f"{report['steps']:,}, to t = {report['t1']:g} ({report['stored_states']:,} states stored)"),
        ("steps per second", _shown(report["steps_per_second"], ",.0f")),
        ("Newton iterations per step", _shown(report["newton_iterations_per_step"], ".2f")),
        *((f"max |{name}|", _shown(value, ".2e")) for name, value in report["residuals"].items()),
        *((f"max change of {name}", _shown(value, ".2e")) for name, value in report["conserved"].items()),
        *(("wrote", name) for name in report["files"]),
    ]
    if energy is not None:
        rows[3:3] = [
            ("max |H - H0|", _shown(energy["max_error"], ".2e")),
            ("slope of H per unit time", _shown(energy["slope"], ".1e")),
        ]
    if report["status"] != "done":
        rows.insert(0, ("status", report["status"]))
    head = f"{report['title']}, {report['method'].removeprefix('da.')}, h = {report['h']:g}"
    return "\n".join([head, *(f"  {name:<28}{value}" for name, value in rows)])


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
