"""The API reference: Sphinx's autodoc of every public name of dalembert, so that a new one needs no list.

`.. names:: methods` on a page stands for the names of that group, `.. command::` for the help texts of the command.
"""

from __future__ import annotations

import argparse
import enum
import importlib
import inspect
import os
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from docstrings import inline, reread
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import dalembert as da

MODULES = ("systems", "forces", "mechanisms", "tableaux", "schemes", "verify", "problems", "plot", "experiments", "errors")
GROUPS = {
    "systems": ("systems", "forces", "runs._index_reduction"),
    "mechanisms": ("mechanisms",),
    "methods": ("methods", "contact", "time_stepping"),
    "coefficients": ("tableaux", "schemes"),
    "analysis": ("verify", "modified", "_fits"),
    "problems": ("problems",),
    "pictures": ("plot", "draw", "explorer"),
    "experiments": ("experiments", "reproduction"),
    "errors": ("errors",),
    "simulation": ("runs", "engine._records", "compiler", ""),  # and all that has no page of its own
}
"""By page, the modules that its names are exported from or defined in."""


ARGUMENTS = tomllib.loads(Path(__file__).with_name("arguments.toml").read_text(encoding="utf-8"))
"""Sentences about arguments that many functions share."""


@dataclass(frozen=True)
class Entry:
    """A public name, `dalembert.simulate` or `dalembert.verify.order`, and what it stands for."""

    name: str
    value: Any

    @property
    def group(self) -> str:
        """The page that it belongs to: that of the longest matching module."""
        exported = ".".join(self.name.split(".")[1:-1])
        place = exported or getattr(self.value, "__module__", "").removeprefix("dalembert.")
        found = [
            (module, group)
            for group in GROUPS
            for module in GROUPS[group]
            if f"{place}.".startswith(module + "." * bool(module))
        ]
        return max(found, key=lambda pair: len(pair[0]))[1]

    @property
    def directive(self) -> str:
        """Which of autodoc's directives describes it."""
        return "autoclass" if inspect.isclass(self.value) else "autofunction" if inspect.isroutine(self.value) else "autodata"


def public_names() -> list[Entry]:
    """Every public name once: those of dalembert itself, then those of its modules that are not among them."""
    entries = [Entry(f"dalembert.{name}", getattr(da, name)) for name in da.__all__]
    modules = {*MODULES, *(name for name in da.__all__ if isinstance(getattr(da, name), types.ModuleType))}
    entries = [entry for entry in entries if not isinstance(entry.value, types.ModuleType)]
    known = {id(entry.value) for entry in entries}
    for module in sorted(modules):
        found = getattr(da, module, None) or importlib.import_module(f"dalembert.{module}")
        for name in getattr(found, "__all__", None) or [name for name, _ in inspect.getmembers(found, inspect.isclass)]:
            value = getattr(found, name)
            if not (name.startswith("_") or isinstance(value, types.ModuleType) or id(value) in known):
                known.add(id(value))
                entries.append(Entry(f"dalembert.{module}.{name}", value))
    return entries


def described(entry: Entry) -> Iterator[str]:
    """The lines that have autodoc describe an entry."""
    yield f".. {entry.directive}:: {entry.name}"
    if inspect.isclass(entry.value) and not issubclass(entry.value, enum.Enum):
        yield "   :members:"
        if issubclass(entry.value, da.Mechanism):
            yield "   :inherited-members:"
        if issubclass(entry.value, da.OneStepMethod) and entry.value is not da.OneStepMethod:  # what no method has to have
            yield f"   :exclude-members: {', '.join(name for name in dir(da.OneStepMethod) if not name.startswith('_'))}"
    yield ""


RESULTS = (
    da.Contacts, da.Ensemble, da.Fit, da.Impacts, da.ModifiedHamiltonian, da.OptimalRun, da.PoincareSection, da.Sensitivities,
    da.State, da.Suggestion, da.Trajectory, da.mechanisms.Body, da.mechanisms.Joint, da.draw.Animation, da.draw.Part,
    da.verify.Drift, da.verify.ErrorEstimate, da.verify.OrderStudy, da.Tableau, da.tableaux.SparkTableau, da.schemes.Scheme,
    da.schemes.Substep,
)  # fmt: skip
"""What functions return: nobody makes them by their class."""


PARTS = (da.mechanisms.Body, da.mechanisms.Joint)
"""Whose methods serve the mechanism."""


