"""The report: one HTML page without scripts that needs nothing but itself."""

from __future__ import annotations

import base64
import datetime
import html
import math
import os
import re
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from dalembert.experiments import Check, Experiment, Result
from dalembert.reproduction._machine import machine, versions
from dalembert.reproduction._template import PAGE, STYLE

MARKS = {"holds": "✓", "does not hold": "✗", "failed": "!", "not run": "&ndash;"}
CLASSES = {"holds": "holds", "does not hold": "doubt", "failed": "failed", "not run": "missing"}
AGAINST = '<span class="mark against" role="img" title="{0}" aria-label="{0}">≠</span>'.format("contradicts the document")
SHOWN_NUMBERS = 8
"""A longer list of numbers is folded, unless one of them is out of bounds."""
WIDE, LEAST, WIDEST = 500, 0.8, 840
"""Figures wider than this many pixels are not shown below this share of their size, for their words to stay legible: on a phone
they scroll. No figure scrolls on a desk, which has room for the widest."""


def render(
    results: Sequence[Result],
    missing: Sequence[Experiment],
    stored: int,
    directory: Path,
    full: bool,
    command: str,
    elapsed: float,
    jobs: int,
) -> str:
    """The page of some results, whose figures are below `directory`, and of experiments that were not run.

    It took `elapsed` seconds to get them, with `jobs` processes.
    """
    by_document: dict[str, list[Result | Experiment]] = {}
    things: list[Result | Experiment] = [*results, *missing]
    for thing in things:
        by_document.setdefault(_about(thing).document, []).append(thing)
    body = [
        '<h1 id="top">The literature\'s experiments, done again</h1>',
        '<p class="soft">For each experiment: what the document claims, what this software computes, the numbers that decide, '
        "and whether the claim holds here.</p>",
        _counts(results, missing),
        _facts(results, stored, full, command, elapsed, jobs),
        _index(by_document),
        *(_section(k, document, things, directory) for k, (document, things) in enumerate(by_document.items(), start=1)),
    ]
    return PAGE.format(title="Experiments done again: dalembert", style=STYLE, body="\n".join(body))


# -- the top -------------------------------------------------------------------------------------------------------------


def _counts(results: Sequence[Result], missing: Sequence[Experiment]) -> str:
    verdicts = [result.verdict for result in results] + ["not run"] * len(missing)
    words = {"holds": "hold", "does not hold": "do not hold", "failed": "failed", "not run": "not run yet"}
    tiles = []
    for verdict, word in words.items():
        count = verdicts.count(verdict)
        if verdict != "not run" or count:
            kind = CLASSES[verdict] if count else "none"
            tiles.append(f'<li class="{kind}" data-verdict="{verdict}"><b>{count}</b>{word}</li>')
    against = sum(bool(about.contradicts) for about in (*(result.experiment for result in results), *missing))
    if against:
        verb = "contradicts its document" if against == 1 else "contradict their documents"
        tiles.append(f'<li class="against"><b>{against}</b>{verb} <span class="mark" aria-hidden="true">≠</span></li>')
    return f'<ul class="counts">{"".join(tiles)}</ul>'


def _facts(results: Sequence[Result], stored: int, full: bool, command: str, elapsed: float, jobs: int) -> str:
    known = versions()
    now = datetime.datetime.now().astimezone()
    facts = {
        "software": f"dalembert {known.pop('dalembert')}",
        "with": ", ".join(f"{name} {version}" for name, version in known.items() if version != "not installed"),
        "machine": machine(),
        "date": f"{now:%d %B %Y, %H:%M} ({now.tzname()})",
        "length": "full" if full else "default; --full takes the lengths of the documents",
        "time": f"{seconds(elapsed)} in all, with {jobs} process{'es' if jobs > 1 else ''}; "
        f"{seconds(sum(result.seconds for result in results))} of computing",
    }
    if stored:
        facts["time"] += f", with the {stored} of {len(results)} results that were kept from earlier runs"
    rows = [f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in facts.items()]
    if command:
        rows.append(f"<dt>command</dt><dd><code>{html.escape(command)}</code></dd>")
    return f'<dl class="facts">{"".join(rows)}</dl>'


def _index(by_document: dict[str, list[Result | Experiment]]) -> str:
    parts, newline = [], "\n"
    for k, (document, things) in enumerate(by_document.items(), start=1):
        held = sum(isinstance(thing, Result) and thing.holds for thing in things)
        lines = []
        for thing in things:
            about, verdict = _about(thing), _verdict(thing)
            mark = f'<span class="mark {CLASSES[verdict]}" title="{verdict}">{MARKS[verdict]}</span>'
            words = "" if verdict == "holds" else f' <span class="{CLASSES[verdict]}">({verdict})</span>'
            label = f'<a href="#{_anchor(about)}">{html.escape(about.item)}</a>' if isinstance(thing, Result) else (
                f'<span class="missing">{html.escape(about.item)}</span>'
            )  # fmt: skip
            lines.append(f"<li>{mark}<span>{label}{words}{AGAINST if about.contradicts else ''}</span></li>")
        title = f'<a href="#document-{k}">{html.escape(document)}</a> <span class="soft">{held} of {len(things)} hold</span>'
        parts.append(f"<h3>{title}</h3>\n<ul>\n{newline.join(lines)}\n</ul>")
    return f'<nav class="index" aria-label="Contents">\n{newline.join(parts)}\n</nav>'


# -- a document, an experiment -------------------------------------------------------------------------------------------


def _section(number: int, document: str, things: Iterable[Result | Experiment], directory: Path) -> str:
    articles = [_article(thing, directory) if isinstance(thing, Result) else _not_run(thing) for thing in things]
    heading = f'<h2 id="document-{number}">{html.escape(document)} <a class="up" href="#top">to the top</a></h2>'
    return "\n".join([heading, *articles])


