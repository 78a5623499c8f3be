"""Docstrings are plain text with `code` between backticks, indented blocks and lists: reStructuredText for Sphinx."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import typeset
from sphinx.pycode import ModuleAnalyzer

SECTIONS = ("Args:", "Attributes:", "Example:", "Examples:", "Raises:", "Returns:", "Yields:")


def reread(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """For the event autodoc-process-docstring."""
    lines[:] = list(restructured((beneath(name) if what == "data" else []) or lines))


def beneath(name: str) -> list[str]:
    """What stands beneath the assignment of a name, in one of the files of the package that exports it."""
    package, _, alias = name.rpartition(".")
    for part in pkgutil.iter_modules(getattr(importlib.import_module(package), "__path__", ())):
        found = ModuleAnalyzer.for_module(f"{package}.{part.name}")
        found.analyze()
        if ("", alias) in found.attr_docs:
            return found.attr_docs["", alias]
    return []


def restructured(lines: list[str]) -> Iterator[str]:
    r"""The lines of a docstring in reStructuredText; sections such as "Args:" are left to napoleon.

    Example:
        >>> list(restructured(["With `x_i` and a_ij.", "", "    da.f(*x)"]))
        ['With ``x_i`` and :math:`a_{ij}`.', '', '::', '', '    da.f(*x)', '']

    """
    section, example, before = "", False, ""
    lines = [*lines, "."]  # ends the last block
    while len(lines) > 1:
        line = lines.pop(0)
        if line and not line.startswith(" "):
            section = line if line in SECTIONS else ""
        if line.startswith("    ") and not section:
            block = [line]
            while not lines[0].strip() or lines[0].startswith("    "):
                block.append(lines.pop(0))
            yield from displayed(block) if not before.strip() else ("", *displayed(block))
            continue
        if line.startswith("- ") and before and not before.startswith(("- ", "  ")):
            yield ""
        example = bool(line.strip()) and (example or line.startswith(">>>"))
        yield line if example or section.startswith("Example") or line in SECTIONS else inline(line)
        before = line


def displayed(block: list[str]) -> list[str]:
    """An indented block: mathematics is typeset, anything else stays as it is."""
    formula = typeset.block(block)
    if formula is None:
        return ["::", "", *block, ""]
    return [".. math::", "", *(f"    {line}" for line in formula.splitlines()), ""]


def inline(line: str) -> str:
    """A line of plain text: `code` is literal, symbols are typeset, and nothing else has a meaning."""
    parts = re.split(r"(`[^`]+`|\$[^$]+\$)", typeset.in_text(line, "${}$"))
    marks = {"`": "`{}`", "$": ":math:`{}`"}
    return "".join(
        marks[part[0]].format(part.strip("$")) if part[:1] in marks else re.sub(r"([*_|\\])", r"\\\1", part) for part in parts
    )
