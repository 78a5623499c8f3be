"""Writes the tables of docs/benchmarks.md, and the file of results for IFToMM's library, from reports.

dalembert reproduce benchmarks --verbose --jobs 1    measure, into out/report
python docs/benchmarks.py out/report                 write; several reports may have a part of the problems each

Results that rest on the library as it is now are shown; of a problem that has none, those of the page before if it has the same
rows. The page says so unless all that they rest on is still the same.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dalembert import experiments
from dalembert.experiments.benchmarks._benchmark import Benchmark, _tool
from dalembert.experiments.benchmarks._references import references
from dalembert.experiments.benchmarks._shown import STEPS_ONLY
from dalembert.experiments.benchmarks.records import RECORDS
from dalembert.reproduction import machine, versions
from dalembert.reproduction._results import Store, fingerprint

FOLDER = Path(__file__).resolve().parent
PAGE, RESULTS = FOLDER / "benchmarks.md", FOLDER / "_static" / "iftomm_results.json"
BEGIN, END = "<!-- measured: benchmarks -->", "<!-- end: "
NOT_MEASURED = "Not measured for this page: the command measures it."
EARLIER = "Not measured again since the library was changed; the command measures all rows."
ASKED = "1e-09"
"""The accuracy of the first table, which is asked for of every problem."""
SOURCES = re.compile(r"\(sources: (\w+)\)")
"""What a table rests on, as a hash."""
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


def earlier(page: str) -> dict[str, tuple[str, str]]:
    """The tables that the page has of problems, and the hash of what they rest on, by the names of problems.

    Those with other rows than the problem has now are left out.
    """
    found = {}
    for record in RECORDS:
        section = page.split(f"### {record.item}\n")[-1].split("###")[0] if f"### {record.item}\n" in page else ""
        rows, sources = "\n".join(line for line in section.splitlines() if line.startswith("|")), SOURCES.search(section)
        ours = dict.fromkeys(_tool(method, numbers[0]) for method, numbers in record.runs)
        if sources and _tools(rows) == [*ours, *record.peers]:
            found[record.name] = rows, sources[1]
    return found


def _tools(rows: str) -> list[str]:
    """What a table of the page compares: methods of this library and peers, without its head and what was published."""
    tools = [row[0] for row in _cells(rows)[1:] if row[0] != STEPS_ONLY and row[-1] != "as published"]
    return [tool.removeprefix("dalembert ") for tool in tools]


def _cells(rows: str) -> Table:
    """Those of a table of the page."""
    lines = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows.splitlines()]
    return [*lines[:1], *lines[2:]]


def sections(measured: dict[str, Table], before: dict[str, tuple[str, str]] | None = None) -> str:
    """What was measured with what, then a section a problem."""
    now = {record.name: fingerprint(experiments.find(f"benchmarks.{record.name}")) for record in RECORDS}
    shown = (before or {}) | {name: (_rows(table), now[name]) for name, table in measured.items()}
    valid = {name: rows for name, (rows, sources) in shown.items() if sources == now[name]}
    library = f"dalembert {versions()['dalembert']}"
    return "\n".join([
        f"{len(valid)} of {len(RECORDS)} tables were measured with {library} as it is, on {machine()}.\n",
        _summary(valid),
        *(_section(record, *shown.get(record.name, ("", "")), now[record.name]) for record in RECORDS),
    ])  # fmt: skip


def _rows(table: Table) -> str:
    head, *rows = [[cell.replace("|", "/") for cell in row] for row in table]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def _summary(tables: dict[str, str]) -> str:
    """Of each of these tables: the least error, the fastest way to the accuracy that is asked for, and the fastest peer."""
    lines = [["problem", "least error", f"ms to {ASKED}, steps alone", "by", "fastest other solver"]]
    for record in RECORDS:
        head, *rows = _cells(tables.get(record.name, "| |"))
        if f"ms to {ASKED}" not in head:
            continue
        column, error = head.index(f"ms to {ASKED}"), head.index("least error")
        ours, others = ([row for row in rows if row[0].startswith("dalembert ") is mine] for mine in (True, False))
        alone = {row[0]: below[column] for row, below in itertools.pairwise(rows) if below[0] == STEPS_ONLY}
        least = min((row[error] for row in ours if row[error] != "-"), key=float, default="-")
        others = [row for row in others if row[0] != STEPS_ONLY and row[-1] != "as published"]
        fastest, peer = _fastest(ours, column), _fastest(others, column)
        mine = [f"{fastest[column]}, {alone[fastest[0]]}", fastest[0].removeprefix("dalembert ")] if fastest else ["-", ""]
        lines.append([record.item, least, *mine, f"{peer[0]}: {peer[column]} ms" if peer else "none"])
    return f"{_rows(lines)}\n" if len(lines) > 1 else ""


def _fastest(rows: Table, column: int) -> list[str] | None:
    """Of those that reach the accuracy of a column."""
    reached = [row for row in rows if row[column].strip("*-")]
    return min(reached, key=lambda row: float(row[column].strip("*")), default=None)


def _section(record: Benchmark, rows: str, sources: str, now: str) -> str:
    """What is measured, its table with what that rests on, its reference."""
    known = references().get(record.name)
    digits = f"\n{_certificate(known)}\n" if known else ""
    remark = f"\n{record.remark}\n" if record.remark else ""
    command = f"`dalembert reproduce benchmarks.{record.name}`" + (f" (sources: {sources})" if rows else "")
    shown = NOT_MEASURED if not rows else rows if sources == now else f"{EARLIER}\n\n{rows}"
    return f"### {record.item}\n\nError: {record.measured}. {command}\n\n{shown}\n{digits}{remark}"


def _certificate(known: dict[str, Any]) -> str:
    """By what a reference was found, and how far that agrees."""
    one, other = (f"{method} (order {p})" for method, p in zip(known["methods"], known["orders"], strict=True))
    switches = f", which end at {known['switches']} switches" if known["switches"] else ""
    digits = math.floor(-math.log10(known["relative"]))
    agree = f"they agree to {digits} digits of each position, {known['agreement']:.0e} at most"
    return f"Reference: {one} and {other}{switches}, with {known['digits']} digits; {agree} (`{known['command']}`)."


def iftomm(measured: dict[str, Table], before: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """What a submission to IFToMM's library states: problem, accuracy as the problem defines it, CPU time, method, machine.

    Problems that were not measured keep what is stated of them.
    """
    found = []
    for record in RECORDS:
        if record.name not in measured:
            found += [entry for entry in before if entry["problem"] == record.item]
        if record.item.startswith(("IFToMM", "Bicycle")) and record.name in measured:
            head, *rows = measured[record.name]
            column = head.index(f"ms to {record.target:.0e}")
            pairs = [(row, steps) for row, steps in itertools.pairwise(rows) if steps[0] == STEPS_ONLY]
            reached = [pair for pair in pairs if pair[0][column] != "-"]
            if not reached:
                continue
            whole, steps = min(reached, key=lambda pair: _seconds(pair[0][column]))
            found.append({
                "problem": record.item, "final time": record.t1, "error": record.measured, "accuracy, at most": record.target,
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
    measured = tables(reports)
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1].split("-->", 1)[1]
    text = f"\n\n{sections(measured, earlier(rest))}\n"
    PAGE.write_text(f"{before}{BEGIN}{text}{END}{digest(text)} -->{after}", encoding="utf-8")
    stated = json.loads(RESULTS.read_text(encoding="utf-8"))[0]["results"]
    RESULTS.write_text(json.dumps(iftomm(measured, stated), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main([Path(report) for report in sys.argv[1:]])
