"""Pickling systems: a model consists of symbolic expressions, so that another process needs none of its Python code.

CasADi serialises functions, not loose expressions. So all expressions of a system are pickled as one function of its symbols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casadi as ca

from dalembert.systems._model import Parameters

if TYPE_CHECKING:
    from dalembert.systems._system import System

NOT_PICKLED = ("_symbols", "_expressions", "parameters", "smooth", "part_named")
"""Attributes that are pickled as expressions, or derived from them again, and the parts of a mechanism."""


def pack(system: System) -> tuple[Any, ...]:
    """The class of a system, its values, its expressions, and which of its attributes are symbols."""
    symbols, expressions = system._symbols, system._expressions
    graph = ca.Function(
        "system",
        [*symbols.values(), system.parameters.theta],
        [expression for _, expression in expressions.values()],
    )
    names = {id(symbol): name for name, symbol in symbols.items()}
    attributes = {name: value for name, value in vars(system).items() if name not in NOT_PICKLED}
    aliases = {name: names[id(value)] for name, value in attributes.items() if isinstance(value, ca.SX)}
    plain = {name: value for name, value in attributes.items() if name not in aliases}
    arguments = {name: taken for name, (taken, _) in expressions.items()}
    return type(system), plain, aliases, tuple(symbols), arguments, system.parameters.values, graph.serialize()


def unpack_system(
    kind: type[System],
    plain: dict[str, Any],
    aliases: dict[str, str],
    names: tuple[str, ...],
    arguments: dict[str, tuple[str, ...]],
    values: dict[str, Any],
    graph: str,
) -> System:
    """The system that `pack` took apart."""
    function = ca.Function.deserialize(graph)
    *symbols, theta = function.sx_in()
    expressions = function.call([*symbols, theta])
    system = kind.__new__(kind)
    vars(system).update(plain)
    system.parameters = Parameters(values)
    system.parameters.theta = theta
    system._symbols = dict(zip(names, symbols, strict=True))
    system._expressions = {name: (taken, e) for (name, taken), e in zip(arguments.items(), expressions, strict=True)}
    for name, symbol in aliases.items():
        setattr(system, name, system._symbols[symbol])
    return system
