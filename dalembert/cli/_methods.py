"""Reading methods: `Rattle`, `RadauIIA(stages=3, projected=True)`, `CVA(Gauss(2))`, `da.compose(da.Rattle(), 4)`.

What is typed is parsed, never run: names are looked up among the methods, the tableaux and the schemes of the library, and
their arguments are numbers, words in quotation marks, or such things again.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import dalembert as da
from dalembert.cli._numbers import evaluate
from dalembert.cli._user_code import UsageError
from dalembert.errors import DalembertError, suggestion

if TYPE_CHECKING:
    from dalembert.methods import OneStepMethod
    from dalembert.systems import System

EXAMPLES = {"tableau": "gauss(2)", "L_d": '"SVC"', "method": "Rattle", "scheme_or_order": "4"}
"""What may stand for an argument that has no default."""
OTHER_EXAMPLES = {
    "ControlledSteps": {"method": "RadauIIA(3)"},
    "SPARK": {"tableau": "gauss_lobatto(2)"},
    "EMPRK": {"tableau": "gauss_lobatto(2)"},
    "PartitionedRungeKutta": {"tableau": "lobatto_iiia(3)", "hat": "lobatto_iiib(3)"},
}
"""The same for methods that take others."""


def methods() -> dict[str, type[OneStepMethod]]:
    """The classes of methods of the library, by name."""
    public = ((name, getattr(da, name)) for name in da.__all__)
    return {name: thing for name, thing in public if _is_class_of_methods(thing) and not inspect.isabstract(thing)}


def makers() -> dict[str, Callable[..., OneStepMethod]]:
    """Everything of the library that makes a method: the classes, and functions such as `compose` and `MCVAA`."""
    functions = ((name, getattr(da, name)) for name in da.__all__ if inspect.isfunction(getattr(da, name)))
    return {
        **methods(),
        **{name: f for name, f in functions if _is_class_of_methods(getattr(da, str(_returned(f)), None))},
    }


def _is_class_of_methods(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, da.OneStepMethod)


def _returned(function: Callable[..., Any]) -> Any:
    return inspect.signature(function).return_annotation  # by its name: annotations are not evaluated


def example(name: str, make: Callable[..., OneStepMethod]) -> str:
    """A maker as it is called, with an example for every argument that has no default.

    Example:
        >>> example("Rattle", da.Rattle), example("compose", da.compose)
        ('Rattle()', 'compose(method=Rattle, scheme_or_order=4)')

    """
    known = EXAMPLES | OTHER_EXAMPLES.get(name, {})
    needed = [argument for argument, about in inspect.signature(make).parameters.items() if about.default is about.empty]
    given = [f"{argument}={known.get(argument, '...')}" for argument in needed]
    return f"{name}({', '.join(given)})"


def method(text: str, stages: int | None = None) -> OneStepMethod:
    """The method of a name or of a call; `stages` goes to the method, or else to the one that it is made of.

    Example:
        >>> method("LobattoIIIAB", 4), method("rattle"), method("da.Gauss(3)")
        (LobattoIIIAB(stages=4), Rattle(stages=2), Gauss(stages=3, projected=False))
        >>> print(method("compose(Rattle, 'kahan-li-8')"), method("CVA(Gauss)", 1))
        da.compose(da.Rattle(), 'kahan-li-8') da.CVA(base=da.Gauss(stages=1, projected=False))

    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _no_method(text) from None
    return _method(tree, stages)


def default(system: System, stages: int | None = None) -> OneStepMethod:
    """The method that is taken if none is named."""
    from dalembert.runs._default_method import default_method

    chosen = default_method(system)
    return chosen if stages is None else method(str(chosen), stages)


def spelled(method: OneStepMethod) -> str:
    """A default method in few words, which `method` reads back.

    Example:
        >>> spelled(da.LobattoIIIAB()), spelled(da.compose(da.SymplecticEuler(), 2))
        ('LobattoIIIAB', "compose(SymplecticEuler, 'strang')")

    """
    from dalembert.methods.composition import Composition

    if isinstance(method, Composition):
        return f"compose({spelled(method.basic)}, {method.scheme.name!r})"
    assert is_dataclass(method)
    values = {f.name: (getattr(method, f.name), f.default) for f in fields(method) if f.init}
    given = [f"{name}={value!r}" for name, (value, usual) in values.items() if value != usual]
    return f"{type(method).__name__}({', '.join(given)})" if given else type(method).__name__


