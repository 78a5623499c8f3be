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
ROUNDS, SHORT = 3, 0.2
"""How often runs shorter than so many seconds are timed again, in turn, so that other work disturbs all alike."""
Steps = int | tuple[tuple[float, int], ...]
"""A number of equal steps, or such numbers up to one time after another."""
Runs = tuple[tuple[OneStepMethod, tuple[Steps, ...]], ...]
"""Methods with the numbers of steps that they take."""
UNGIVEN = dict.fromkeys(("q0", "v0", "p0", "y0", "z0", "lam0", "psi0"))
"""Problems bring their own start."""


@dataclass(frozen=True)
class Benchmark:
    """A problem to be solved to `t1`, by what, how its error is measured, and what is known of others.

    `error` is a function of a run that has states at `outputs` equidistant times. `published` are lines of a table: who, how
    accurate, how fast, on what. `peers` are names in `_peers.PEERS`.
    """

    name: str
    item: str
    problem: Callable[[], Problem]
    t1: float
    runs: Runs
    error: Callable[[Trajectory], float]
    measured: str
    published: tuple[str, ...] = ()
    peers: tuple[str, ...] = ("SciPy DOP853", "SciPy Radau", "SUNDIALS IDA")
    target: float = 1e-9
    outputs: int = 2
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
    """One way to solve the problem: what it is called, how it is run again, its error and the least CPU time so far."""

    tool: str
    setting: str
    call: Callable[[], Trajectory] | None = None
    error: float = np.inf
    seconds: float = np.inf
    message: str = ""

    def run(self) -> Trajectory:
        """Once more, with the CPU time that it takes: what is prepared before, compiling included, does not count."""
        assert self.call is not None
        found = self.call()
        self.seconds = min(self.seconds, found.stats["cpu_seconds"])
        return found


def own(benchmark: Benchmark, problem: Problem) -> Iterator[Row]:
    """The runs of this library, compiled."""
    for method, numbers in benchmark.runs:
        for steps in numbers:
            call = functools.partial(stepped, problem, method, benchmark.t1, steps, benchmark.outputs)
            row = Row(f"dalembert {method}".replace("da.", ""), f"{_number(steps)} steps", call)
            try:
                run = row.run()
                row.error = benchmark.error(run) if run.status == "done" else np.inf
                row.message = run.message
            except DalembertError as error:
                row.message = str(error)
            yield row


def stepped(problem: Problem, method: OneStepMethod, t1: float, steps: Steps, outputs: int) -> Trajectory:
    """A run as `da.simulate` makes it, with the CPU seconds of its steps; of several step sizes, the last part."""
    seconds, start, begun = 0.0, None, problem.t0
    for end, number in ((t1, steps),) if isinstance(steps, int) else steps:
        lengths: dict[str, Any] = {"h": (end - begun) / number, "steps": number, "save_every": number // outputs}
        spec = Arguments("simulate", problem, method, UNGIVEN, start=start, params=None, t0=None, t1=None, **lengths).single()
        run = make_run(prepared(spec))
        began = time.thread_time()
        reason = run.advance()
        seconds += time.thread_time() - began
        found = trajectory_of(spec, run, "done" if reason is None else "failed", reason or "", None)
        found.stats["cpu_seconds"] = seconds
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
            try:
                row.error = benchmark.error(row.run())
            except Exception as error:  # whatever a peer raises is what it has to say
                row.message = _one_line(error)
            yield row
            if row.seconds > longest / 3:
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
    for _ in range(ROUNDS):
        for row in useful:
            if row.seconds < SHORT:
                row.run()
    return {
        "tool": np.array([row.tool for row in rows]),
        "setting": np.array([row.setting for row in rows]),
        "message": np.array([row.message for row in rows]),
        "error": np.array([row.error for row in rows]),
        "seconds": np.array([row.seconds for row in rows]),
    }


def holds(benchmark: Benchmark, data: Data) -> Iterable[Check]:
    """The least error of this library, that its errors fall, and who is fastest to each accuracy that a peer reaches."""
    ours = np.char.startswith(data["tool"], "dalembert")
    errors = data["error"][ours]
    yield at_most("least error", np.min(errors), benchmark.target)
    yield at_least("largest error over the least", np.max(errors[np.isfinite(errors)]) / np.min(errors), 1.0)
    yield at_least("runs that reach the end", np.sum(np.isfinite(errors)), 1)
    known = references().get(benchmark.name)
    if known:
        yield at_most("disagreement of the two methods behind the reference", known["agreement"], 0.1 * benchmark.target)


def best(data: Data, tool: str, target: float) -> float:
    """The least seconds in which a tool reaches an accuracy."""
    reached = (data["tool"] == tool) & (data["error"] <= target)
    return float(np.min(data["seconds"][reached], initial=np.inf))


def table(benchmark: Benchmark, data: Data) -> list[list[str]]:
    """One row a tool: milliseconds of CPU to each accuracy, the least error, what it said; then what others published."""
    tools = list(dict.fromkeys(data["tool"].tolist()))
    fastest = [min(best(data, tool, target) for tool in tools) for target in TARGETS]
    lines = [["", *(f"ms to {target:.0e}" for target in TARGETS), "least error", ""]]
    for tool in tools:
        of_tool = data["tool"] == tool
        cells = []
        for target, least in zip(TARGETS, fastest, strict=True):
            seconds = best(data, tool, target)
            shown = f"{1e3 * seconds:.3g}" if np.isfinite(seconds) else "-"
            cells.append(f"**{shown}**" if seconds == least < np.inf else shown)
        error = np.min(data["error"][of_tool])
        messages = [m for m in data["message"][of_tool].tolist() if m]
        said = messages[-1] if messages and not np.isfinite(data["error"][of_tool][-1]) else ""
        lines.append([tool, *cells, f"{error:.1e}" if np.isfinite(error) else "-", said])
    return lines + [[line, *("" for _ in TARGETS), "", "as published"] for line in benchmark.published]


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
