"""The report: an index and one page a document, without scripts, with their figures as files beside them."""

from __future__ import annotations

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


KINDS = ("agrees", "corrects", "does not hold", "failed", "not run")
"""What a reader wants to know of a result, in the order in which it is told."""


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


def render(report: Report, full: bool, command: str, jobs: int) -> dict[Path, str]:
    """The pages of a report that `command` made with `jobs` processes, by their paths: the index, and one a document."""
    documents = _documents(report)
    templates = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=templates, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"number": number, "prose": prose, "seconds": seconds}
    page = environment.get_template("document.html")
    pages = {
        report.path.with_name(document.page): page.render(document=document, SHOWN_NUMBERS=SHOWN_NUMBERS)
        for document in documents
    }
    counts = {kind: sum(document.counts[kind] for document in documents) for kind in KINDS}
    facts = _facts(report, full, jobs)
    index = environment.get_template("report.html").render(counts=counts, facts=facts, command=command, documents=documents)
    return pages | {report.path: index}


def _documents(report: Report) -> list[DocumentPage]:
    """The documents of a report, in the order of their first experiments."""
    directory = report.path.parent
    entries = [Entry(result.experiment, result, directory) for result in report.results]
    entries += [Entry(experiment, None, directory) for experiment in report.missing]
    by_title: dict[str, list[Entry]] = {}
    for entry in entries:
        by_title.setdefault(entry.about.document, []).append(entry)
    pages: list[DocumentPage] = []
    for title, members in by_title.items():
        name = re.sub(r"\W+", "-", members[0].about.name.partition(".")[0])
        taken = sum(page.page.startswith(f"{name}.") or page.page.startswith(f"{name}-") for page in pages) or name == "report"
        pages.append(DocumentPage(title, f"{name}-{taken + 1}.html" if taken else f"{name}.html", members))
    return pages


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
    """A figure as the page shows it: its address, its size in pixels, the width below which it scrolls, and its files."""

    source: str
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
    def kind(self) -> str:
        """The verdict as a reader asks for it: one that holds agrees with its document, or corrects it."""
        if self.verdict != "holds":
            return self.verdict
        return "corrects" if self.about.contradicts else "agrees"

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
        with picture.open("rb") as file:
            width, height = struct.unpack(">II", file.read(24)[16:])  # of the IHDR chunk, which comes first in every PNG
        shown = width // 2  # drawn with 200 dots an inch: 100 to an inch are sharp and legible
        least = min(round(LEAST * shown), WIDEST) if shown > WIDE else 0
        names = [Path(os.path.relpath(file, self.directory)).as_posix() for file in files]
        source = quote(Path(os.path.relpath(picture, self.directory)).as_posix())
        return Figure(source, shown, height // 2, least, names)


@dataclass(frozen=True)
class DocumentPage:
    """A document, the name of its page, and its experiments."""

    title: str
    page: str
    entries: list[Entry]

    @property
    def counts(self) -> dict[str, int]:
        """How many experiments are of each kind."""
        return {kind: sum(entry.kind == kind for entry in self.entries) for kind in KINDS}

    @property
    def summary(self) -> str:
        """The counts in words."""
        plural = {"agrees": "agree", "corrects": "correct it", "does not hold": "do not hold"}
        words = {"agrees": "agrees", "corrects": "corrects it"}
        named = [
            f"{n} {(words if n == 1 else plural).get(kind, kind)}" for kind, n in self.counts.items() if n or kind == "agrees"
        ]
        return f"{len(self.entries)} result{'' if len(self.entries) == 1 else 's'}: {', '.join(named)}"


# -- words ---------------------------------------------------------------------------------------------------------------


def prose(text: str) -> Markup:
    """Text with its `code` set as code, and powers and indices of single letters as such.

    Example:
        >>> str(prose("`a_b` is O(h^3), z_0 < 1 (see table_one)"))
        '<code>a_b</code> is O(h<sup>3</sup>), z<sub>0</sub> &lt; 1 (see table_one)'

    """
    parts = re.split(r"`([^`]+)`", str(escape(text)))
    parts[1::2] = [f"<code>{part}</code>" for part in parts[1::2]]
    parts[::2] = [
        re.sub(r"\b([A-Za-z])_(\w)\b", r"\1<sub>\2</sub>", re.sub(r"\^\{?(-?[a-z0-9]+)\}?(?!\w)", r"<sup>\1</sup>", part))
        for part in parts[::2]
    ]
    return Markup("".join(parts))


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
