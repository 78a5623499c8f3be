"""What a benchmark is, and how work and precision are measured on it."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.errors import DalembertError
from dalembert.experiments._experiment import Check, Data, Document, at_least, at_most
from dalembert.experiments.benchmarks._bodies import Bodies
from dalembert.experiments.benchmarks._motion import Timeout
from dalembert.experiments.benchmarks._peers import PEERS
from dalembert.experiments.benchmarks._references import references
from dalembert.experiments.benchmarks._shown import draw, table
from dalembert.methods import ControlledSteps, OneStepMethod
from dalembert.runs._arguments import Arguments
from dalembert.runs._drivers import make_run, prepared
from dalembert.runs._problem import Problem
from dalembert.runs._simulate import trajectory_of
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import State
from dalembert.systems._consistent import unpack

BENCHMARKS = Document("benchmarks", "Benchmarks: IFToMM's library and the test set for IVP solvers", named_only=True)
LONGEST = 2.0
"""CPU seconds after which a peer is stopped; ten times as many at full length."""
ROUNDS = (LONGEST, LONGEST, 0.2)
"""Runs are timed once, and again in these rounds as long as they take less: in turn, so that other work disturbs all alike."""
FALLS, ROUND_OFF = 0.5, 1e-2
"""What is left at most of a method's error with its most steps, unless its fewest leave so small a part of the target."""
Steps = int | float | tuple[tuple[float, int], ...]
"""A number of equal steps, such numbers up to one time after another, or the tolerance of `da.ControlledSteps`."""
Runs = tuple[tuple[OneStepMethod, tuple[Steps, ...]], ...]
"""Methods with the numbers of steps that they take, or with tolerances that choose them."""
UNGIVEN = dict.fromkeys(("q0", "v0", "p0", "y0", "z0", "lam0", "psi0"))
"""Problems bring their own start."""


@dataclass(frozen=True)
class Benchmark:
    """A problem to be solved to `t1`, by what, how its error is measured, and what is known of others.

    `error` is a function of a run that has states at `outputs` equidistant times; with `every_step` runs of this library have
    one after each step, and only those of peers at `outputs` times. `published` are lines of a table: who, how accurate, how
    fast, on what. `peers` are names in `_peers.PEERS`; those that take bodies get `bodies`.
    """

    name: str
    item: str
    problem: Callable[[], Problem]
    t1: float
    runs: Runs
    error: Callable[[Trajectory], float]
    measured: str
    published: tuple[str, ...] = ()
    peers: tuple[str, ...] = tuple(PEERS)[:3]
    target: float = 1e-9
    outputs: int = 2
    every_step: bool = False
    bodies: Bodies | None = None
    remark: str = ""
    contradicts: str = ""

    def register(self, rests_on: Callable[[], list[str]]) -> Benchmark:
        """Make an experiment of it; `rests_on` gives the texts on which its figures depend."""
        BENCHMARKS.claim(
            self.name,
            f"{self.item} is solved with an error of at most {self.target:.0e} ({self.measured}).",
            compute=functools.partial(compute, self),
            draw=functools.partial(draw, self),
            table=functools.partial(table, self),
            item=self.item,
            remark=self.remark,
            contradicts=self.contradicts,
            timed=True,
            rests_on=rests_on,
        )(functools.partial(holds, self))
        return self


