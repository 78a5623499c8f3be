"""What there is: problems, methods, experiments.

Show the problems of the catalogue, the methods and the experiments: all of their names, or one kind of them with a line each.

--for keeps what serves something: a kind of system (free, holonomic, nonholonomic, walls, odae, index2), of methods also a
problem or mymodel.py:name, of problems also a method, of experiments a document. --long adds all settings (which `dalembert run
PROBLEM --set NAME=VALUE` and --method take), what a method serves, and where it was published.

examples:
  dalembert list                                everything, by name
  dalembert list methods                        one kind, a line each
  dalembert list methods --for nonholonomic     for a kind of system
  dalembert list methods --for whipple_bicycle  for a problem
  dalembert list problems --for Rattle --long   for a method, with all settings
  dalembert list experiments --for jay1996
  dalembert list problems --json                for programs
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import os
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from dalembert.cli._json import as_json
from dalembert.cli._methods import makers, method
from dalembert.cli._models import catalogue, model
from dalembert.cli._user_code import UsageError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WHAT = ("problems", "methods", "experiments")
HEADINGS = {
    "problems": "problems (dalembert run NAME)",
    "methods": "methods (--method NAME)",
    "experiments": "experiments (dalembert reproduce DOCUMENT.NAME)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert list`."""
    parser.add_argument("what", nargs="?", choices=WHAT, metavar="problems|methods|experiments", help="all three by default")
    parser.add_argument("--for", dest="purpose", metavar="WHAT", help="a kind of system, a problem, a method or a document")
    parser.add_argument("--long", action="store_true", help="all settings, what is served, and references")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """Print the lists."""
    if options.purpose is not None and options.what is None:
        raise UsageError(f"say what to list for {options.purpose}, such as: dalembert list methods --for {options.purpose}")
    kinds = WHAT if options.what is None else (options.what,)
    with _saying("reading the catalogue"):
        collected = {kind: entries(kind, options.purpose) for kind in kinds}
    if options.json:
        print(as_json(collected))
        return 0
    _show(collected, options)
    return 0


# -- what there is -----------------------------------------------------------------------------------------------------


def entries(what: str, purpose: str | None = None) -> list[dict[str, Any]]:
    """The things of one kind that serve a purpose, by group and name: how to write each, what it is."""
    make = {"problems": _problems, "methods": _methods, "experiments": _experiments}[what]
    return make(purpose)


def _problems(purpose: str | None) -> list[dict[str, Any]]:
    from dalembert.cli._kinds import KINDS, kinds, serves

    known, of, order = catalogue(), kinds(), list(KINDS)
    names = sorted(of, key=lambda name: (order.index(of[name]), name))
    if purpose in KINDS:
        names = [name for name in names if of[name] == purpose]
    elif purpose is not None:
        stepper = method(purpose)
        names = [name for name in names if serves(stepper, known[name]().system)]
    return [{**_entry(name, known[name]), "group": KINDS[of[name]]} for name in names]


def _methods(purpose: str | None) -> list[dict[str, Any]]:
    from dalembert.cli._kinds import FAMILIES, KINDS, examples, family, kinds_served, serves

    known, steppers = makers(), examples()
    served = {name: kinds_served(stepper) for name, stepper in steppers.items()}
    system = None if purpose is None or purpose in KINDS else model(purpose, {}).system
    rows = []
    for name, make in known.items():
        stepper = steppers[name]
        if (system is None and purpose is not None and purpose not in served[name]) or (
            system is not None and not serves(stepper, system)
        ):
            continue
        order = (stepper.order or stepper.order_unconstrained).get("q")
        about = {"group": family(make), "order": order, "for": served[name], "reference": getattr(make, "reference", None)}
        rows.append({**_entry(name, make), **about})
    titles = [*FAMILIES.values(), *(row["group"] for row in rows)]
    return sorted(rows, key=lambda row: (titles.index(row["group"]), row["name"]))


