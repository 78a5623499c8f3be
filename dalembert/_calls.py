"""How public functions and classes are called: keywords that several share, and one sentence where a call does not fit."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, get_args, get_type_hints

from dalembert.errors import CallError, suggestion


def public(value: Any) -> Any:
    """A function with its calls checked, which takes its place where it is defined; a class, with those of its methods."""
    if isinstance(value, type):
        for owner in value.__mro__:
            if owner.__module__.startswith("dalembert."):
                _check_methods(owner)
    elif isinstance(value, types.FunctionType) and value.__module__.startswith("dalembert."):
        home, name = sys.modules[value.__module__], value.__name__
        current: Any = getattr(home, name, None)
        if current is value:
            current = checked(value, name)
            setattr(home, name, current)  # where pickle looks for it
        if getattr(current, "__wrapped__", None) is value:
            return current
    return value


def check_calls(names: dict[str, Any]) -> None:
    """The same for all public names of a room, which gives its globals."""
    for name in names["__all__"]:
        if name in names:  # not what is loaded on first use
            names[name] = public(names[name])


def _check_methods(owner: type) -> None:
    for name, member in list(vars(owner).items()):
        if isinstance(member, types.FunctionType) and (name == "__init__" or not name.startswith("_")):
            setattr(owner, name, checked(member, owner.__name__ if name == "__init__" else name))


def checked(function: Callable, name: str) -> Callable:
    """The same function; a call that does not fit its signature is refused in one sentence.

    Keywords that it has as `**given: Unpack[Names]` stand in the signature one by one, with the default None.

    Example:
        >>> def step(h: float, *, times: int = 1) -> float: ...
        >>> checked(step, "step")(0.1, time=2)
        Traceback (most recent call last):
        ...
        dalembert.errors.CallError: step has no argument 'time': did you mean times?

    """
    if hasattr(function, "checks_calls"):
        return function
    signature = _spelt_out(function)

    @functools.wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        if signature is not None:  # else they would come with those that the function shares
            check_known(name, named, signature.parameters)
        try:
            return function(*positional, **named)
        except TypeError:
            _check_call(name, signature or inspect.signature(function), positional, named)
            raise

    vars(call)["checks_calls"] = True
    if signature is not None:
        vars(call)["__signature__"] = signature
    return call


def _spelt_out(function: Callable) -> inspect.Signature | None:
    """The signature of a function that shares keywords with others, which stand before its own; None of any other."""
    shared = [name for name, hint in function.__annotations__.items() if str(hint).startswith("Unpack[")]
    if not shared:
        return None
    (names,) = get_args(get_type_hints(function)[shared[0]])
    hints = {name: getattr(hint, "__forward_arg__", hint) for name, hint in names.__annotations__.items()}
    own, keyword, needed = inspect.signature(function), inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    parameters = [parameter for parameter in own.parameters.values() if parameter.name != shared[0]]
    behind = [parameter for parameter in parameters if parameter.kind is keyword and parameter.default is not needed]
    between = [inspect.Parameter(name, keyword, default=None, annotation=hint) for name, hint in hints.items()]
    return own.replace(parameters=[*(p for p in parameters if p not in behind), *between, *behind])


def _check_call(name: str, signature: inspect.Signature, positional: tuple, named: dict[str, Any]) -> None:
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in signature.parameters.values()):
            check_known(name, named, signature.parameters)
        raise CallError(f"{name}: {error}; it takes {_listed(signature.parameters)}") from None


def check_known(name: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse arguments that something does not have."""
    for argument in given:
        if argument not in known:
            raise CallError(
                f"{name} has no argument {argument!r}{suggestion(argument, known) or f'; it takes {_listed(known)}'}"
            ) from None


def _listed(arguments: Iterable[str]) -> str:
    return ", ".join(argument for argument in arguments if argument != "self")
