"""Versions and caches.

Show the versions of everything that takes part in a simulation, and where compiled code is kept.

examples:
  dalembert info
  dalembert info --json                 for a bug report or a log
"""

from __future__ import annotations

import argparse
import os
import shutil
from typing import Any

import dalembert
from dalembert._progress import busy
from dalembert.cli._json import as_json

OPTIONAL = ("zarr", "dask", "distributed")
"""Packages for runs on disk and on clusters."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert info`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """Print versions and places."""
    with busy("asking all packages for their versions"):
        facts = collect()
    if options.json:
        print(as_json(facts))
        return 0
    for name, text in facts.items():
        print(f"{name:<18} {text}")
    return 0


def collect() -> dict[str, Any]:
    """The facts, by name."""
    from dalembert.reproduction import machine, version, versions

    facts: dict[str, Any] = {**versions(), **{package: version(package) for package in OPTIONAL}}
    facts["ffmpeg"] = shutil.which("ffmpeg") or "not found: films are written as .html and .gif only"
    facts["machine"] = machine()
    facts["installed in"] = os.path.dirname(dalembert.__file__)
    return facts | _caches()


def _caches() -> dict[str, str]:
    """Where compiled code is kept: that of drivers, which serve every model, by Numba, and that of models."""
    from dalembert.compiler._jit import cache_directory, cache_limit, stored_files
    from dalembert.engine import _driver  # loads Numba

    directory = cache_directory()
    facts = {"cached drivers": str(_driver.advance.stats.cache_path)}
    if directory is None:
        return facts | {"cached models": "nowhere, without a home directory: set DALEMBERT_CACHE_DIR"}
    sizes = [size for _, size in stored_files(directory)]
    return facts | {
        "cached models": str(directory),
        "size": f"{sum(sizes) / 1e6:.1f} MB in {len(sizes)} file{'' if len(sizes) == 1 else 's'}",
        "at most": f"{cache_limit() / 1e6:g} MB, then what was not used for longest goes: DALEMBERT_CACHE_MB changes it",
        "to clear a cache": "dalembert cache clear, for drivers delete the directory: what is needed is compiled again; "
        "DALEMBERT_CACHE_DIR moves that of models",
    }
