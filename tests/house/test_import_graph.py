"""Data flow one way: a room imports only from rooms above it in this list.

A function-level import is there to load something heavy late: Numba (the compiled drivers) or matplotlib (figures), never to
hide an import that goes up. Imports for annotations alone (`if TYPE_CHECKING:`) are not followed.
"""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from pathlib import Path

import dalembert

PACKAGE = Path(dalembert.__file__).parent
ROOMS = [
    "errors", "_version", "_calls", "_warnings", "_interrupts", "_progress", "_fits",
    "symbolic", "tableaux", "systems", "mechanisms", "methods", "modified", "compiler", "engine", "contact", "time_stepping",
    "draw", "plot", "storage", "parallel", "runs", "derivatives", "verify", "problems", "experiments",
    "_public", "reproduction", "cli", "explorer", "__main__",
]  # fmt: skip
LATE = {
    "dalembert.compiler._passes": "loads Numba",
    "dalembert.engine": "loads Numba",
    "dalembert.contact": "loads Numba",
    "dalembert.time_stepping": "loads Numba",
    "dalembert.plot": "loads matplotlib",
    "dalembert.draw": "loads matplotlib",
}


def module_name(path: Path) -> str:
    parts = ("dalembert", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(node: ast.AST) -> list[str]:
    """The modules of dalembert that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name.split(".")[0] == "dalembert"]
    if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "dalembert":
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        return [name if name in MODULES else node.module for name in names]
    return []


def imports(path: Path) -> list[tuple[str, int, bool]]:
    """(module, line, whether inside of a function) of all imports that are executed."""
    found: list[tuple[str, int, bool]] = []

    def visit(node: ast.AST, late: bool) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        found.extend((module, node.lineno, late) for module in imported(node))
        for child in ast.iter_child_nodes(node):
            visit(child, late or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))

    visit(ast.parse(path.read_text()), False)
    return found


def room(module: str) -> str:
    return [*module.split("."), ""][1]


@functools.cache
def edges() -> list[tuple[str, str, int, bool]]:
    """(module, what it imports, line, whether inside of a function); read once it is needed, not by all who collect."""
    return [(name, *found) for name, path in MODULES.items() if name != "dalembert" for found in imports(path)]


def test_every_module_lies_in_a_room_of_the_list():
    assert {room(name) for name in MODULES} == {"", *ROOMS}


def test_no_import_goes_up():
    going_up = [
        f"{name}:{line} imports {module}"
        for name, module, line, _ in edges()
        if room(module) and ROOMS.index(room(module)) > ROOMS.index(room(name))
    ]
    assert going_up == []


def test_nothing_imports_the_whole_package():
    allowed = ("cli", "reproduction")  # which are users of the public interface
    assert [f"{name}:{line}" for name, module, line, _ in edges() if module == "dalembert" and room(name) not in allowed] == []


def test_function_level_imports_only_load_what_is_heavy():
    late = [
        f"{name}:{line} imports {module}"
        for name, module, line, inside in edges()
        if inside and room(name) != "cli" and not module.startswith(tuple(LATE))
    ]
    assert late == []


def test_no_cycle_of_modules():
    graph = defaultdict(set)
    for name, module, _, _ in edges():
        graph[name].add(module)
    state: dict[str, int] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert state.get(name) != 1, f"cycle: {' -> '.join([*path[path.index(name) :], name])}"
        if name not in state:
            state[name] = 1
            for module in sorted(graph[name]):
                if module != name:
                    visit(module, (*path, name))
            state[name] = 2

    for name in sorted(graph):
        visit(name, ())


def test_no_two_modules_of_one_name():
    places = defaultdict(list)
    for name, path in MODULES.items():
        if path.name not in ("__init__.py", "__main__.py") and room(name) != "experiments":  # one folder a document
            places[path.stem.strip("_")].append(name)
    assert {stem: names for stem, names in places.items() if len(names) > 1} == {}
