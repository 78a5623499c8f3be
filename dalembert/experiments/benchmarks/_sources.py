"""What the figures of a benchmark rest on: a change of anything else leaves them as they are.

These are the parts of the library that make runs, without comments, docstrings and the words of errors; what the problem is
made of; its record, and what measures; the reference; the versions of its peers. Other problems and records, other kinds of
calls (ensembles, sections, tolerances, stores), events and pictures are not among them.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dalembert import problems
from dalembert.experiments.benchmarks._peers import PEERS

if TYPE_CHECKING:
    from dalembert.experiments.benchmarks._benchmark import Benchmark

ROOMS = ("compiler", "engine", "methods", "runs", "symbolic", "systems", "tableaux")
"""The parts of the library that make runs."""
ELSEWHERE = {
    "compiler": "_differential _lane_kernels _linearised _watch",
    "engine": "_batch _dense_output _ensemble_run _lane_driver _member _members_apart",
    "methods": "_action _discrete_lagrangian composition euler half_explicit lagrange_dalembert nonholonomic_integrators "
    "schemes step_sizes underlying_ode variational",
    "runs": "_accurate _accurate_many _beside _choice _comparison _crossings _default_method _ensemble _inside _members "
    "_path _pilot _poincare _reopen _run_file _simulate_many _smoothness _stored_run _sweep _tables _unreachable _windows",
    "systems": "_density _pickling _touching_spheres _transformed_time forces",
    "mechanisms": "_from_sympy _importing _meshes _reading _surfaces _touching",
}
"""Their modules that take no part in one run with steps that are given, or controlled: a test follows runs through the code."""
HERE, LIBRARY = Path(__file__).parent, Path(__file__).parents[2]
TABLE = "RECORDS"


def rests_on(benchmark: Benchmark, number: int) -> list[str]:
    """Texts that are the same as long as the figures of the record with this number need not be measured again."""
    records, others = _records()
    own = records[number]
    names = {node.attr for node in ast.walk(own) if isinstance(node, ast.Attribute)} | {_name(benchmark.problem)}
    rooms = (*ROOMS, "mechanisms") if benchmark.bodies else ROOMS
    packages = {PEERS[name].package for name in benchmark.peers}
    reference = HERE / "references" / f"{benchmark.name}.toml"
    return [
        *(f"{name} {_version(name)}" for name in sorted(packages)),
        *(text for room in rooms for text in _room(room)),
        *_made_of(sorted(names & set(problems.__all__))),
        *(_code(path.read_bytes()) for path in sorted(HERE.glob("_*.py"))),
        ast.dump(others),
        ast.dump(own),
        reference.read_text(encoding="utf-8") if reference.is_file() else "",
    ]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _name(problem: object) -> str:
    while isinstance(problem, functools.partial):
        problem = problem.func
    return getattr(problem, "__name__", "")


def _made_of(names: Iterable[str]) -> list[str]:
    """The definitions of problems with these names, and those in the catalogue that they use."""
    todo = [(Path(inspect.getsourcefile(inspect.unwrap(getattr(problems, name))) or ""), name) for name in names]
    found: dict[tuple[Path, str], str] = {}
    while todo:
        path, name = place = todo.pop()
        known = _top_level(path.read_bytes())
        if place in found or name not in known:
            continue
        node = known[name]
        if isinstance(node, ast.ImportFrom):
            todo += [(LIBRARY / "problems" / f"{(node.module or '').split('.')[-1]}.py", each.name) for each in node.names]
            continue
        found[place] = ast.dump(node)
        todo += [(path, each.id) for each in ast.walk(node) if isinstance(each, ast.Name)]
    return [text for _, text in sorted(found.items())]


@functools.cache
def _top_level(source: bytes) -> dict[str, ast.stmt]:
    """What a file of the catalogue defines, or imports from others of them, by its names."""
    found: dict[str, ast.stmt] = {}
    for node in _without_texts(ast.parse(source)).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dalembert.problems."):
            found |= {each.name: ast.ImportFrom(node.module, [each], 0) for each in node.names}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {each.id: node for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return found


def _records() -> tuple[list[ast.expr], ast.Module]:
    """The records of the table as they are written, without remarks, and what is around it."""
    tree = _without_texts(ast.parse((HERE / "records.py").read_bytes()))
    table = next(node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == TABLE)
    assert isinstance(table.value, ast.List)
    tree.body.remove(table)
    for record in ast.walk(table):
        if isinstance(record, ast.Call):
            record.keywords = [each for each in record.keywords if each.arg not in ("remark", "contradicts")]
    return table.value.elts, tree


def _room(name: str) -> list[str]:
    elsewhere = ELSEWHERE.get(name, "").split()
    return [_code(path.read_bytes()) for path in sorted((LIBRARY / name).rglob("*.py")) if path.stem not in elsewhere]


@functools.cache
def _code(source: bytes) -> str:
    """A digest of a file without its comments, docstrings and words of errors."""
    return hashlib.sha256(ast.dump(_without_texts(ast.parse(source))).encode()).hexdigest()


def _without_texts(tree: ast.Module) -> ast.Module:
    """Without statements that are a text and nothing else, docstrings, and without what is raised."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = [line for line in node.body if not (isinstance(line, ast.Expr) and _is_text(line.value))]
        elif isinstance(node, ast.Raise):
            node.exc = node.cause = None
    return tree


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