def _article(result: Result, directory: Path) -> str:
    about, kind = result.experiment, CLASSES[result.verdict]
    verdict = f'<b class="{kind}"><span class="mark">{MARKS[result.verdict]}</span>{result.verdict}</b>'
    took = f'<span class="soft">in {seconds(result.seconds)} · <code>{html.escape(about.name)}</code></span>'
    parts = [
        f'<article id="{_anchor(about)}" data-verdict="{result.verdict}">',
        f"<h3>{html.escape(_capital(about.item))}</h3>",
        f'<p class="verdict">{verdict} {took}</p>',
        f'<p class="claim">{_prose(about.claim)}</p>',
        _error(result),
        _figure(result, directory),
        _numbers(result),
        _box("contradicts", "Contradicts the document", about.contradicts),
        _box("remark", "Remark", about.remark),
        "</article>",
    ]
    return "\n".join(filter(None, parts))


def _not_run(about: Experiment) -> str:
    return (
        f'<article id="{_anchor(about)}" data-verdict="not run"><h3>{html.escape(_capital(about.item))}</h3>'
        f'<p class="verdict missing"><span class="mark">{MARKS["not run"]}</span>not run yet '
        f"· <code>{html.escape(about.name)}</code></p></article>"
    )


def _error(result: Result) -> str:
    if not result.error:
        return ""
    trace = result.trace.strip()
    details = f"<details><summary>What the program said</summary><pre>{html.escape(trace)}</pre></details>" if trace else ""
    return f'<div class="error"><b class="failed">Failed:</b> {html.escape(result.error)}{details}</div>'


def _figure(result: Result, directory: Path) -> str:
    pictures = [file for file in result.files if file.suffix == ".png" and file.is_file()]
    if not pictures:
        return ""
    content = pictures[0].read_bytes()
    width, height = struct.unpack(">II", content[16:24])  # of the IHDR chunk, which comes first in every PNG
    anchor, shown = _anchor(result.experiment), width // 2  # drawn with 200 dots an inch: 100 to an inch are sharp and legible
    least = f' style="min-width: {min(round(LEAST * shown), WIDEST)}px"' if shown > WIDE else ""
    alt = html.escape(f"{_capital(result.experiment.item)}, computed here: {result.experiment.claim}")
    size = f'width="{shown}" height="{height // 2}"{least}'
    image = f'<img alt="{alt}" {size} src="data:image/png;base64,{base64.b64encode(content).decode("ascii")}">'
    names = [Path(os.path.relpath(file, directory)).as_posix() for file in result.files]
    files = ", ".join(f"<code>{html.escape(name)}</code>" for name in names)
    # a page that is sent alone has no files beside it: the figure is enlarged in place
    return (
        f'<figure id="figure-{anchor}"><a class="close" href="#{anchor}">Close</a>'
        f'<div class="box" tabindex="0"><a href="#figure-{anchor}" title="enlarge">{image}</a></div>'
        f'<figcaption class="soft">Beside this page: {files}</figcaption></figure>'
    )


def _numbers(result: Result) -> str:
    if not result.checks:
        return "" if result.error else '<p class="doubt">Nothing was checked.</p>'
    passed = sum(check.passes for check in result.checks)
    rows = "\n".join(_row(check) for check in result.checks)
    opened = " open" if passed < len(result.checks) or len(result.checks) <= SHOWN_NUMBERS else ""
    return (
        f"<details{opened}><summary>{passed} of {len(result.checks)} numbers within their bounds</summary>\n"
        '<div class="table" tabindex="0"><table><thead><tr><th></th><th>number</th><th>value</th><th>bound</th></tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div></details>"
    )


def _row(check: Check) -> str:
    verdict, word = ("holds", "within") if check.passes else ("does not hold", "out of bounds")
    relation = {"<=": "≤", ">=": "≥"}[check.relation]
    name = _prose(check.name) if check.passes else f'{_prose(check.name)} <b class="doubt">({word})</b>'
    return (
        f'<tr><td class="{CLASSES[verdict]}"><span class="mark" role="img" aria-label="{word}">{MARKS[verdict]}</span></td>'
        f'<td class="name">{name}</td><td class="number">{_value(check.value)}</td>'
        f'<td class="number">{relation} {_value(check.bound)}</td></tr>'
    )


def _box(kind: str, title: str, text: str) -> str:
    return f'<div class="{kind}"><b>{title}</b>{_prose(text)}</div>' if text else ""


# -- words ---------------------------------------------------------------------------------------------------------------


def _about(thing: Result | Experiment) -> Experiment:
    return thing.experiment if isinstance(thing, Result) else thing


def _verdict(thing: Result | Experiment) -> str:
    return thing.verdict if isinstance(thing, Result) else "not run"


def _anchor(about: Experiment) -> str:
    return quote(about.name, safe="")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _prose(text: str) -> str:
    """Text with its `code` set as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _value(value: float) -> str:
    """Three digits, powers of ten as print sets them.

    Example:
        >>> _value(1.234e-7), _value(0.02), _value(2.0)
        ('1.23 &times; 10<sup>&minus;7</sup>', '0.02', '2')

    """
    if not math.isfinite(value):
        return {"nan": "not a number", "inf": "∞", "-inf": "&minus;∞"}[str(float(value))]
    mantissa, e, exponent = f"{value:.3g}".partition("e")
    power = f" &times; 10<sup>{str(int(exponent)).replace('-', '&minus;')}</sup>" if e else ""
    return mantissa.replace("-", "&minus;") + power


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
