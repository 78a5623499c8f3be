"""What the benchmarks share: timing, fresh processes, tables, the machine's description."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


@dataclass(frozen=True)
class Section:
    """One part of the results page: paragraphs and tables in Markdown."""

    title: str
    body: str

    def markdown(self, name: str) -> str:
        """The section with the command that measures it anew and the machine on which it was measured."""
        head = f"## {self.title}\n\n`python benchmarks/run.py --only {name}`\n\nMeasured on: {machine()}"
        return f"{head}\n\n{self.body.strip()}\n"


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table with aligned columns; numbers come formatted."""
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]

    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"

    return "\n".join([line(cells[0]), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, cells[1:])])


def note(text: str) -> None:
    """Say on the terminal what is being measured; tables go to standard output."""
    print(f"  {text}", file=sys.stderr, flush=True)


def seconds(function: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def least_of(repeat: Callable[[], float], *, at_least: int = 5, for_seconds: float = 0.5) -> float:
    """The least of a measurement, repeated at least so often and so long: what other work on the machine disturbs least."""
    values, began = [], time.perf_counter()
    while len(values) < at_least or time.perf_counter() - began < for_seconds:
        values.append(repeat())
    return min(values)


@contextmanager
def caches(*, code: bool, drivers: bool) -> Iterator[dict[str, str]]:
    """An environment whose named caches are empty: `code` for models' kernels, `drivers` for what Numba compiles once."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH")]))
        if code:
            environment["DALEMBERT_CACHE_DIR"] = str(Path(folder) / "code")
        if drivers:
            environment["NUMBA_CACHE_DIR"] = str(Path(folder) / "drivers")
        yield environment


def measure_apart(script: str, *arguments: object) -> dict[str, float]:
    """What `benchmarks/<script> --measure <arguments>` prints as JSON, in a fresh process with no compiled kernels."""
    with caches(code=True, drivers=False) as environment:
        command = [sys.executable, str(HERE / script), "--measure", *map(str, arguments)]
        finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise SystemExit(f"{' '.join(command[1:])} failed:\n{finished.stderr}")
    return json.loads(finished.stdout)


def load_drivers() -> None:
    """Load Numba and the drivers, which belong to no model, so that they are not counted as the compilation of one."""
    import dalembert as da

    da.simulate(da.problems.pendulum(), da.Rattle(), steps=10)


@contextmanager
def stepping_time() -> Iterator[list[float]]:
    """Thread time that runs spend in their step loops, without what is done before the first step."""
    from dalembert.engine._run import Run

    advance, spent = Run.advance, list[float]()

    def timed(run: Run, *given: Any, **named: Any) -> Any:
        began = time.thread_time()
        try:
            return advance(run, *given, **named)
        finally:
            spent.append(time.thread_time() - began)

    Run.advance = timed
    try:
        yield spent
    finally:
        Run.advance = advance


def machine() -> str:
    """CPU model, operating system and versions."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "casadi", "numba", "llvmlite"))
    system = f"{platform.system()} on {platform.machine()}"
    return f"{_cpu()}, {os.cpu_count()} cores, {system}; Python {platform.python_version()}, {packages}."


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown CPU"
