"""`explore`: from what a user names to a page."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dalembert._progress import busy
from dalembert.cli._models import catalogue
from dalembert.draw import Drawing
from dalembert.errors import InputError, suggestion
from dalembert.explorer._server import Server
from dalembert.explorer._session import Session
from dalembert.explorer._subject import Subject, Thing
from dalembert.explorer._widget import in_notebook, widget
from dalembert.mechanisms import Mechanism
from dalembert.methods import OneStepMethod
from dalembert.runs._accurate import suggest
from dalembert.runs._lengths import count
from dalembert.runs._problem import Problem
from dalembert.systems import System
from dalembert.systems._initial_values import finite_number
from dalembert.systems._model import one_line, real_array

FIRST = 128
"""The part of the time that stands for a step size until one has been found."""
SHOWN = 20.0
"""Units of time that are shown at first of a long run."""


def explore(
    model: str | Thing | Callable[..., Thing],
    method: OneStepMethod | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    q0: Any = None,
    v0: Any = None,
    p0: Any = None,
    y0: Any = None,
    z0: Any = None,
    lam0: Any = None,
    h: float | None = None,
    steps: int | None = None,
    t1: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    draw: Drawing | None = None,
    port: int | None = None,
    browser: bool = True,
    source: str | None = None,
) -> Any:
    """Open a page on which a model moves while sliders change it.

    `model` is the name of a problem of the catalogue, a function that returns a `Problem`, whose arguments become sliders, or
    what `da.simulate` takes: a problem, a `da.Mechanism`, a system, whose parameters become sliders. `params` sets some of
    them; the initial values, h and `steps` or `t1` are needed for what does not bring them, and replace those of what does.
    Initial values that a slider changes are projected onto the constraints. `draw` says how the model is drawn. With `rtol` or
    `atol` the page begins with the h, and the method if none is given, that `da.suggest` finds for the model as it is at first.

    In a script this serves the page at 127.0.0.1 until Ctrl-C, opens it in a `browser`, and prints its address, which contains
    a token: without it, and from pages of other sites, nothing is answered. In a notebook it returns a widget. `source` is the
    Python that makes the model, for the lines of code that the page shows.

    Example:
        >>> import dalembert as da
        >>> da.explore("duble_pendulum")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        dalembert.errors.InputError: there is no problem 'duble_pendulum': did you mean double_pendulum or ...

    """
    initial = {"q0": q0, "v0": v0, "p0": p0, "y0": y0, "z0": z0, "lam0": lam0}
    given = {name: _numbers(name, value) for name, value in initial.items() if value is not None}
    if method is not None and not isinstance(method, OneStepMethod):
        raise InputError(f"method is a method such as da.LobattoIIIAB(stages=3); got {method!r}")
    with busy("building the model"):
        tolerant = rtol is not None or atol is not None
        if tolerant and (h is not None or steps is not None):
            raise InputError("rtol= chooses h: give rtol= and t1=, or h= without rtol=")
        first = finite_number("t1", t1) / FIRST if tolerant and t1 is not None else h  # where nothing is known but the end
        chosen = subject(model, dict(params or {}), given, first, steps, t1, draw, source)
        posed = chosen.pose({}, {})  # what is wrong with the model is said here, not on the page
    if tolerant:
        found = suggest(posed.system, method, start=posed.state, t1=chosen.t1, rtol=rtol, atol=atol)
        chosen, method = replace(chosen, h=found.h), found.method
    if method is not None:
        method.check(posed.system)
    if in_notebook():
        return widget(Session(chosen, method))
    server = Server(lambda: Session(chosen, method), port)
    print(f"exploring {chosen.title} at {server.address.url}\nCtrl-C ends it", file=sys.stderr, flush=True)
    if browser:
        webbrowser.open(server.address.url)
    server.run()
    return None


def subject(
    model: Any, settings: dict[str, Any], initial: dict[str, Any], h: float | None, steps: int | None, t1: float | None,
    draw: Drawing | None, source: str | None,
) -> Subject:  # fmt: skip
    """What is to be explored, from what the user named."""
    name, make, thing, written = _found(model, settings)
    own = thing if isinstance(thing, Problem) else None
    if h is None and own is None:
        raise InputError("this model brings no step size: give h=, and steps= or t1=")
    size = finite_number("h", h if h is not None else own.h if own else 0.0)
    t0 = own.t0 if own else 0.0
    if t1 is None:
        length = size * count("steps", steps, least=1) if steps is not None else min(SHOWN, own.h * own.steps) if own else SHOWN
        t1 = t0 + length
    if not (size > 0 and finite_number("t1", t1) > t0):
        raise InputError(f"the page shows time that passes: give h > 0 and t1 > t0; got h = {size:g}, t1 = {t1:g}")
    return Subject(name, thing, make, settings, initial, draw, size, float(t1), source or written)


def _found(model: Any, settings: dict[str, Any]) -> tuple[str, Callable[..., Thing] | None, Thing, str]:
    """The name, the function that makes it if there is one, the model itself, and how it is written."""
    known = catalogue()
    if isinstance(model, str):
        if model not in known:
            raise InputError(f"there is no problem {model!r}{suggestion(model, known)} (see dalembert list problems)")
        model = known[model]
    if isinstance(model, Problem) and model.name in known and not settings:
        model = _maker_of(model, known[model.name]) or model
    if isinstance(model, Problem | Mechanism | System):
        return getattr(model, "name", "model"), None, model, "problem = ...  # what you gave to da.explore"
    if not callable(model):
        raise InputError(f"a model to explore is a problem, its name, a function that makes one, or a system; got {model!r}")
    thing = model(**settings)
    if not isinstance(thing, Problem | Mechanism | System):
        raise InputError(f"the function {model.__name__} must return a problem, a da.Mechanism or a system; got {thing!r}")
    name = model.__name__
    room = "da.problems." if known.get(name) is model else ""
    return name, model, thing, f"problem = {room}{name}({{settings}})"


def _numbers(name: str, value: Any) -> np.ndarray:
    try:
        return real_array(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be an array of numbers; got {one_line(value)}") from None


def _maker_of(problem: Problem, make: Callable[..., Problem]) -> Callable[..., Problem] | None:
    """The catalogue's function, if it makes this very problem by its defaults: then its arguments can be sliders."""
    usual = make()
    same = usual.system.fingerprint == problem.system.fingerprint and all(
        np.array_equal(usual.system.params[name], value) for name, value in problem.system.params.items()
    )
    pairs = [(getattr(usual, name), getattr(problem, name)) for name in ("q0", "v0", "p0", "y0", "z0")]
    return make if same and all((a is None) == (b is None) and (a is None or np.array_equal(a, b)) for a, b in pairs) else None
