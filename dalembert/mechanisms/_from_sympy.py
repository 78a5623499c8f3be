"""Lagrangians that SymPy derived, as systems."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dalembert.errors import DalembertError, ModelError
from dalembert.systems import Lagrangian
from dalembert.systems._model import Parameters, naming


def from_sympy(
    L: Any,
    q: Sequence[Any],
    *,
    params: Mapping[Any, Any] | None = None,
    holonomic: Sequence[Any] = (),
    nonholonomic: Sequence[Any] = (),
    force: Sequence[Any] | None = None,
) -> Lagrangian:
    """The `da.Lagrangian` of a SymPy expression in dynamic symbols and their time derivatives, as sympy.physics.mechanics uses.

    `q` are the coordinates, in order; `params` maps all other symbols to numbers. `holonomic` and `nonholonomic` are lists of
    expressions that vanish, `force` has one for each coordinate.

    Example:
        >>> import sympy as sp, dalembert as da
        >>> from sympy.physics.mechanics import dynamicsymbols
        >>> theta, (m, l, g) = dynamicsymbols("theta"), sp.symbols("m l g")
        >>> L = m * l**2 * theta.diff()**2 / 2 + m * g * l * sp.cos(theta)
        >>> pendulum = da.from_sympy(L, [theta], params={m: 0.2, l: 0.5, g: 9.81})
        >>> run = da.simulate(pendulum, da.LobattoIIIAB(3), q0=[0.1], v0=[0.0], h=0.01, steps=100)
        >>> pendulum
        <Lagrangian of 1 coordinates, params m, l, g>

    """
    try:
        import sympy
        from sympy.physics.vector import dynamicsymbols
    except ImportError:
        raise DalembertError("from_sympy needs the package sympy: pip install sympy") from None
    t, names = dynamicsymbols._t, _names(params or {})
    plain_q, plain_v = sympy.symbols(f"q:{len(q)}", cls=sympy.Dummy), sympy.symbols(f"v:{len(q)}", cls=sympy.Dummy)
    rates = {x.diff(t): v for x, v in zip(q, plain_v, strict=True)}
    places = dict(zip(q, plain_q, strict=True))
    symbols = [*(symbol for symbol in (params or {}))]

    def function(expressions: Sequence[Any], of_rates: bool, role: str) -> Callable:
        """A model function of t, q, v and the parameters."""
        known = {t, *plain_q, *plain_v, *(sympy.sympify(symbol) for symbol in symbols)}
        stated = [sympy.sympify(e).subs(rates).subs(places) for e in expressions]
        for expression in stated:
            left = [*expression.atoms(sympy.Derivative), *expression.atoms(sympy.core.function.AppliedUndef)]
            unknown = [str(symbol) for symbol in (*left, *(expression.free_symbols - known))]
            if unknown:
                raise ModelError(f"{role} contains {', '.join(sorted(unknown))}: list it in q, or give its value in params")
            if not of_rates and expression.free_symbols & set(plain_v):
                raise ModelError(f"{role} contains rates, but relates positions only: give it as nonholonomic=")
        compiled = sympy.lambdify([[t], plain_q, plain_v, symbols], stated, modules="numpy", cse=True)

        def model(t: Any, q: Any, v: Any = None, **given: Any) -> list[Any]:
            return compiled([t], list(q), [0.0] * len(q) if v is None else list(v), [given[str(s)] for s in symbols])

        return naming(["t", "q", *(["v"] if of_rates else []), *names], model)

    def first(model: Callable) -> Callable:
        return naming(inspect.signature(model).parameters, lambda **given: model(**given)[0])

    def together(model: Callable) -> Callable:
        return naming(inspect.signature(model).parameters, lambda **given: np.array(model(**given), like=given["q"]))

    return Lagrangian(
        first(function([L], True, "the Lagrangian")),
        dim=len(q),
        holonomic=function(holonomic, False, "holonomic") if holonomic else None,
        nonholonomic=function(nonholonomic, True, "nonholonomic") if nonholonomic else None,
        force=None if force is None else together(function(force, True, "force")),
        params=names,
    )


def _names(params: Mapping[Any, Any]) -> dict[str, Any]:
    """Values by the names of their symbols, which model functions take as arguments."""
    names: dict[str, Any] = {}
    for symbol, value in params.items():
        name = str(symbol)
        if name in names:
            raise ModelError(f"params has two symbols of the name {name!r}, such as with other assumptions: take one of them")
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ModelError(f"the symbol {name!r} is no name that Python takes for an argument: rename it, such as m_1 or lam")
        names[name] = value
    Parameters(names)  # refuses names that the library takes itself, and values that are no numbers
    return names