def _experiments(purpose: str | None) -> list[dict[str, Any]]:
    from dalembert import experiments

    if purpose not in (None, *experiments.documents()):
        raise UsageError(f"there is no document {purpose!r} (the documents are {', '.join(experiments.documents())})")
    found = [experiments.find(name) for name in experiments.names()]
    return [
        {"name": e.name, "call": f"{e.name}  ({e.item} of {e.document})", "summary": e.claim, "group": document,
         "document": e.document, "item": e.item}
        for e in found if purpose in (None, document := e.name.partition(".")[0])
    ]  # fmt: skip


def _entry(name: str, thing: Any) -> dict[str, Any]:
    summary = (inspect.getdoc(thing) or "").partition("\n")[0]
    return {"name": name, "call": f"{name}{_parameters(thing)}", "summary": summary}


def _parameters(function: Any) -> str:
    """The arguments with their defaults, without types."""
    parts = []
    for parameter in inspect.signature(function).parameters.values():
        default = parameter.default
        shown = f"{default:.6g}" if isinstance(default, float) else repr(default)
        parts.append(parameter.name if default is parameter.empty else f"{parameter.name}={shown}")
    return f"({', '.join(parts)})"


# -- how it is shown ---------------------------------------------------------------------------------------------------


def _saying(text: str) -> AbstractContextManager[Any]:
    """Say what is going on, on a terminal, for as long as that lasts."""
    from rich.console import Console

    return Console(stderr=True).status(text)


def _show(collected: dict[str, list[dict[str, Any]]], options: argparse.Namespace) -> None:
    """Print to the screen, by pages where it is longer than that."""
    from rich.console import Console, Group
    from rich.padding import Padding

    console = Console(highlight=False, markup=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = 120
    console.width = min(console.width, 120)
    blocks: list[RenderableType] = []
    for what, rows in collected.items():
        blocks.append(_heading(what, rows, options.purpose))
        width = max((len(row["name"]) for row in rows), default=0)
        for title, group in itertools.groupby(rows, key=lambda row: row["group"]):
            mine = list(group)
            lines = _names(title, mine) if options.what is None else _table(title, mine, width, options.long)
            blocks.append(Padding(lines, (0, 0, 0, 2)))
        blocks.append("")
    page = Group(*blocks[:-1])
    if console.is_terminal and len(console.render_lines(page)) > console.height:
        os.environ.setdefault("LESS", "-FRX")  # colours, and no pager for what fits after all
        with console.pager(styles=True):
            console.print(page)
    else:
        _print(console, page)


def _print(console: Console, page: RenderableType) -> None:
    """Without the spaces that fill lines up to the width of the screen where nobody sees them."""
    if console.is_terminal:
        console.print(page)
        return
    with console.capture() as captured:
        console.print(page)
    print("\n".join(line.rstrip() for line in captured.get().rstrip().splitlines()))


def _heading(what: str, rows: list[dict[str, Any]], purpose: str | None) -> RenderableType:
    from rich.text import Text

    count = f"{len(rows)} for {purpose}" if purpose else f"{len(rows)} of them"
    return Text.assemble((HEADINGS[what], "bold"), (f", {count}", "dim"))


def _names(title: str, rows: list[dict[str, Any]]) -> RenderableType:
    """A group as a paragraph of names."""
    from rich.text import Text

    names = [row["name"].removeprefix(f"{title}.") for row in rows]
    return Text.assemble((f"{title}: ", "cyan"), ", ".join(names))


def _table(title: str, rows: list[dict[str, Any]], width: int, long: bool) -> RenderableType:
    """A group as a table: name, order of methods, what it is; with `long`, all settings and references below."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="bold", min_width=width, no_wrap=True)
    table.add_column(ratio=1)
    for row in rows:
        order = f"order {row['order']}. " if row.get("order") else ""
        lines: list[RenderableType] = [Text.assemble((order, "green"), row["summary"])]
        if long:
            served = f"for {', '.join(row['for'])}" if "for" in row else ""
            reference = row.get("reference")
            facts = [row["call"], served, reference if isinstance(reference, str) else ""]
            lines += [Text(fact, style="dim") for fact in facts if fact]
        table.add_row(row["name"], Group(*lines))
    return Group(Text(title, style="cyan"), table, "")
