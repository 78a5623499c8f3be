"""The report: one HTML page without scripts that needs nothing but itself. `report.html` is its template."""

from __future__ import annotations

import base64
import datetime
import math
import os
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape

from dalembert.experiments import Experiment, Result
from dalembert.reproduction._machine import machine, versions

SHOWN_NUMBERS = 8
"""A longer list of numbers is folded, unless one of them is out of bounds."""
WIDE, LEAST, WIDEST = 500, 0.8, 840
"""Figures wider than this many pixels are not shown below this share of their size, for their words to stay legible: on a phone
they scroll. No figure scrolls on a desk, which has room for the widest."""


@dataclass(frozen=True)
class Report:
    """The results in the order in which they were asked for, what is missing after an interruption, and the page.

    `seconds` is the time from the call to the report, however many processes shared the work.
    """

    results: tuple[Result, ...]
    missing: tuple[Experiment, ...]
    stored: int
    path: Path
    seconds: float

    @property
    def all_hold(self) -> bool:
        """Whether everything that was asked for was computed and holds."""
        return not self.missing and all(result.holds for result in self.results)

    @property
    def counts(self) -> dict[str, int]:
        """How many hold, do not hold and failed."""
        return {
            verdict: sum(result.verdict == verdict for result in self.results)
            for verdict in ("holds", "does not hold", "failed")
        }


def render(report: Report, full: bool, command: str, jobs: int) -> str:
    """The page of a report that `command` made with `jobs` processes."""
    directory = report.path.parent
    entries = [Entry(result.experiment, result, directory) for result in report.results]
    entries += [Entry(experiment, None, directory) for experiment in report.missing]
    documents: dict[str, list[Entry]] = {}
    for entry in entries:
        documents.setdefault(entry.about.document, []).append(entry)
    templates = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=templates, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"number": number, "prose": prose, "seconds": seconds}
    return environment.get_template("report.html").render(
        counts=report.counts | {"not run": len(report.missing)},
        against=sum(bool(entry.about.contradicts) for entry in entries),
        facts=_facts(report, full, jobs),
        command=command,
        documents=documents,
        SHOWN_NUMBERS=SHOWN_NUMBERS,
    )


def _facts(report: Report, full: bool, jobs: int) -> dict[str, str]:
    known = versions()
    now = datetime.datetime.now().astimezone()
    facts = {
        "software": f"dalembert {known.pop('dalembert')}",
        "with": ", ".join(f"{name} {version}" for name, version in known.items() if version != "not installed"),
        "machine": machine(),
        "date": f"{now:%d %B %Y, %H:%M} ({now.tzname()})",
        "length": "full" if full else "default; --full takes the lengths of the documents",
        "time": f"{seconds(report.seconds)} in all, with {jobs} process{'es' if jobs > 1 else ''}; "
        f"{seconds(sum(result.seconds for result in report.results))} of computing",
    }
    if report.stored:
        facts["time"] += f", with the {report.stored} of {len(report.results)} results that were kept from earlier runs"
    return facts


class Figure(NamedTuple):
    """A figure as the page shows it: its size in pixels, the width below which it scrolls, and the names of its files."""

    base64: str
    width: int
    height: int
    least_width: int
    files: list[str]


@dataclass(frozen=True)
class Entry:
    """An experiment on the page, with its result unless it was not run; files are named from `directory`."""

    about: Experiment
    result: Result | None
    directory: Path

    @property
    def verdict(self) -> str:
        """That of the result, or "not run"."""
        return "not run" if self.result is None else self.result.verdict

    @property
    def anchor(self) -> str:
        """Where links on the page lead."""
        return quote(self.about.name, safe="")

    @property
    def title(self) -> str:
        """The item of the document, with a capital letter."""
        return self.about.item[:1].upper() + self.about.item[1:]

    @cached_property
    def figure(self) -> Figure | None:
        """The figure, if there is one."""
        files: Iterable[Path] = () if self.result is None else self.result.files
        picture = next((file for file in files if file.suffix == ".png" and file.is_file()), None)
        if picture is None:
            return None
        content = picture.read_bytes()
        width, height = struct.unpack(">II", content[16:24])  # of the IHDR chunk, which comes first in every PNG
        shown = width // 2  # drawn with 200 dots an inch: 100 to an inch are sharp and legible
        least = min(round(LEAST * shown), WIDEST) if shown > WIDE else 0
        names = [Path(os.path.relpath(file, self.directory)).as_posix() for file in files]
        return Figure(base64.b64encode(content).decode("ascii"), shown, height // 2, least, names)


# -- words ---------------------------------------------------------------------------------------------------------------


def prose(text: str) -> Markup:
    """Text with its `code` set as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def number(value: Any) -> Markup:
    """Three digits, powers of ten as print sets them.

    Example:
        >>> str(number(1.234e-7)), str(number(0.02)), str(number(2.0))
        ('1.23 &times; 10<sup>&minus;7</sup>', '0.02', '2')

    """
    if not math.isfinite(value):
        return Markup({"nan": "not a number", "inf": "∞", "-inf": "&minus;∞"}[str(float(value))])
    mantissa, e, exponent = f"{value:.3g}".partition("e")
    power = f" &times; 10<sup>{str(int(exponent)).replace('-', '&minus;')}</sup>" if e else ""
    return Markup(mantissa.replace("-", "&minus;") + power)


def seconds(value: float) -> str:
    """A length of time in words.

    Example:
        >>> seconds(0.04), seconds(3.21), seconds(75), seconds(4000)
        ('less than 0.1 s', '3.2 s', '1 min 15 s', '1 h 7 min')

    """
    if value < 0.1:
        return "less than 0.1 s"
    if value < 59.95:
        return f"{value:.1f} s"
    if value < 3599.5:
        return "{} min {} s".format(*divmod(round(value), 60))
    return "{} h {} min".format(*divmod(round(value / 60), 60))
