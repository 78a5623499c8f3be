"""What an experiment is, and what comes out of one."""

from __future__ import annotations

import functools
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat

import numpy as np

from dalembert.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Data = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Check:
    """One number that a claim stands or falls by: `value <= bound` or `value >= bound`. A value of nan never passes.

    Example:
        >>> check = Check("largest |H - H_0|", 9.6e-6, "<=", 2e-5)
        >>> print(check, check.passes)
        largest |H - H_0| = 9.6e-06 (<= 2e-05) True

    """

    name: str
    value: float
    relation: Literal["<=", ">="]
    bound: float

    def __post_init__(self) -> None:
        if self.relation not in ("<=", ">="):
            raise InputError(f'a check compares by "<=" or ">="; got {self.relation!r}')
        if not math.isfinite(self.bound):
            raise InputError(f"a check compares with a finite bound; got {self.bound!r} for {self.name!r}")

    @property
    def passes(self) -> bool:
        """Whether the number is within its bound."""
        if math.isnan(self.value):
            return False
        return bool(self.value <= self.bound if self.relation == "<=" else self.value >= self.bound)

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.3g} ({self.relation} {self.bound:.3g})"


Checks = Iterator[Check]
"""What a predicate yields: the numbers that its claim stands or falls by."""


def at_most(name: str, value: SupportsFloat, bound: float) -> Check:
    """The check that a number does not exceed its bound."""
    return Check(name, float(value), "<=", bound)


def at_least(name: str, value: SupportsFloat, bound: float) -> Check:
    """The check that a number reaches its bound."""
    return Check(name, float(value), ">=", bound)


@dataclass(frozen=True)
class Experiment:
    """A figure or table of a document: its claim, how its data are computed and drawn, and what the data must show.

    `compute(full)` returns arrays by name; with `full` it takes the time that a thorough answer needs. `draw` and `holds`
    read nothing but these arrays, so that data may be kept and looked at again. `contradicts` is for what cannot both be right:
    what the document says, what is found here, and why which of them is wrong. `remark` is anything else worth knowing. An
    experiment that is `timed` measures seconds: it is done after the others, and one that is `named_only` only
    when it is named. `table` gives rows of text, the first of them a head. `rests_on` gives the texts on which its result
    depends, where that is not the whole library.
    """

    name: str
    document: str
    item: str
    claim: str
    compute: Callable[[bool], Data]
    draw: Callable[[Data], Figure]
    holds: Callable[[Data], Iterable[Check]]
    contradicts: str = ""
    remark: str = ""
    timed: bool = False
    table: Callable[[Data], list[list[str]]] | None = None
    named_only: bool = False
    rests_on: Callable[[], list[str]] | None = None

    def __repr__(self) -> str:
        return f"<Experiment {self.name}: {self.item} of {self.document}>"


@dataclass(frozen=True)
class Document:
    """A document whose claims are put to the test: its short name, how it is cited, and the experiments on it."""

    name: str
    title: str
    experiments: list[Experiment] = field(default_factory=list, repr=False)
    named_only: bool = False

    def claim(
        self,
        name: str,
        claim: str,
        *,
        compute: Callable[[bool], Data],
        draw: Callable[[Data], Figure],
        item: str = "",
        contradicts: str = "",
        remark: str = "",
        timed: bool = False,
        table: Callable[[Data], list[list[str]]] | None = None,
        rests_on: Callable[[], list[str]] | None = None,
    ) -> Callable[[Callable[[Data], Iterable[Check]]], Callable[[Data], Iterable[Check]]]:
        """Decorate the function `holds` that judges a claim; "figure4.2" is the item "figure 4.2" unless said otherwise."""

        def decorate(holds: Callable[[Data], Iterable[Check]]) -> Callable[[Data], Iterable[Check]]:
            where = item or re.sub(r"^(figure|table)(?=\d)", r"\1 ", name)
            self.experiments.append(
                Experiment(
                    f"{self.name}.{name}",
                    self.title,
                    where,
                    claim,
                    compute,
                    draw,
                    holds,
                    contradicts,
                    remark,
                    timed,
                    table,
                    self.named_only,
                    rests_on,
                )
            )
            return holds

        return decorate

    def of_modules(self, *modules: ModuleType) -> tuple[Experiment, ...]:
        """The experiments by the order of the modules that declare them, which follows the document."""
        order = [module.__name__ for module in modules]
        return tuple(sorted(self.experiments, key=lambda experiment: order.index(_module(experiment.holds))))


def _module(function: Any) -> str:
    return str(_module(function.func) if isinstance(function, functools.partial) else function.__module__)


@dataclass(frozen=True, eq=False)
class Result:
    """What an experiment gave: its data, figure and checks, the seconds it took, the files written, or why it failed."""

    experiment: Experiment
    full: bool
    seconds: float
    data: Data = field(default_factory=dict, repr=False)
    checks: tuple[Check, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()
    figure: Figure | None = field(default=None, repr=False)
    files: tuple[Path, ...] = ()
    error: str = ""
    trace: str = field(default="", repr=False)

    @property
    def holds(self) -> bool:
        """Whether the claim holds here: it was computed, it was checked, and every check passed."""
        return not self.error and bool(self.checks) and all(check.passes for check in self.checks)

    @property
    def verdict(self) -> str:
        """In words: "holds", "does not hold" or "failed"."""
        return "failed" if self.error else "holds" if self.holds else "does not hold"

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers that the claim was judged by."""
        return {check.name: check.value for check in self.checks}

    def as_dict(self) -> dict[str, Any]:
        """Everything but the data and the figure, for JSON, which has no word for a value that is not finite: None."""
        about = self.experiment
        return {
            "name": about.name,
            "document": about.document,
            "item": about.item,
            "claim": about.claim,
            "contradicts": about.contradicts,
            "remark": about.remark,
            "verdict": self.verdict,
            "holds": self.holds,
            "full": self.full,
            "seconds": self.seconds,
            "checks": [
                {"name": c.name, "value": _finite(c.value), "relation": c.relation, "bound": float(c.bound), "passes": c.passes}
                for c in self.checks
            ],
            "table": self.table,
            "files": [str(path) for path in self.files],
            "error": self.error,
            "trace": self.trace,
        }

    def __str__(self) -> str:
        about = self.experiment
        lines = [f"{about.name}  ({about.item} of {about.document})"]
        lines.append(textwrap.fill(about.claim, 110, initial_indent="  claim:   ", subsequent_indent=11 * " "))
        lines.append(f"  verdict: {self.verdict} ({self.seconds:.1f} s)" + (f": {self.error}" if self.error else ""))
        lines += [f"    {'ok ' if check.passes else 'NO '} {check}" for check in self.checks]
        lines += [f"    {line}" for line in _aligned(self.table)]
        for label, text in (("contradicts the document", about.contradicts), ("remark", about.remark)):
            if text:
                lines.append(textwrap.fill(f"{label}: {text}", 110, initial_indent="  ", subsequent_indent=11 * " "))
        lines += [f"  wrote:   {path}" for path in self.files]
        return "\n".join(lines)


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table with columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
