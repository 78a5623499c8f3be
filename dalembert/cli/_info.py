"""`dalembert info`."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

import dalembert

SUMMARY = "versions and caches"

DESCRIPTION = """\
Show the versions of everything that takes part in a simulation, and where compiled code is kept.
"""

EPILOG = """\
examples:
  dalembert info
  dalembert info --json                 for a bug report or a log
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert info`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """Print versions and places."""
    facts = collect()
    if options.json:
        print(json.dumps(facts, indent=2))
        return 0
    for name, text in facts.items():
        print(f"{name:<18} {text}")
    return 0


def collect() -> dict[str, Any]:
    """The facts, by name."""
    from dalembert.reproduction import machine, versions

    facts: dict[str, Any] = {**versions(), "machine": machine()}
    facts["installed in"] = os.path.dirname(dalembert.__file__)
    facts["cached drivers"] = _driver_cache()
    return facts


def _driver_cache() -> str:
    """Where Numba keeps the compiled drivers; they serve every model, and deleting them costs one slow start."""
    from dalembert.engine import _driver  # loads Numba

    return str(_driver.advance.stats.cache_path)
