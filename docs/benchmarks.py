"""Writes the tables of docs/benchmarks.md, and the file of results for IFToMM's library, from a report.

dalembert reproduce benchmarks --jobs 1 --out out/benchmarks    measure
python docs/benchmarks.py out/benchmarks                        write
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from dalembert.experiments.benchmarks._benchmark import references
from dalembert.experiments.benchmarks.records import RECORDS
from dalembert.reproduction import machine, versions

FOLDER = Path(__file__).resolve().parent
PAGE, RESULTS = FOLDER / "benchmarks.md", FOLDER / "_static" / "iftomm_results.json"
BEGIN, END = "<!-- measured: benchmarks -->", "<!-- end -->"


def sections(report: Path) -> str:
    """A section a problem: what is measured, its table, its reference."""
    parts = []
    for record in RECORDS:
        result = _result(report, record.name)
        head, *rows = [[cell.replace("|", "/") for cell in row] for row in result["table"]] or [["not measured in this report"]]
        lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
        known = references().get(record.name)
        digits = (
            f"\nReference: {known['by']}; they differ by {known['agreement']:.0e} (`{known['command']}`).\n" if known else ""
        )
        remark = f"\n{record.remark}\n" if record.remark else ""
        command = f"`dalembert reproduce benchmarks.{record.name}`"
        text = f"### {record.item}\n\nError: {record.measured}. {command}\n\n" + "\n".join(lines)
        parts.append(f"{text}\n{digits}{remark}")
    return "\n".join(parts)


def iftomm(report: Path) -> list[dict[str, Any]]:
    """What a submission to IFToMM's library states: problem, accuracy as the problem defines it, CPU time, method, machine."""
    found = []
    for record in RECORDS:
        if record.item.startswith(("IFToMM", "Bicycle")):
            head, *rows = _result(report, record.name)["table"] or [[]]
            if not rows:
                continue
            column = head.index(f"ms to {record.target:.0e}")
            ours = [row for row in rows if row[0].startswith("dalembert") and row[column] != "-"]
            best = min(ours, key=lambda row: float(row[column].strip("*")))
            found.append({
                "problem": record.item, "final time": record.t1, "accuracy": record.measured, "error at most": record.target,
                "CPU seconds": float(best[column].strip("*")) / 1e3, "least error": float(best[head.index("least error")]),
                "method": best[0].removeprefix("dalembert "), "reproduce": f"dalembert reproduce benchmarks.{record.name}",
            })  # fmt: skip
    return [{"code": f"dalembert {versions()['dalembert']}", "machine": machine(), "results": found}]


def _result(report: Path, name: str) -> dict[str, Any]:
    file = report / "results" / f"benchmarks.{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"table": []}


def main(report: Path) -> None:
    """Write both files."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{sections(report)}\n{END}{after}", encoding="utf-8")
    RESULTS.write_text(json.dumps(iftomm(report), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
