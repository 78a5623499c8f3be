"""Writes docs/catalogue.md and its pictures: every problem of the catalogue, with what its docstring says.

python docs/catalogue.py                write the page and draw the pictures
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import typeset

import dalembert as da
from dalembert import plot
from dalembert.problems import Problem
from dalembert.runs._default_method import default_method
from dalembert.systems import IndexTwoDAE, MechanicalSystem

FOLDER = Path(__file__).resolve().parent

HEAD = """\
# The catalogue

Systems of the literature, ready to run: each is a function of `da.problems` with its constants as arguments. The pictures show
where the mechanism starts (grey), the paths of its marked points, and where it is some time later. `--animate film.html` in
place of `--plot` shows it in motion, and `--set` changes its constants. This page is made from the docstrings.
"""


def problems() -> list[tuple[str, Problem]]:
    """The modules and problems of the catalogue, module by module."""
    makers = [getattr(da.problems, name) for name in da.problems.__all__ if name != "Problem"]
    modules = re.findall(r"`(\w+)`", inspect.getdoc(da.problems) or "")  # in the order of the package's own words
    found = [(maker.__module__.rpartition(".")[2], maker()) for maker in makers]
    return sorted(
        found, key=lambda pair: (modules.index(pair[0]) if pair[0] in modules else len(modules), pair[0], pair[1].name)
    )


def page() -> str:
    """The text of docs/catalogue.md: the pictures of all problems, and a section about each."""
    index, sections = [], []
    for module, members in groupby(problems(), key=lambda pair: pair[0]):
        title = (inspect.getdoc(sys.modules[f"dalembert.problems.{module}"]) or "").splitlines()[0].rstrip(".")
        chosen = [problem for _, problem in members]
        index.append(_thumbnails(title, chosen))
        sections += [f"## {title}\n", *(_section(problem) for problem in chosen)]
    return "\n".join([HEAD, *index, *sections])


def _thumbnails(title: str, members: list[Problem]) -> str:
    """Small pictures that lead to the sections of a module's problems."""
    names = [problem.name for problem in members]
    cells = "\n".join(f"[![](images/catalogue/{name}.png) {name.replace('_', ' ')}](#{name})" for name in names)
    return f'**{title}**\n\n<div class="thumbnails">\n\n{cells}\n\n</div>\n'


def _section(problem: Problem) -> str:
    summary, _, rest = _description(problem).partition("\n")
    facts = [("variables", _variables(problem)), ("constraints", _constraints(problem)), ("reference", problem.reference)]
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts)
    picture = f"![{problem.title}](images/catalogue/{problem.name}.png)"
    command = f"`dalembert run {problem.name} --plot run.png`"
    text = "\n\n".join([f"### {problem.name}", summary, picture, *filter(None, [rest.strip("\n")])])
    return f"{text}\n\n| | |\n|---|---|\n{rows}\n| run it | {command} |\n"


def _description(problem: Problem) -> str:
    """The docstring of a problem, without its example."""
    text = inspect.getdoc(getattr(da.problems, problem.name)) or ""
    parts = re.split(r"(?<=\n\n)((?: {4}.*\n)+)", text.partition("\nExample:")[0].rstrip() + "\n")
    parts[::2] = [typeset.in_text(part, "${}$") for part in parts[::2]]
    parts[1::2] = [_display(part) for part in parts[1::2]]
    return "".join(parts).rstrip()


def _display(block: str) -> str:
    """Mathematics of a docstring as a display."""
    formula = typeset.block(block.splitlines())
    return block if formula is None else f"$$\n{formula}\n$$\n"


def _variables(problem: Problem) -> str:
    system = problem.system
    blocks = [f"{size} {name}" for name, size in system.state_blocks if size]
    return f"{system.n_state}: {' and '.join(blocks)}"


def _constraints(problem: Problem) -> str:
    system = problem.system
    if isinstance(system, IndexTwoDAE):
        return f"{system.n_multipliers} of index 2"
    kinds = ("holonomic", "nonholonomic", "unilateral")
    named = [f"{count} {kind}" for kind in kinds if (count := getattr(system, f"n_{kind}"))]
    return " and ".join(named) or ("none" if isinstance(system, MechanicalSystem) else "none on y")


def draw(folder: Path) -> Iterator[Path]:
    """Draw every problem, as its default run shows it."""
    folder.mkdir(parents=True, exist_ok=True)
    for _, problem in problems():
        run = da.simulate(problem, default_method(problem.system), progress=False, on_failure="return")
        figure = plot.solution(run, problem=problem) if problem.drawing is None else plot.portrait(run)
        yield plot.save(figure, folder / f"{problem.name}.png", dpi=110)


def main() -> int:
    """Write the page and its pictures."""
    (FOLDER / "catalogue.md").write_text(page(), encoding="utf-8")
    for path in draw(FOLDER / "images" / "catalogue"):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
