"""What a benchmark is, and how work and precision are measured on it."""

from __future__ import annotations

import functools
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from dalembert.draw._style import CYCLE, MARKERS
from dalembert.errors import DalembertError
from dalembert.experiments._experiment import Check, Data, Document, at_least, at_most
from dalembert.experiments._figures import Axes, log_log, panels
from dalembert.experiments.benchmarks._peers import PEERS, Timeout
from dalembert.methods import OneStepMethod
from dalembert.runs._arguments import Arguments
from dalembert.runs._drivers import make_run, prepared
from dalembert.runs._problem import Problem
from dalembert.runs._simulate import trajectory_of
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import State
from dalembert.systems._consistent import unpack

BENCHMARKS = Document("benchmarks", "Benchmarks: IFToMM's library and the test set for IVP solvers", named_only=True)
TARGETS = (1e-3, 1e-6, 1e-9, 1e-11)
"""Accuracies at which times are compared."""
LONGEST = 2.0
"""CPU seconds after which a peer is stopped; ten times as many at full length."""
ROUNDS, LONG_ROUNDS, SHORT = 3, 2, 0.2
"""How often runs shorter than SHORT seconds are timed, and longer ones: in turn, so that other work disturbs all alike."""
FALLS, ROUND_OFF = 0.5, 1e-2
"""What is left at most of a method's error with its most steps, unless its fewest leave so small a part of the target."""
STEPS_ONLY = "its steps alone"
"""The row of a table below a method of this library."""
Steps = int | tuple[tuple[float, int], ...]
"""A number of equal steps, or such numbers up to one time after another."""
Runs = tuple[tuple[OneStepMethod, tuple[Steps, ...]], ...]
"""Methods with the numbers of steps that they take."""
UNGIVEN = dict.fromkeys(("q0", "v0", "p0", "y0", "z0", "lam0", "psi0"))
"""Problems bring their own start."""


@dataclass(frozen=True)
class Benchmark:
    """A problem to be solved to `t1`, by what, how its error is measured, and what is known of others.

    `error` is a function of a run that has states at `outputs` equidistant times; with `every_step` runs of this library have
    one after each step, and only those of peers at `outputs` times. `published` are lines of a table: who, how accurate, how
    fast, on what. `peers` are names in `_peers.PEERS`.
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
    remark: str = ""
    contradicts: str = ""

    def register(self) -> Benchmark:
        """Make an experiment of it."""
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
        )(functools.partial(holds, self))
        return self


@functools.cache
def references() -> dict[str, Any]:
    """The certified digits."""
    text = (resources.files(__package__) / "references.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def reference(name: str) -> np.ndarray:
    """The certified positions of a problem at its end."""
    return np.array([float(x) for x in references()[name]["values"]])


# -- measuring -----------------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """One way to solve the problem: what it is called, how it is run again, its error and its least CPU times so far.

    `seconds` are those of a whole call, `steps` those of the steps in it, where they can be told apart. The first run is not
    timed: it compiles what there is to compile.
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
            row = Row(f"dalembert {method}".replace("da.", ""), f"{_number(steps)} steps", call)
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
    for end, number in ((t1, steps),) if isinstance(steps, int) else steps:
        every = 1 if outputs is None else number // outputs
        lengths: dict[str, Any] = {"h": (end - begun) / number, "steps": number, "save_every": every}
        spec = Arguments("simulate", problem, method, UNGIVEN, start=start, params=None, t0=None, t1=None, **lengths).single()
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


