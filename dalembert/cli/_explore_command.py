"""Open a page on which a model moves while sliders change it.

Open a page in your browser on which a model moves, with sliders for its constants, its initial values, the method and h, curves
of energy and constraints, a second method beside the first, and a Poincare section that grows.

PROBLEM, and what a model of your own needs with it, are as for `dalembert run`; of a function that returns a problem, the
arguments become sliders. The page is served to this machine alone, at the printed address, until Ctrl-C.

examples:
  dalembert explore double_pendulum
  dalembert explore heavy_top --method Rattle --h 0.02
  dalembert explore four_bar --set crank=2 --t1 50
  dalembert explore four_bar --rtol 1e-6
  dalembert explore mymodel.py:problem
  dalembert explore mymodel.py:system --q0 1,0 --p0 0,0 --h 1/50 --steps 1000 --draw mymodel.py:drawing
  dalembert explore double_pendulum --port 9000 --no-browser
"""

from __future__ import annotations

import argparse
from typing import Any

import dalembert as da
from dalembert._progress import busy
from dalembert.cli._methods import default, method
from dalembert.cli._models import Model, catalogue, drawing, maker, model
from dalembert.cli._numbers import assignments, count, number
from dalembert.cli._run_command import add_model, add_steps, add_tolerances, initial_values
from dalembert.cli._user_code import UsageError, user_code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert explore`."""
    parser.add_argument("problem", metavar="PROBLEM", help="a name of the catalogue, or mymodel.py:name")
    how = parser.add_argument_group("method")
    add_steps(how)
    add_tolerances(how)
    what = parser.add_argument_group("model")
    add_model(what)
    what.add_argument("--draw", metavar="FILE.py:NAME", help="a function of the state that draws it")
    page = parser.add_argument_group("page")
    page.add_argument("--port", metavar="N", help="the port of this machine (8765, or a free one)")
    page.add_argument("--no-browser", action="store_true", help="print the address only")


def execute(options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    settings = assignments(options.set)
    stages = count("--stages", options.stages)
    with busy(f"building {options.problem}"):
        chosen = model(options.problem, settings)
    stepper = None
    if options.method is not None or stages is not None:
        stepper = default(chosen.system, stages) if options.method is None else method(options.method, stages)
    rtol, atol = number("--rtol", options.rtol), number("--atol", options.atol)
    length = options.t1 is not None or (options.h is not None and options.steps is not None)
    if chosen.problem is None and not (length and (options.h is not None or rtol is not None or atol is not None)):
        advice = "give --h, and --steps or --t1; or --rtol and --t1"
        raise UsageError(f"{options.problem} is a system without a step size and a length: {advice}")
    given: dict[str, Any] = initial_values(options)
    if options.project:
        raise UsageError("the page projects initial values as they are changed: leave --project out")
    what, source = _subject(options.problem, chosen)
    with user_code(chosen.file):
        da.explore(
            what, stepper, params=settings, **given, h=number("--h", options.h), steps=count("--steps", options.steps),
            t1=number("--t1", options.t1), rtol=rtol, atol=atol,
            draw=None if options.draw is None else drawing(options.draw, chosen)[0],
            port=count("--port", options.port, least=0), browser=not options.no_browser, source=source,
        )  # fmt: skip
    return 0


def _subject(text: str, chosen: Model) -> tuple[Any, str | None]:
    """What is explored: the function that makes the problem, if there is one; and the Python that finds it in its file."""
    if chosen.file is None:
        return catalogue()[chosen.name], None
    function = maker(chosen)
    found = f'problem = runpy.run_path("{chosen.file}")["{chosen.name}"]'
    source = f"import runpy\n\n{found}" + ("" if function is None else "({settings})")
    return (chosen.subject if function is None else function), source
