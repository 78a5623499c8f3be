"""Writes the tables of docs/benchmarks.md, and the file of results for IFToMM's library, from reports.

dalembert reproduce benchmarks --jobs 1 --out out/benchmarks    measure
python docs/benchmarks.py out/benchmarks                        write; several reports may have a part of the problems each

Only results of the library as it is now are shown; of a problem that has none the page says so.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dalembert import experiments
from dalembert.experiments.benchmarks._benchmark import STEPS_ONLY, Benchmark, references
from dalembert.experiments.benchmarks.records import RECORDS
from dalembert.reproduction import machine, versions
from dalembert.reproduction._results import Store, fingerprint

FOLDER = Path(__file__).resolve().parent
PAGE, RESULTS = FOLDER / "benchmarks.md", FOLDER / "_static" / "iftomm_results.json"
BEGIN, END = "<!-- measured: benchmarks -->", "<!-- end: "
NOT_MEASURED = "Not measured for this page: the command measures it."
Table = list[list[str]]


def tables(reports: Sequence[Path]) -> dict[str, Table]:
    """The tables of those problems that this state of the library has measured, by name."""
    found: dict[str, Table] = {}
    for record in RECORDS:
        results = [Store(report, full=False).load(experiments.find(f"benchmarks.{record.name}")) for report in reports]
        result = next((result for result in results if result is not None), None)
        if result is not None:
            found[record.name] = [list(row) for row in result.table]
    return found


def sections(measured: dict[str, Table], sources: str) -> str:
    """What was measured with what, then a section a problem."""
    state = f"dalembert {versions()['dalembert']} (hash of the sources: {sources}), {machine()}"
    return "\n".join([
        f"Measured: {len(measured)} of {len(RECORDS)} problems, with {state}.\n",
        *(_section(record, measured.get(record.name)) for record in RECORDS),
    ])  # fmt: skip


def _section(record: Benchmark, table: Table | None) -> str:
    """What is measured, its table, its reference."""
    shown = NOT_MEASURED
    if table is not None:
        head, *rows = [[cell.replace("|", "/") for cell in row] for row in table]
        shown = "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))
    known = references().get(record.name)
    digits = f"\nReference: {known['by']}; they differ by {known['agreement']:.0e} (`{known['command']}`).\n" if known else ""
    remark = f"\n{record.remark}\n" if record.remark else ""
    command = f"`dalembert reproduce benchmarks.{record.name}`"
    return f"### {record.item}\n\nError: {record.measured}. {command}\n\n{shown}\n{digits}{remark}"


def iftomm(measured: dict[str, Table]) -> list[dict[str, Any]]:
    """What a submission to IFToMM's library states: problem, accuracy as the problem defines it, CPU time, method, machine."""
    found = []
    for record in RECORDS:
        if record.item.startswith(("IFToMM", "Bicycle")) and record.name in measured:
            head, *rows = measured[record.name]
            column = head.index(f"ms to {record.target:.0e}")
            pairs = [(row, steps) for row, steps in itertools.pairwise(rows) if steps[0] == STEPS_ONLY]
            whole, steps = min((pair for pair in pairs if pair[0][column] != "-"), key=lambda pair: _seconds(pair[0][column]))
            found.append({
                "problem": record.item, "final time": record.t1, "accuracy": record.measured, "error at most": record.target,
                "CPU seconds": _seconds(whole[column]), "CPU seconds of the steps alone": _seconds(steps[column]),
                "least error": float(whole[head.index("least error")]), "method": whole[0].removeprefix("dalembert "),
                "reproduce": f"dalembert reproduce benchmarks.{record.name}",
            })  # fmt: skip
    return [{"code": f"dalembert {versions()['dalembert']}", "machine": machine(), "results": found}]


def _seconds(cell: str) -> float:
    return float(f"{float(cell.strip('*')) / 1e3:.4g}")


def digest(text: str) -> str:
    """By which a page that was written by hand is told."""
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def main(reports: Sequence[Path]) -> None:
    """Write both files."""
    measured, sources = tables(reports), fingerprint(experiments.find(f"benchmarks.{RECORDS[0].name}"))
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1].split("-->", 1)[1]
    text = f"\n\n{sections(measured, sources)}\n"
    PAGE.write_text(f"{before}{BEGIN}{text}{END}{digest(text)} -->{after}", encoding="utf-8")
    RESULTS.write_text(json.dumps(iftomm(measured), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main([Path(report) for report in sys.argv[1:]])
