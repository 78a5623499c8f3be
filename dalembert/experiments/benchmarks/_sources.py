"""What the figures of a benchmark rest on: a change of anything else leaves them as they are.

These are the parts of the library that make runs, without comments and docstrings; the problem; its record, and what measures;
the reference; the versions of its peers. Other problems and records, events and pictures are not among them.
"""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from dalembert import problems
from dalembert.experiments.benchmarks._peers import PEERS

if TYPE_CHECKING:
    from dalembert.experiments.benchmarks._benchmark import Benchmark

ROOMS = ("compiler", "engine", "methods", "runs", "symbolic", "systems", "tableaux")
"""The parts of the library that make runs."""
HERE, LIBRARY = Path(__file__).parent, Path(__file__).parents[2]
TABLE = "RECORDS"


def rests_on(benchmark: Benchmark, number: int) -> list[str]:
    """Texts that are the same as long as the figures of the record with this number need not be measured again."""
    records, others = _records()
    own = records[number]
    names = {node.attr for node in ast.walk(own) if isinstance(node, ast.Attribute)}
    stated = [getattr(problems, name) for name in sorted(names) if name in problems.__all__]
    files = {Path(inspect.getsourcefile(inspect.unwrap(problem)) or "") for problem in [*stated, _function(benchmark.problem)]}
    rooms = (*ROOMS, "mechanisms") if benchmark.bodies else ROOMS
    packages = {PEERS[name].package for name in benchmark.peers}
    reference = HERE / "references" / f"{benchmark.name}.toml"
    return [
        *(f"{name} {_version(name)}" for name in sorted(packages)),
        *(_code(path) for room in rooms for path in sorted((LIBRARY / room).rglob("*.py"))),
        *(_code(path) for path in sorted(files | set((LIBRARY / "problems").glob("_*.py"))) if path.name != "records.py"),
        *(_code(path) for path in sorted(HERE.glob("_*.py"))),
        ast.dump(others),
        ast.dump(own),
        reference.read_text(encoding="utf-8") if reference.is_file() else "",
    ]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _function(problem: object) -> object:
    while isinstance(problem, functools.partial):
        problem = problem.func
    return problem


def _records() -> tuple[list[ast.expr], ast.Module]:
    """The records of the table as they are written, and what is around it."""
    tree = _without_texts(ast.parse((HERE / "records.py").read_bytes()))
    table = next(node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == TABLE)
    assert isinstance(table.value, ast.List)
    tree.body.remove(table)
    return table.value.elts, tree


def _code(path: Path) -> str:
    """A file without its comments and docstrings."""
    return _code_of(path.read_bytes())


@functools.cache
def _code_of(source: bytes) -> str:
    return ast.dump(_without_texts(ast.parse(source)))


def _without_texts(tree: ast.Module) -> ast.Module:
    """Without statements that are a text and nothing else: docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = [line for line in node.body if not (isinstance(line, ast.Expr) and _is_text(line.value))]
    return tree


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