def _method(tree: ast.expr, stages: int | None) -> OneStepMethod:
    call = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
    written = ast.unparse(call.func).removeprefix("da.")
    if not written.isidentifier():
        raise _no_method(ast.unparse(tree))
    known = makers()
    same = [candidate for candidate in known if candidate.lower() == written.lower()]
    if not same:
        raise UsageError(f"there is no method {written!r}{suggestion(written, known)} (see dalembert list methods)")
    name, make = same[0], known[same[0]]
    taken = inspect.signature(make).parameters
    nodes = _arguments(name, call, taken)
    nested = {argument for argument, node in nodes.items() if _is_method(taken[argument], node)}
    if stages is not None and "stages" not in taken and not nested:
        raise UsageError(f"the method {name} has no number of stages to choose: leave --stages out")
    inner = None if "stages" in taken else stages
    values = {argument: _method(node, inner) if argument in nested else _value(node, tree) for argument, node in nodes.items()}
    if stages is not None and "stages" in taken:
        values["stages"] = stages
    try:
        return make(**values)
    except DalembertError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        raise UsageError(f"the method {ast.unparse(tree)!r} cannot be made: {error}") from None


def _arguments(name: str, call: ast.Call, taken: Any) -> dict[str, ast.expr]:
    """The arguments of a call by name, as they are written."""
    what = f"its arguments are {', '.join(taken)}" if taken else "it has none"
    by_place = [argument for argument, about in taken.items() if about.kind is not about.KEYWORD_ONLY]
    if len(call.args) > len(by_place):
        raise UsageError(f"the method {name} has no argument number {len(by_place) + 1}: {what}")
    nodes = dict(zip(by_place, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg not in taken:
            raise UsageError(f"the method {name} has no argument {keyword.arg!r}: {what}")
        if keyword.arg in nodes:
            raise UsageError(f"the method {name} is given {keyword.arg} twice: give it once")
        nodes[keyword.arg] = keyword.value
    missing = [argument for argument, about in taken.items() if about.default is about.empty and argument not in nodes]
    if missing:
        raise UsageError(f"the method {name} needs {' and '.join(missing)}: --method '{example(name, makers()[name])}'")
    return nodes


def _is_method(parameter: inspect.Parameter, node: ast.expr) -> bool:
    """Whether an argument is a method: where one may stand, names and calls are methods."""
    return "OneStepMethod" in str(parameter.annotation) and isinstance(node, (ast.Name, ast.Attribute, ast.Call))


def _no_method(text: str) -> UsageError:
    return UsageError(f"{text!r} is not a method: give a name, such as Rattle, or a call, such as 'RadauIIA(stages=3)'")


def _value(node: ast.expr, expression: ast.expr) -> Any:
    """None, a number, a word in quotation marks, several of these, a tableau, radau_iia(3), or a scheme, kahan_li(8)."""
    try:
        if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, str)):
            return node.value
        if isinstance(node, ast.Tuple):
            return tuple(_value(element, expression) for element in node.elts)
        if isinstance(node, ast.Call) and not node.keywords and (make := _listed(ast.unparse(node.func))) is not None:
            return make(*(evaluate(argument) for argument in node.args))
        return evaluate(node)
    except (ValueError, KeyError, TypeError, ArithmeticError) as error:
        if isinstance(error, DalembertError):
            raise
        raise _no_method(ast.unparse(expression)) from None


def _listed(written: str) -> Callable[..., Any] | None:
    """A function that makes a tableau or a scheme, by its name, with or without that of its module; None if there is none."""
    short = written.removeprefix("da.")
    for module in (da.tableaux, da.schemes):
        name = short.removeprefix(f"{module.__name__.rpartition('.')[2]}.")
        if name in module.__all__ and inspect.isfunction(getattr(module, name)):
            found: Callable[..., Any] = getattr(module, name)
            return found
    return None