def kind_of(name: str, value: Any) -> str:
    """The section of `arguments.toml` with the sentences that a function, a class or a method shares with others."""
    if name.startswith("Mechanism.") or value is da.Mechanism:
        return "mechanism"
    if name.partition(".")[0] in ("plot", "draw", "tableaux", "schemes", "forces", "mechanisms"):
        return name.partition(".")[0]
    if inspect.isclass(value) and issubclass(value, da.systems.System):
        return "system"
    if value in (da.compose, da.adjoint, da.MCVAA, da.MCVAC):
        return "method"
    if inspect.isclass(value) and issubclass(value, da.OneStepMethod):
        return "method"
    return "run"


def is_made(value: type) -> bool:
    """Whether a user calls a class: not what functions return, nor an exception or a base class."""
    return not issubclass(value, (Exception, *RESULTS)) and not inspect.isabstract(value)


def sections(name: str, value: Any) -> tuple[str, ...]:
    """Where sentences about the arguments of something public stand; those of later sections go first."""
    inherited = getattr(value, "__qualname__", name)  # as Trajectory.of for StoredTrajectory.of
    return (kind_of(name, value), name.rpartition(".")[0], inherited, name)


def sentences(name: str, value: Any) -> dict[str, str | None]:
    """What is said about each argument of something public, by its name without "dalembert."; None where nothing is."""
    known: dict[str, str] = {}
    for section in sections(name, value):
        known |= ARGUMENTS.get(section, {})
    arguments = [argument for argument in inspect.signature(value).parameters if argument not in ("self", "cls")]
    return {argument: known.get(argument) for argument in arguments}


def callables() -> Iterator[tuple[str, Any]]:
    """What a user calls, by its name without "dalembert.": functions, classes that are made, and methods of classes."""
    for entry in public_names():
        name = entry.name.removeprefix("dalembert.")
        if name.partition(".")[0] in ("problems", "experiments", "errors", "systems") or entry.directive == "autodata":
            continue
        if not inspect.isclass(entry.value) or is_made(entry.value):
            yield name, entry.value
        for method in dir(entry.value) if inspect.isclass(entry.value) and not issubclass(entry.value, Exception) else ():
            member = inspect.getattr_static(entry.value, method)
            shown = isinstance(member, (classmethod, staticmethod, types.FunctionType)) and not method.startswith("_")
            if shown and not issubclass(entry.value, (da.OneStepMethod, da.systems.System, *PARTS)):
                yield f"{name}.{method}", getattr(entry.value, method)


def describe_arguments(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """For autodoc-process-docstring: the sentences about its arguments, unless the docstring has its own."""
    if what not in ("function", "class", "method") or any(line.startswith(":param") for line in lines):
        return
    if what == "class" and not is_made(obj):
        return
    said = {a: text for a, text in sentences(name.removeprefix("dalembert."), obj).items() if text is not None}
    lines += ["", *(f":param {argument}: {inline(text)}" for argument, text in said.items()), ""]


class Names(SphinxDirective):
    """`.. names:: group`: a table of the names of a group, and an entry for each."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Autodoc's directives, parsed."""
        entries = sorted((e for e in public_names() if e.group == self.arguments[0]), key=lambda e: e.name.lower())
        table = [".. autosummary::", "   :nosignatures:", "", *(f"   ~{entry.name}" for entry in entries), ""]
        return self.parse_text_to_nodes("\n".join([*table, *(line for entry in entries for line in described(entry))]))


class Command(SphinxDirective):
    """`.. command::`: the help texts of the command, one section a subcommand."""

    def run(self) -> list[nodes.Node]:
        """Sections of literal blocks."""
        from dalembert.cli._main import COMMANDS, build_parser

        with mock.patch.dict(os.environ, COLUMNS="90"):  # argparse breaks its lines by it
            parser = build_parser()
            choices = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices
            texts = {f"dalembert {name}": choices[name].format_help() for name in COMMANDS}
            lines = ["::", "", *(f"   {line}" for line in parser.format_help().splitlines()), ""]
        for title, text in texts.items():
            lines += [title, "-" * len(title), "", "::", "", *(f"   {line}" for line in text.splitlines()), ""]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives, and have docstrings read as plain text before napoleon reads them."""
    app.add_directive("names", Names)
    app.add_directive("command", Command)
    app.connect("autodoc-process-docstring", reread, priority=400)
    app.connect("autodoc-process-docstring", describe_arguments, priority=600)  # after napoleon
    return {"parallel_read_safe": True}
