"""The table and the figure of a benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.draw._style import CYCLE, MARKERS
from dalembert.experiments._experiment import Data
from dalembert.experiments._figures import Axes, log_log, panels

if TYPE_CHECKING:
    from dalembert.experiments.benchmarks._benchmark import Benchmark

TARGETS = (1e-3, 1e-6, 1e-9, 1e-11)
"""Accuracies at which times are compared."""
STEPS_ONLY = "its steps alone"
"""The row of a table below a method of this library."""


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
