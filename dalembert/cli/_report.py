"""What becomes of a run: its files, and a report on it that nothing which goes wrong with them can prevent."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalembert._progress import busy
from dalembert.cli._json import as_json
from dalembert.cli._models import Model, drawing
from dalembert.cli._user_code import UsageError, user_code
from dalembert.errors import DalembertError

if TYPE_CHECKING:
    from dalembert.draw import Drawing
    from dalembert.runs._trajectory import Trajectory


def add_output(out: argparse._ArgumentGroup, saved: str) -> None:
    """The options that say what becomes of a run."""
    out.add_argument("--save", metavar="FILE.npz", help=saved)
    out.add_argument("--plot", metavar="FILE", help="draw the run as .png, .pdf or .svg")
    out.add_argument("--animate", metavar="FILE", help="film the mechanism as .html, .gif or .mp4")
    out.add_argument("--shaded", action="store_true", help="film lit surfaces with shadows, for --animate FILE.html")
    out.add_argument("--draw", metavar="FILE.py:NAME", help="a function of the state that draws it, for --plot and --animate")
    out.add_argument("--json", action="store_true", help="print the report as JSON, and nothing else")


# -- files ---------------------------------------------------------------------------------------------------------------


@dataclass
class Output:
    """The files that were asked for, the user's file that draws them, and what has come of it so far."""

    options: argparse.Namespace
    draw: Drawing | None
    source: Path | None
    files: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    interrupted: bool = False


def prepare(options: argparse.Namespace, chosen: Model) -> Output:
    """Refuse files that cannot be written before the run begins; make their directories, and say so."""
    from dalembert.draw._animation import check_film
    from dalembert.draw._style import check_suffix

    draw, source = (None, chosen.file) if options.draw is None else drawing(options.draw, chosen)
    if options.draw is not None and options.plot is None and options.animate is None:
        raise UsageError("--draw says how to draw the mechanism: give --plot or --animate with it")
    if options.shaded and (options.animate is None or Path(options.animate).suffix.lower() != ".html"):
        raise UsageError("--shaded films lit surfaces: give --animate FILE.html with it")
    if options.animate is not None:
        check_film(options.animate)
        if draw is None and not chosen.drawn:
            raise UsageError(f"{options.problem} does not say how it is drawn: give --draw mymodel.py:drawing with --animate")
    if options.plot is not None:
        check_suffix(options.plot)
    if options.save is not None and Path(options.save).suffix not in ("", ".npz"):
        raise UsageError(f"a run is saved as .npz; got --save {options.save}")
    store = getattr(options, "save_to", None)
    for name in filter(None, (options.save, options.plot, options.animate, store)):
        directory = Path(name).parent
        try:
            if not directory.is_dir():
                directory.mkdir(parents=True)
                print(f"dalembert: there was no directory {directory}: it has been made", file=sys.stderr)
        except OSError as error:
            raise UsageError(f"the directory of {name} cannot be made ({error.strerror}): choose another place") from None
        if Path(name).is_dir() and name != store:
            raise UsageError(f"{name} is a directory: give the name of a file")
    return Output(options, draw, source)


def conclude(run: Trajectory, chosen: Model, output: Output, store: str | None) -> int:
    """Write the files, print the report, say what went wrong; the exit code."""
    write(run, chosen, output)
    files = output.files if store is None else [store, *output.files]
    with busy("measuring the run"):
        report = measure(run, chosen, files, output.troubles)
    print(as_json(report) if output.options.json else table(report))
    for message in ([] if run.status == "done" else [run.message]) + output.troubles:
        print(f"dalembert: {message}", file=sys.stderr)
    if output.interrupted:
        return 130
    return {"done": 1 if output.troubles else 0, "failed": 1, "interrupted": 130}[run.status]


def write(run: Trajectory, chosen: Model, output: Output) -> None:
    """Save, plot and film, until Ctrl-C; the files written and what went wrong are noted in `output`."""
    from dalembert.plot import overview

    options = output.options
    tasks: list[tuple[str | None, Callable[[str], Any]]] = [
        (options.save, run.save),
        (options.plot, lambda path: overview(run, path, problem=chosen.problem, draw=output.draw)),
        (options.animate, lambda path: run.animate(path, draw=output.draw, shaded=options.shaded)),
    ]
    for path, task in tasks:
        if path is None:
            continue
        try:
            with user_code(output.source), busy(f"writing {path}"):
                written = task(path)
            output.files.append(str(written) if isinstance(written, Path) else path)
        except (DalembertError, UsageError) as error:
            output.troubles.append(str(error))
        except KeyboardInterrupt:
            output.troubles.append(f"interrupted before {path} was written")
            output.interrupted = True
            return


