"""`dalembert reproduce`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from dalembert.cli._read import Unusable, suggestion

SUMMARY = "do experiments of the literature again and judge their claims"

DESCRIPTION = """\
Do experiments of the literature again: compute, draw, and judge whether the claim holds here.

Each experiment ends as "holds", "does not hold" or "failed", with the numbers that decided; the others go on. The figures are
written to --out. The exit code is 0 if every claim holds, 1 otherwise.
"""

EPILOG = """\
examples:
  dalembert reproduce                               all of them
  dalembert reproduce jay1996.figure5.6             one of them (see dalembert list experiments)
  dalembert reproduce --full --out figures          the thorough versions
  dalembert reproduce --format pdf --json           figures for a paper, verdicts for a program
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert reproduce`."""
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="names of experiments; all by default")
    parser.add_argument("--full", action="store_true", help="take the time that a thorough answer needs")
    parser.add_argument("--out", metavar="DIR", default="out/experiments", help="where the figures go (default: %(default)s)")
    parser.add_argument("--format", choices=("png", "pdf", "svg"), default="png", help="of the figures (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON only")


def execute(options: argparse.Namespace) -> int:
    """Run the experiments one after the other."""
    from dalembert import experiments

    chosen = options.experiments or experiments.names()
    for name in chosen:
        if name not in experiments.names():
            near = suggestion(name, experiments.names())
            raise Unusable(f"there is no experiment {name!r}{near} (see dalembert list experiments)")
    results = []
    for k, name in enumerate(chosen, start=1):
        if sys.stderr.isatty():
            print(f"{k} of {len(chosen)}: {name} ...", file=sys.stderr, flush=True)
        result = experiments.run(name, options.full, Path(options.out), formats=(options.format,), on_failure="return")
        results.append(result)
        if not options.json:
            print(result, end="\n\n", flush=True)
    held = sum(result.holds for result in results)
    if options.json:
        print(json.dumps([result.as_dict() for result in results], indent=2))
    else:
        print(f"{held} of {len(results)} claims hold; figures in {options.out}")
    return 0 if held == len(results) else 1