def beside(benchmark: Benchmark, problem: Problem, longest: float) -> Iterator[Row]:
    """The runs of peers, one tolerance after another until they take too long."""
    times = np.linspace(0.0, benchmark.t1, benchmark.outputs + 1)
    for name in benchmark.peers:
        peer = PEERS[name]
        if not peer.installed:
            yield Row(name, "", message=f"not installed: pip install {peer.package}")
            continue
        try:
            solve = peer.prepare(problem, times, longest)
        except Exception as error:
            yield Row(name, "", message=_one_line(error))
            continue
        for tolerance in peer.tolerances:
            row = Row(name, f"{tolerance:.0e}", functools.partial(solve, tolerance))
            seconds = np.inf
            try:
                run = row.run()
                row.error, seconds = benchmark.error(run), run.stats["cpu_seconds"]
            except Exception as error:  # whatever a peer raises is what it has to say
                row.message = _one_line(error)
            yield row
            if seconds > longest / 3:
                break


def _number(steps: Steps) -> int:
    return steps if isinstance(steps, int) else sum(number for _, number in steps)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, (DalembertError, Timeout)) else f"{type(error).__name__}: {text}"


def compute(benchmark: Benchmark, full: bool) -> Data:
    """Errors and times of all runs, which are timed in turn."""
    problem = benchmark.problem()
    longest = 10 * LONGEST if full else LONGEST
    rows = [*own(benchmark, problem), *beside(benchmark, problem, longest)]
    useful = [row for row in rows if np.isfinite(row.error)]
    for k in range(ROUNDS):
        for row in useful:
            if k < LONG_ROUNDS or row.seconds < SHORT:
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


def best(data: Data, tool: str, target: float, clock: str = "seconds") -> float:
    """The least seconds, of whole calls or of `steps`, in which a tool reaches an accuracy."""
    reached = (data["tool"] == tool) & (data["error"] <= target)
    return float(np.min(data[clock][reached], initial=np.inf))


def table(benchmark: Benchmark, data: Data) -> list[list[str]]:
    """Milliseconds of CPU of whole calls to each accuracy, the least error, what a tool said; then what others published.

    Below each method of this library are those of its steps alone, which are not ranked.
    """
    tools = list(dict.fromkeys(data["tool"].tolist()))
    fastest = [min(best(data, tool, target) for tool in tools) for target in TARGETS]
    lines = [["", *(f"ms to {target:.0e}" for target in TARGETS), "least error", ""]]
    for tool in tools:
        of_tool = data["tool"] == tool
        cells = []
        for target, least in zip(TARGETS, fastest, strict=True):
            seconds = best(data, tool, target)
            cells.append(f"**{_ms(seconds)}**" if seconds == least < np.inf else _ms(seconds))
        error = np.min(data["error"][of_tool])
        messages = [m for m in data["message"][of_tool].tolist() if m]
        said = messages[-1] if messages and not np.isfinite(data["error"][of_tool][-1]) else ""
        lines.append([tool, *cells, f"{error:.1e}" if np.isfinite(error) else "-", said])
        if tool.startswith("dalembert"):
            lines.append([STEPS_ONLY, *(_ms(best(data, tool, target, "steps")) for target in TARGETS), "", ""])
    return lines + [[line, *("" for _ in TARGETS), "", "as published"] for line in benchmark.published]


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}" if np.isfinite(seconds) else "-"


@panels(7.2, 4.2)
def _figure(data: Data, ax: Axes, benchmark: Benchmark) -> None:
    for k, tool in enumerate(dict.fromkeys(data["tool"].tolist())):
        shown = (data["tool"] == tool) & np.isfinite(data["error"]) & np.isfinite(data["seconds"])
        ours = tool.startswith("dalembert")
        ax.plot(
            np.maximum(data["error"][shown], 1e-16), data["seconds"][shown], marker=MARKERS[k % len(MARKERS)],
            color=CYCLE[k % len(CYCLE)], markersize=4, linestyle="-" if ours else "--", linewidth=1.2 if ours else 0.8,
            label=tool,
        )  # fmt: skip
    log_log(ax, benchmark.item, "error", "CPU seconds")
    ax.invert_xaxis()
    ax.legend(fontsize=7, loc="best")


def draw(benchmark: Benchmark, data: Data) -> Any:
    """Work against precision."""
    return _figure(data, benchmark)
