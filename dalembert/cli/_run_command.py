"""Simulate a problem of the catalogue, or a model of your own.

Simulate a problem of the catalogue, or a model of your own, and report on the run.

PROBLEM is a name that `dalembert list problems` shows, or mymodel.py:name, where `name` is a da.problems.Problem, a function
that returns one, a da.Mechanism (then give --h and --steps; it starts at rest in its assembled pose), a da.Hamiltonian or
da.Lagrangian (then give --q0, --p0 or --v0, --h and --steps), a da.ODAE (then give --y0, --z0, --h and --steps) or a
da.IndexTwoDAE (then --z0 is a guess of the algebraic variables, needed where they enter nonlinearly).
--draw mymodel.py:drawing names a function of the state, such as drawing(q), that returns parts of dalembert.draw.

examples:
  dalembert run double_pendulum
  dalembert run double_pendulum --method Rattle --h 0.02 --t1 100 --plot rattle.png
  dalembert run double_pendulum --t1 100 --rtol 1e-8
  dalembert run double_pendulum --set m2=3 --set l2=0.5 --save run.npz
  dalembert run chain --set links=16 --steps 1e5 --save-every 100 --plot chain.pdf
  dalembert run pendulum --steps 1e5 --save-every 10 --save-to run.zarr
  dalembert run pendulum --method 'RadauIIA(stages=3, projected=True)'
  dalembert run mass_on_surface --method 'SymplecticEuler(variant="natural")' --plot friction.png
  dalembert run mass_on_surface --method 'compose(SymplecticEuler, 4)' --set c_f=0.2
  dalembert run stadium_billiard --set B=0.5 --steps 300 --plot stadium.png
  dalembert run bouncing_ball --method 'CVA(Gauss(stages=2))'
  dalembert run mymodel.py:system --q0 1,0 --p0 0,0 --h 1/50 --steps 1000 --plot mine.png
  dalembert run heavy_top --steps 400 --animate top.html
  dalembert run mymodel.py:system --q0 3,4 --v0 1,0 --project --h 0.1 --steps 100
  dalembert run mymodel.py:system --q0 1,0 --p0 0,0 --h 1/50 --steps 500 --draw mymodel.py:drawing --animate mine.html

With --rtol the method and h are chosen from short runs, and the report says why and which error is expected.
Numbers may be arithmetic: 1/50, pi/6, -sqrt(0.75), 2*sin(pi/40). A step that cannot be solved ends the run with exit code 1,
Ctrl-C with 130; what was computed until then is reported, saved and plotted all the same.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

import dalembert as da
from dalembert._progress import busy
from dalembert.cli._methods import default, method
from dalembert.cli._models import Model, model
from dalembert.cli._numbers import assignments, count, number, vector
from dalembert.cli._report import add_output, conclude, prepare
from dalembert.cli._user_code import UsageError
from dalembert.errors import InconsistentStart

if TYPE_CHECKING:
    from dalembert.methods import OneStepMethod


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert run`."""
    parser.add_argument("problem", metavar="PROBLEM", help="a name of the catalogue, or mymodel.py:name")
    how = parser.add_argument_group("method")
    add_steps(how)
    add_tolerances(how)
    how.add_argument("--t0", metavar="T", help="start time; the problem's own, or 0, by default")
    how.add_argument("--newton-tolerance", metavar="TOL", help="solve steps to a relative tolerance instead of round-off")
    what = parser.add_argument_group("model")
    add_model(what)
    out = parser.add_argument_group("output")
    out.add_argument("--save-every", metavar="K", default="1", help="store every K-th state (%(default)s)")
    out.add_argument("--save-to", metavar="RUN.zarr", help="write the run while it goes on, for dalembert resume and da.load")
    out.add_argument("--stage-multipliers", action="store_true", help="also store the method's own multipliers")
    add_output(out, saved="write the run, for da.load")


def add_steps(how: argparse._ArgumentGroup) -> None:
    """The options that say how steps are made, and how many."""
    how.add_argument("--method", metavar="NAME", help="see dalembert list methods (LobattoIIIAB, if that serves the model)")
    how.add_argument("--stages", metavar="S", help="number of stages of the method")
    how.add_argument("--h", metavar="H", help="step size; the problem's own by default")
    length = how.add_mutually_exclusive_group()
    length.add_argument("--steps", metavar="N", help="number of steps; the problem's own by default")
    length.add_argument("--t1", metavar="T", help="final time, instead of --steps")


