"""Reading what was typed: numbers, lists, assignments, methods, problems."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import inspect
import math
import operator
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import dalembert as da
from dalembert.errors import DalembertError
from dalembert.methods import OneStepMethod
from dalembert.problems import Problem
from dalembert.systems import System


class Unusable(Exception):
    """A command line that cannot be carried out as it stands."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """Near matches of a name, as a clause to append to a sentence; empty if there are none.

    Example:
        >>> suggestion("duble_pendulum", ["pendulum", "double_pendulum"])
        ': did you mean double_pendulum or pendulum?'

    """
    lower = {candidate.lower(): candidate for candidate in known}
    close = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.55)]
    return f": did you mean {' or '.join(close)}?" if close else ""


# -- numbers -------------------------------------------------------------------------------------------------------------

OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
CONSTANTS = {"pi": math.pi, "True": True, "False": False}
FUNCTIONS = {name: getattr(math, name) for name in ("sqrt", "sin", "cos", "tan", "exp", "log", "radians")}


def value(text: str) -> Any:
    """A number, or a list of numbers with commas between them; arithmetic, pi, sqrt, sin, cos, ... may be used.

    Example:
        >>> value("1/4"), value("0.5, -sqrt(0.75)"), value("[1, 2]"), value("16")
        (0.25, [0.5, -0.8660254037844386], [1, 2], 16)

    """
    try:
        return _evaluate(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        raise Unusable(f"{text!r} is not a number or a list of numbers such as 0.5,-sqrt(0.75) or 2*sin(pi/40)") from None


def _evaluate(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name):
        return CONSTANTS[node.id]
    if isinstance(node, (ast.Tuple, ast.List)):
        return [_evaluate(element) for element in node.elts]
    if isinstance(node, ast.UnaryOp):
        return OPERATORS[type(node.op)](_evaluate(node.operand))
    if isinstance(node, ast.BinOp):
        left, right = float(_evaluate(node.left)), float(_evaluate(node.right))
        return OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return FUNCTIONS[node.func.id](*(_evaluate(argument) for argument in node.args))
    raise ValueError


def number(name: str, text: str | None) -> float | None:
    """The number given to an option, or None if it was not given."""
    if text is None:
        return None
    result = value(text)
    if isinstance(result, (list, bool)):
        raise Unusable(f"{name} takes one number; got {text!r}")
    return float(result)


def count(name: str, text: str | None) -> int | None:
    """The whole number given to an option, in any spelling (5000, 5_000, 5e3), or None."""
    result = number(name, text)
    if result is None:
        return None
    if not math.isfinite(result) or result != int(result):
        raise Unusable(f"{name} takes a whole number; got {text!r}")
    return int(result)


def vector(text: str | None) -> list[float] | None:
    """The list of numbers given to an option, or None."""
    if text is None:
        return None
    result = value(text)
    return result if isinstance(result, list) else [result]


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    """`--set m1=2 --set l1=0.5` as a dictionary.

    Example:
        >>> assignments(["m1=2", "l1=1/2"])
        {'m1': 2, 'l1': 0.5}

    """
    result = {}
    for text in texts:
        name, equals, right = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise Unusable(f"--set takes NAME=VALUE, such as --set m1=2; got {text!r}")
        result[name.strip()] = value(right)
    return result


# -- methods -------------------------------------------------------------------------------------------------------------


def methods() -> dict[str, type[OneStepMethod]]:
    """All methods of the library, by name."""
    public = ((name, getattr(da, name)) for name in da.__all__)
    return {
        name: thing
        for name, thing in public
        if isinstance(thing, type) and issubclass(thing, OneStepMethod) and not inspect.isabstract(thing)
    }


def method(text: str, stages: int | None) -> OneStepMethod:
    """The method of a name, `RadauIIA`, or of a call, `RadauIIA(stages=3, projected=True)` or `compose(Rattle, 4)`.

    Example:
        >>> method("LobattoIIIAB", 4), method("rattle", None)
        (LobattoIIIAB(stages=4), Rattle(stages=2))
        >>> print(method("compose(Rattle, 'kahan-li-8')", None))
        da.compose(da.Rattle(), 'kahan-li-8')

    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise _no_method(text) from None
    return _method(tree, stages)


def _method(tree: ast.expr, stages: int | None) -> OneStepMethod:
    call = tree if isinstance(tree, ast.Call) else None
    name = ast.unparse(tree if call is None else call.func).removeprefix("da.")
    if call is not None and name in ("adjoint", "compose") and not call.keywords and call.args:
        basic = _method(call.args[0], stages)
        if name == "adjoint" and len(call.args) == 1:
            return da.adjoint(basic)
        if name == "compose" and len(call.args) == 2:
            return da.compose(basic, _argument(call.args[1], tree))
    if not name.isidentifier() or (call is not None and call.args):
        raise _no_method(ast.unparse(tree))
    arguments = {} if call is None else {str(k.arg): _argument(k.value, tree) for k in call.keywords}
    return _make_method(name, arguments, stages)