# -- the report ----------------------------------------------------------------------------------------------------------


def measure(run: Trajectory, chosen: Model, files: list[str], troubles: list[str]) -> dict[str, Any]:
    """What a run did, in numbers; quantities of the user's that cannot be evaluated are added to the troubles."""
    steps, seconds = int(run.stats["steps"]), run.stats["wall_seconds"]
    conserved = {} if chosen.problem is None else chosen.problem.conserved
    return {
        "problem": chosen.name,
        "title": chosen.name if chosen.problem is None else chosen.problem.title,
        "method": run.method,
        "h": run.h,
        "error": run.error,
        "choice": run.choice,
        "steps": steps,
        "stored_states": len(run),
        "t0": float(run.t[0]),
        "t1": float(run.t[-1]),
        "status": run.status,
        "message": run.message,
        "build_seconds": run.stats["build_seconds"],
        "seconds": seconds,
        "steps_per_second": steps / seconds if seconds > 0 else None,
        "newton_iterations_per_step": run.stats["newton_iterations"] / steps
        if steps and "newton_iterations" in run.stats
        else None,
        "energy": _energy(run) if run.has_energy else None,
        "residuals": {name: _largest(values) for name, values in run.residuals.items() if values.shape[1]},
        "conserved": {
            name: _change(name, quantity, run, chosen.file, troubles)
            for name, quantity in conserved.items()
            if name != "energy"
        },
        "files": files,
    }


def _change(
    name: str, quantity: Callable[[Trajectory], Any], run: Trajectory, file: Path | None, troubles: list[str]
) -> float | None:
    """How far a conserved quantity strays from its value at the start; None, and a trouble, if it has no values."""
    import numpy as np

    try:
        with user_code(file):
            values = np.asarray(quantity(run), dtype=float)
            return _largest(values - values[0])
    except (DalembertError, UsageError) as error:
        troubles.append(f"the conserved quantity {name} could not be evaluated: {error}")
        return None


def _energy(run: Trajectory) -> dict[str, Any]:
    from dalembert.plot._thin import slope_in_time

    energy = run.energy
    return {"initial": float(energy[0]), "max_error": _largest(energy - energy[0]), "slope": slope_in_time(run.t, energy)}


def _largest(values: Any) -> float | None:
    """The largest absolute value; None if it is not a number, for which JSON has no word."""
    import numpy as np

    result = float(np.max(np.abs(values)))
    return result if math.isfinite(result) else None


def table(report: dict[str, Any]) -> str:
    """The report as a table."""
    energy = report["energy"]
    rows = [
        ("steps", f"{report['steps']:,}, to t = {report['t1']:g} ({report['stored_states']:,} states stored)"),
        *(
            [("estimated error", _shown(report["error"], ".1e")), ("choice", report["choice"])]
            if report["error"] is not None
            else []
        ),
        ("steps per second", _shown(report["steps_per_second"], ",.0f")),
        ("Newton iterations per step", _shown(report["newton_iterations_per_step"], ".2f")),
        *((f"max |{name}|", _shown(value, ".2e")) for name, value in report["residuals"].items()),
        *((f"max change of {name}", _shown(value, ".2e")) for name, value in report["conserved"].items()),
        *(("wrote", name) for name in report["files"]),
    ]
    if energy is not None:
        place = [name for name, _ in rows].index("Newton iterations per step") + 1
        rows[place:place] = [
            ("max |H - H0|", _shown(energy["max_error"], ".2e")),
            ("slope of H per unit time", _shown(energy["slope"], ".1e")),
        ]
    if report["status"] != "done":
        rows.insert(0, ("status", report["status"]))
    head = f"{report['title']}, {report['method'].removeprefix('da.')}, h = {report['h']:g}"
    width = max(len(name) for name, _ in rows) + 2
    return "\n".join([head, *(f"  {name:<{width}}{value}" for name, value in rows)])


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
