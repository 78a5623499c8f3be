"""Reading numbers, lists of them and assignments."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, overload

from dalembert.cli._user_code import UsageError

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
        return evaluate(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        raise UsageError(f"{text!r} is not a number or a list of numbers such as 0.5,-sqrt(0.75) or 2*sin(pi/40)") from None


def evaluate(node: ast.expr) -> Any:
    """The value of a parsed expression; ValueError, KeyError, TypeError or ArithmeticError for what is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name):
        return CONSTANTS[node.id]
    if isinstance(node, (ast.Tuple, ast.List)):
        return [evaluate(element) for element in node.elts]
    if isinstance(node, ast.UnaryOp):
        return OPERATORS[type(node.op)](evaluate(node.operand))
    if isinstance(node, ast.BinOp):
        left, right = float(evaluate(node.left)), float(evaluate(node.right))
        return OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return FUNCTIONS[node.func.id](*(evaluate(argument) for argument in node.args))
    raise ValueError


def number(name: str, text: str | None) -> float | None:
    """The number given to an option, or None if it was not given."""
    if text is None:
        return None
    result = value(text)
    try:
        if isinstance(result, (list, bool)):
            raise TypeError
        return float(result)
    except (TypeError, OverflowError):
        raise UsageError(f"{name} takes one number; got {text!r}") from None


@overload
def count(name: str, text: str, least: int | None = None) -> int: ...
@overload
def count(name: str, text: None, least: int | None = None) -> None: ...
def count(name: str, text: str | None, least: int | None = None) -> int | None:
    """The whole number given to an option, in any spelling (5000, 5_000, 5e3), or None; at least so large if that is asked."""
    result = number(name, text)
    if result is None:
        return None
    if not math.isfinite(result) or result != int(result) or (least is not None and result < least):
        bound = "" if least is None else f" of at least {least}"
        raise UsageError(f"{name} takes a whole number{bound}; got {text!r}")
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
            raise UsageError(f"--set takes NAME=VALUE, such as --set m1=2; got {text!r}")
        result[name.strip()] = value(right)
    return result