def _make_method(name: str, arguments: dict[str, Any], stages: int | None) -> OneStepMethod:
    known = methods()
    same = [candidate for candidate in known if candidate.lower() == name.lower()]
    if not same:
        raise Unusable(f"there is no method {name!r}{suggestion(name, known)} (see dalembert list methods)")
    chosen = known[same[0]]
    options = {f.name: f.default is MISSING for f in fields(chosen) if f.init}  # type: ignore[arg-type]
    if stages is not None:
        if "stages" not in options:
            raise Unusable(f"the method {chosen.__name__} has no number of stages to choose: leave --stages out")
        arguments["stages"] = stages
    for argument in arguments:
        if argument not in options:
            what = f"its arguments are {', '.join(options)}" if options else "it has none"
            raise Unusable(f"the method {chosen.__name__} has no argument {argument!r}: {what}")
    missing = [option for option, required in options.items() if required and option not in arguments]
    if missing:
        example = ", ".join(f"{option}={EXAMPLE_VALUES.get(option, '...')}" for option in missing)
        raise Unusable(f"the method {chosen.__name__} needs {' and '.join(missing)}: --method '{chosen.__name__}({example})'")
    return chosen(**arguments)


EXAMPLE_VALUES = {"tableau": "gauss(2)", "hat": "lobatto_iiib(3)", "L_d": '"SVC"'}


def _no_method(text: str) -> Unusable:
    return Unusable(f"{text!r} is not a method: give a name, such as Rattle, or a call, such as 'RadauIIA(stages=3)'")


def _argument(node: ast.expr, method: ast.expr) -> Any:
    """A number, a word in quotation marks, several of these, or a tableau such as radau_iia(3)."""
    try:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if isinstance(node, ast.Tuple):
            return tuple(_argument(element, method) for element in node.elts)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in da.tableaux.__all__:
            return getattr(da.tableaux, node.func.id)(*(_evaluate(argument) for argument in node.args))
        return _evaluate(node)
    except (ValueError, KeyError, TypeError, ArithmeticError):
        raise _no_method(ast.unparse(method)) from None


# -- problems ------------------------------------------------------------------------------------------------------------


def catalogue() -> dict[str, Callable[..., Problem]]:
    """The functions of the catalogue, by name."""
    return {name: getattr(da.problems, name) for name in da.problems.__all__ if name != "Problem"}


@dataclass(frozen=True)
class Model:
    """What is to be simulated: a problem or a bare system, its name, and the parameters to override."""

    name: str
    subject: Problem | System
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def problem(self) -> Problem | None:
        """The problem, if it is one."""
        return self.subject if isinstance(self.subject, Problem) else None

    @property
    def system(self) -> System:
        """The system, of the problem if it is one."""
        return self.subject.system if isinstance(self.subject, Problem) else self.subject


def model(text: str, settings: Mapping[str, Any]) -> Model:
    """The problem of a name of the catalogue, or the problem or system of `mymodel.py:name`, with settings applied."""
    if text.partition(":")[0].endswith(".py"):
        return _from_file(text, settings)
    known = catalogue()
    if text not in known:
        raise Unusable(
            f"there is no problem {text!r}{suggestion(text, known)} (see dalembert list problems; a model of your own is "
            "mymodel.py:name)"
        )
    return Model(text, _call(text, known[text], settings))


def _call(name: str, function: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    known = inspect.signature(function).parameters
    for setting in settings:
        if setting not in known:
            what = f"it has {', '.join(known)}" if known else "nothing of it can be set"
            raise Unusable(f"{name} has no {setting!r}{suggestion(setting, known)} ({what})")
    return function(**settings)


def _from_file(text: str, settings: Mapping[str, Any]) -> Model:
    file, _, name = text.partition(":")
    module = _load(Path(file))
    if not name:
        found = [key for key, thing in vars(module).items() if isinstance(thing, (Problem, System))]
        if len(found) != 1:
            what = f"it has {', '.join(found)}" if found else "it has no da.Problem or system of its own"
            raise Unusable(f"say which object of {file} to simulate, as in {file}:name ({what})")
        name = found[0]
    if not hasattr(module, name):
        public = [key for key in vars(module) if not key.startswith("_")]
        raise Unusable(f"{file} has no {name!r}{suggestion(name, public)}")
    thing, params = getattr(module, name), dict(settings)
    if callable(thing) and not isinstance(thing, type):
        thing, params = guard(Path(file), lambda: _call(name, getattr(module, name), settings)), {}
    if not isinstance(thing, (Problem, System)):
        raise Unusable(
            f"{text} is of type {type(thing).__name__}: it must be a da.problems.Problem, a da.Hamiltonian, da.Lagrangian, "
            "da.ODAE or da.IndexTwoDAE, or a function that returns one"
        )
    return Model(name, thing, params)


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise Unusable(f"there is no file {path}")
    name = f"dalembert_model_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    directory = str(path.resolve().parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)  # so that the model can import its neighbours
    loader = spec.loader
    guard(path, lambda: loader.exec_module(module))
    return module


def guard(path: Path, action: Callable[[], Any]) -> Any:
    """Run a user's code; what it raises becomes one sentence with the line of the user's file."""
    try:
        return action()
    except (Unusable, KeyboardInterrupt):
        raise
    except SyntaxError as error:
        raise Unusable(f"{path}, line {error.lineno}: {error.msg}") from None
    except Exception as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name == path.name]
        where = f"{path}, line {lines[-1]}" if lines else str(path)
        kind = "" if isinstance(error, DalembertError) else f"{type(error).__name__}: "
        raise Unusable(f"{where}: {kind}{error}") from None