def add_tolerances(how: argparse._ArgumentGroup) -> None:
    """The options that say how exact a run is to be."""
    how.add_argument(
        "--rtol", metavar="TOL", help="choose h, and the method, so that positions are right to this part of their size"
    )
    how.add_argument("--atol", metavar="TOL", help="the same as an absolute error; with --rtol both are added")


def add_model(what: argparse._ArgumentGroup) -> None:
    """The options that change a model and where it starts."""
    what.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="change a constant; may be repeated")
    what.add_argument("--q0", metavar="LIST", help="initial positions, with commas between them")
    momenta = what.add_mutually_exclusive_group()
    momenta.add_argument("--p0", metavar="LIST", help="initial momenta")
    momenta.add_argument("--v0", metavar="LIST", help="initial velocities")
    what.add_argument("--y0", metavar="LIST", help="initial values of y, for a da.ODAE or da.IndexTwoDAE")
    what.add_argument("--z0", metavar="LIST", help="initial values of z for a da.ODAE, a guess of them for a da.IndexTwoDAE")
    what.add_argument("--lam0", metavar="LIST", help="guess of multipliers that enter nonlinearly: it chooses the branch")
    what.add_argument("--project", action="store_true", help="project the initial values onto the constraints first")


def execute(options: argparse.Namespace) -> int:
    """Simulate, write the files, report."""
    stages = count("--stages", options.stages)
    rtol, atol = number("--rtol", options.rtol), number("--atol", options.atol)
    chosen_by_tolerance = options.method is None and stages is None and not (rtol is None and atol is None)
    with busy(f"building {options.problem}"):
        chosen = model(options.problem, assignments(options.set))
        stepper = default(chosen.system, stages) if options.method is None else method(options.method, stages)
    output = prepare(options, chosen)
    try:
        with busy("looking for a consistent start"):
            start = _start(chosen, stepper, options)
        run = da.simulate(
            chosen.subject,
            None if chosen_by_tolerance else stepper,
            **start,
            h=number("--h", options.h),
            steps=count("--steps", options.steps),
            t1=number("--t1", options.t1),
            rtol=rtol,
            atol=atol,
            save_every=count("--save-every", options.save_every),
            save_to=options.save_to,
            newton_tolerance=number("--newton-tolerance", options.newton_tolerance),
            stage_multipliers=options.stage_multipliers,
            progress=sys.stderr.isatty(),
            on_failure="return",
        )
    except InconsistentStart as error:
        hint = "" if options.project else " (on the command line, --project does so)"
        raise UsageError(f"{error}{hint}") from None
    return conclude(run, chosen, output, options.save_to)


def initial_values(options: argparse.Namespace) -> dict[str, Any]:
    """The initial values that were given, by name."""
    given = {name: vector(getattr(options, name)) for name in ("q0", "p0", "v0", "y0", "z0", "lam0")}
    return {name: values for name, values in given.items() if values is not None}


def _start(chosen: Model, stepper: OneStepMethod, options: argparse.Namespace) -> dict[str, Any]:
    """The initial values and parameters, as `da.simulate` takes them."""
    initial, t0 = initial_values(options), number("--t0", options.t0)
    problem, params = chosen.problem, chosen.params or None
    mechanical = isinstance(chosen.system, da.systems.MechanicalSystem)
    guessed = isinstance(chosen.system, da.IndexTwoDAE)  # z0 chooses a branch, if there are several
    position, motion = ("q0", ("p0", "v0")) if mechanical else ("y0", ("z0",))
    posed = isinstance(chosen.subject, da.Mechanism) and not initial  # starts in its assembled pose
    if problem is None and not posed and (position not in initial or not (guessed or any(name in initial for name in motion))):
        wanted = "--q0, and --p0 or --v0" if mechanical else "--y0" if guessed else "--y0 and --z0"
        raise UsageError(f"{options.problem} is a system without initial values: give {wanted}")
    length = options.steps is not None or options.t1 is not None
    sized = options.h is not None or (stepper.rejects and options.t1 is not None)
    if problem is None and not (options.rtol or options.atol) and not (sized and length):
        raise UsageError(f"{options.problem} is a system without a step size and a length: give --h, and --steps or --t1")
    if problem is not None and (position in initial or options.project):
        fixed = (position, "lam0", *(() if any(name in initial for name in motion) else motion))
        own = {name: getattr(problem, name) for name in fixed}
        initial = {name: values for name, values in own.items() if values is not None} | initial
    if not options.project or posed:
        return {**initial, "params": params, "t0": t0}
    if t0 is None:
        t0 = 0.0 if problem is None else problem.t0
    return {"start": da.consistent(chosen.system, t0=t0, params=params, **initial), "params": params}
