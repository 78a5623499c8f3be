"""What there is: problems, methods, experiments.

Show the problems of the catalogue, the methods and the experiments.

Problems are shown with the settings that `dalembert run PROBLEM --set NAME=VALUE` takes.

examples:
  dalembert list                        everything
  dalembert list methods                methods only
  dalembert list problems --json        for programs
"""

from __future__ import annotations

import argparse
import inspect
import shutil
import textwrap
from typing import Any

from dalembert.cli._json import as_json
from dalembert.cli._methods import makers
from dalembert.cli._models import catalogue

INDENT = 6 * " "
KINDS = ("problems", "methods", "experiments")
HEADINGS = {
    "problems": "problems (dalembert run NAME)",
    "methods": "methods (--method NAME)",
    "experiments": "experiments (dalembert reproduce NAME)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert list`."""
    parser.add_argument("what", nargs="?", choices=KINDS, metavar="problems|methods|experiments", help="all three by default")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """Print the lists."""
    kinds = KINDS if options.what is None else (options.what,)
    collected = {kind: entries(kind) for kind in kinds}
    if options.json:
        print(as_json(collected))
        return 0
    width = min(shutil.get_terminal_size().columns, 120)
    blocks = []
    for kind in kinds:
        lines = [HEADINGS[kind]]
        for entry in collected[kind]:
            lines += [
                f"  {entry['call']}",
                textwrap.fill(entry["summary"], width, initial_indent=INDENT, subsequent_indent=INDENT),
            ]
        blocks.append("\n".join(lines))
    print("\n\n".join(blocks))
    return 0


def entries(kind: str) -> list[dict[str, Any]]:
    """One kind of things: name, how to write it, what it is."""
    if kind == "problems":
        return [_entry(name, f"{name}{_parameters(function)}", function) for name, function in catalogue().items()]
    if kind == "methods":
        return [
            {**_entry(name, f"{name}{_parameters(make)}", make), "reference": getattr(make, "reference", None)}
            for name, make in makers().items()
        ]
    from dalembert import experiments

    found = [experiments.find(name) for name in experiments.names()]
    return [
        {
            "name": e.name,
            "call": f"{e.name}  ({e.item} of {e.document})",
            "summary": e.claim,
            "document": e.document,
            "item": e.item,
        }
        for e in found
    ]


def _entry(name: str, call: str, thing: Any) -> dict[str, Any]:
    return {"name": name, "call": call, "summary": (inspect.getdoc(thing) or "").partition("\n")[0]}


def _parameters(function: Any) -> str:
    """The arguments with their defaults, without types."""
    parts = []
    for parameter in inspect.signature(function).parameters.values():
        default = parameter.default
        shown = f"{default:.6g}" if isinstance(default, float) else repr(default)
        parts.append(parameter.name if default is parameter.empty else f"{parameter.name}={shown}")
    return f"({', '.join(parts)})"