# -- measuring -----------------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """One way to solve the problem: what it is called, how it is run again, its error and its least CPU times so far.

    `seconds` are those of a whole call, `steps` those of the steps in it, where they can be told apart. The first run is not
    timed, as it compiles what there is to compile, unless a peer takes long for it.
    """

    tool: str
    setting: str
    call: Callable[[], Trajectory] | None = None
    error: float = np.inf
    seconds: float = np.inf
    steps: float = np.inf
    message: str = ""

    def run(self) -> Trajectory:
        """Once, without timing."""
        assert self.call is not None
        return self.call()

    def time(self) -> None:
        """Once more, with the CPU time that it takes."""
        stats = self.run().stats
        self.seconds = min(self.seconds, stats["cpu_seconds"])
        self.steps = min(self.steps, stats.get("step_seconds", np.inf))


def own(benchmark: Benchmark, problem: Problem) -> Iterator[Row]:
    """The runs of this library, compiled."""
    for method, numbers in benchmark.runs:
        for steps in numbers:
            call = functools.partial(
                stepped, problem, method, benchmark.t1, steps, None if benchmark.every_step else benchmark.outputs
            )
            row = Row(f"dalembert {_tool(method, steps)}", _setting(steps), call)
            try:
                run = row.run()
                row.error = benchmark.error(run) if run.status == "done" else np.inf
                row.message = run.message
            except DalembertError as error:
                row.message = str(error)
            yield row


def stepped(problem: Problem, method: OneStepMethod, t1: float, steps: Steps, outputs: int | None) -> Trajectory:
    """A run as `da.simulate` makes it, with states at so many times or after each step; of several step sizes, the last part.

    Its CPU seconds are those from the arguments to the trajectory, which are the work of a call of `da.simulate`, and those of
    the steps alone.
    """
    seconds, start, begun, called = 0.0, None, problem.t0, time.thread_time()
    for end, number in steps if isinstance(steps, tuple) else ((t1, steps),):
        by, lengths = _lengths(method, begun, end, number, outputs)
        spec = Arguments("simulate", problem, by, UNGIVEN, start=start, params=None, t0=None, **lengths).single()
        run = make_run(prepared(spec))
        began = time.thread_time()
        reason = run.advance()
        seconds += time.thread_time() - began
        found = trajectory_of(spec, run, "done" if reason is None else "failed", reason or "", None)
        found.stats.update(cpu_seconds=time.thread_time() - called, step_seconds=seconds)
        if reason is not None:
            break
        assert isinstance(spec.start, State)
        start, begun = unpack(problem.system, end, run.state, spec.start.theta, spec.start.multipliers), end
    return found


def _lengths(
    method: OneStepMethod, begun: float, end: float, number: float, outputs: int | None
) -> tuple[OneStepMethod, dict[str, Any]]:
    """The method, and its steps up to `end` as `da.simulate` is given them; those by a tolerance have a state at the end.

    It is relative and absolute, as those of peers are.
    """
    if isinstance(number, float):
        return ControlledSteps(method, number, number), {"h": None, "steps": None, "t1": end, "save_every": 2**61}
    every = 1 if outputs is None else number // outputs
    return method, {"h": (end - begun) / number, "steps": number, "t1": None, "save_every": every}


def beside(benchmark: Benchmark, problem: Problem, longest: float) -> Iterator[Row]:
    """The runs of peers, one tolerance after another until they take too long; what fails with one may serve with the next."""
    times = np.linspace(0.0, benchmark.t1, benchmark.outputs + 1)
    for name in benchmark.peers:
        peer = PEERS[name]
        if not peer.installed:
            yield Row(name, "", message=f"not installed: pip install {peer.package}")
            continue
        try:
            posed = (problem,) if not peer.takes_bodies else benchmark.bodies.build() if benchmark.bodies else ()
            solve = peer.prepare(*posed, times, longest)
        except Exception as error:
            yield Row(name, "", message=_one_line(error))
            continue
        for tolerance in peer.tolerances:
            row = Row(name, f"{tolerance:.3g}", functools.partial(solve, tolerance))
            began = time.thread_time()
            try:
                run = row.run()
                measure: Any = benchmark.bodies.error if peer.takes_bodies and benchmark.bodies else benchmark.error
                row.error, seconds = measure(run), run.stats["cpu_seconds"]
                row.seconds = seconds if seconds > LONGEST else np.inf
            except Exception as error:  # whatever a peer raises is what it has to say
                row.message, seconds = _one_line(error), time.thread_time() - began
            yield row
            if seconds > longest / 3:
                break


def _tool(method: OneStepMethod, steps: Steps) -> str:
    return (f"ControlledSteps({method})" if isinstance(steps, float) else str(method)).replace("da.", "")


def _setting(steps: Steps) -> str:
    if isinstance(steps, float):
        return f"tolerance {steps:g}"
    return f"{steps if isinstance(steps, int) else sum(number for _, number in steps)} steps"


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, (DalembertError, Timeout)) else f"{type(error).__name__}: {text}"


def compute(benchmark: Benchmark, full: bool) -> Data:
    """Errors and times of all runs, which are timed in turn."""
    problem = benchmark.problem()
    longest = 10 * LONGEST if full else LONGEST
    rows = [*own(benchmark, problem), *beside(benchmark, problem, longest)]
    useful = [row for row in rows if np.isfinite(row.error)]
    for limit in ROUNDS:
        for row in useful:
            if row.seconds == np.inf or row.seconds < limit:
                row.time()
    return {
        "tool": np.array([row.tool for row in rows]),
        "setting": np.array([row.setting for row in rows]),
        "message": np.array([row.message for row in rows]),
        "error": np.array([row.error for row in rows]),
        "seconds": np.array([row.seconds for row in rows]),
        "steps": np.array([row.steps for row in rows]),
    }


def holds(benchmark: Benchmark, data: Data) -> Iterable[Check]:
    """That runs of this library reach the end, their least error, and that the errors of each method fall with more steps."""
    ours = np.char.startswith(data["tool"], "dalembert")
    errors = data["error"][ours]
    yield at_least("runs that reach the end", np.sum(np.isfinite(errors)), 1)
    if not np.any(np.isfinite(errors)):
        return
    yield at_most("least error", np.min(errors), benchmark.target)
    for tool in dict.fromkeys(data["tool"][ours].tolist()):
        of_tool = data["error"][data["tool"] == tool].tolist()
        if len(of_tool) > 1 and of_tool[0] > ROUND_OFF * benchmark.target:
            yield at_most(f"{tool}: error with the most steps over that with the fewest", of_tool[-1] / of_tool[0], FALLS)
    known = references().get(benchmark.name)
    if known:
        yield at_most("disagreement of the two methods behind the reference", known["agreement"], 0.1 * benchmark.target)
