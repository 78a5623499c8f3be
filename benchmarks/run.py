"""Run the benchmarks, print their tables and write docs/performance.md.

python benchmarks/run.py                        all of them, a few minutes
python benchmarks/run.py --only chain methods   some of them; their sections of the page are replaced
"""

from __future__ import annotations

import argparse
import re

import bench_catalogue
import bench_chain
import bench_checks
import bench_cold_start
import bench_contact
import bench_derivatives
import bench_double_pendulum
import bench_ensemble
import bench_four_bar
import bench_impacts
import bench_mechanisms
import bench_methods
import bench_molecules
import bench_scale
import bench_scale_peers
import bench_time_to_accuracy
import bench_work_precision
from common import ROOT, note

PARTS = {
    "double_pendulum": bench_double_pendulum,
    "checks": bench_checks,
    "chain": bench_chain,
    "scale": bench_scale,
    "scale_peers": bench_scale_peers,
    "molecules": bench_molecules,
    "cold_start": bench_cold_start,
    "catalogue": bench_catalogue,
    "work_precision": bench_work_precision,
    "time_to_accuracy": bench_time_to_accuracy,
    "methods": bench_methods,
    "ensemble": bench_ensemble,
    "impacts": bench_impacts,
    "contact": bench_contact,
    "four_bar": bench_four_bar,
    "mechanisms": bench_mechanisms,
    "derivatives": bench_derivatives,
}
PAGE = ROOT / "docs" / "performance.md"
HEADER = """# Performance

`make bench` measures all of this and writes this page; the line under each title repeats one part. Times depend on the machine,
which is named below it.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure dalembert and write docs/performance.md.")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"some of {', '.join(PARTS)}")
    chosen = parser.parse_args().only or list(PARTS)
    sections = {} if chosen == list(PARTS) else written()
    for name in PARTS:
        if name in chosen:
            note(name)
            sections[name] = PARTS[name].run().markdown(name)
            print(sections[name], flush=True)
    PAGE.parent.mkdir(exist_ok=True)
    others = [text for name, text in sections.items() if name not in PARTS]
    PAGE.write_text("\n".join([HEADER, *(sections[name] for name in PARTS if name in sections), *others]))
    note(f"written to {PAGE.relative_to(ROOT)}")


def written() -> dict[str, str]:
    """The sections of the page as it stands; those that are written by hand have their titles for names."""
    texts = re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)[1:] if PAGE.exists() else []
    found = {}
    for text in texts:
        name = next((name for name in PARTS if f"--only {name}`" in text), text.splitlines()[0])
        found[name] = text.rstrip() + "\n"
    return found


if __name__ == "__main__":
    main()
