"""What is explored: a model whose constants and initial values are sliders."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from dalembert.draw import Drawing, Part, mass, track
from dalembert.draw._parts import picture
from dalembert.draw._scene import upright
from dalembert.errors import DalembertError, InconsistentStart, InputError
from dalembert.mechanisms import Mechanism
from dalembert.runs._problem import Problem, stated
from dalembert.runs._starts import given_values, initial_state
from dalembert.systems import IndexTwoDAE, MechanicalSystem, State, System, consistent

Thing = Problem | Mechanism | System
"""What `da.simulate` takes as its first argument."""


_low, _high = attrgetter("low"), attrgetter("high")


@dataclass(frozen=True)
class Control:
    """A number that a slider changes; `key` is its name, with the index of an entry where it is one of several."""

    key: str
    label: str
    value: float
    low: float
    high: float
    whole: bool = False


@dataclass(frozen=True)
class Posed:
    """A model with all its numbers: the system, the state in which it starts, and how it is drawn."""

    system: System
    state: State
    drawing: Drawing


@dataclass(frozen=True, eq=False)
class Subject:
    """A model to explore, with the numbers that it has before a slider is moved.

    `make` returns the model for settings by name; without it, `thing` is the model and settings are its parameters.
    """

    name: str
    thing: Thing
    make: Callable[..., Thing] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    initial: Mapping[str, Any] = field(default_factory=dict)
    """Initial values q0, p0, v0, y0, z0, lam0 in place of those of a problem."""
    draw: Drawing | None = None
    h: float = 0.01
    t1: float = 10.0
    source: str = "problem = ...  # what you gave to da.explore"
    """Python that makes the model; {settings} stands for the arguments of a call."""

    @property
    def title(self) -> str:
        """What the model is called."""
        return self.thing.title if isinstance(self.thing, Problem) else self.name

    def values(self) -> dict[str, Any]:
        """The settings that can be changed: numbers, and lists of a few of them."""
        if self.make is None:
            found = {**stated(self.thing)[0].params, **self.settings}
        else:
            defaults = {name: about.default for name, about in inspect.signature(self.make).parameters.items()}
            found = {**defaults, **self.settings}
        return {name: value for name, value in found.items() if _is_numeric(value)}

    def controls(self) -> list[Control]:
        """A slider for every setting."""
        return [control for name, value in self.values().items() for control in _of_setting(name, value)]

    def start_controls(self) -> list[Control]:
        """A slider for every initial value."""
        posed = self.pose({}, {})
        labels = coordinate_labels(self.thing, posed.system)
        return [
            control
            for letter, values in _initial_blocks(posed.system, posed.state).items()
            for control in _of_start(letter, values, labels)
        ]

    def settings_at(self, moved: Mapping[str, float]) -> dict[str, Any]:
        """The settings that differ from the model's own, with the sliders that were moved; lists are whole."""
        values, given = self.values(), dict(self.settings)
        for key, number in moved.items():
            name, _, index = key.partition(".")
            if name not in values or (index and not index.isdecimal()):
                raise InputError(f"{self.name} has no setting {key!r}")
            if not index:
                given[name] = int(number) if isinstance(values[name], (int, np.integer)) else float(number)
                continue
            whole = np.array(given.get(name, values[name]), dtype=float)
            whole.reshape(-1)[int(index)] = number
            given[name] = whole.tolist()
        return given

    @cached_property
    def parameters(self) -> frozenset[str]:
        """Settings of a function that change nothing but a parameter of the system: those need no other model.

        Tried at the ends of each slider, and at those of all of them together.
        """
        usual, chosen = self.thing, []
        if self.make is None or not isinstance(usual, Problem):
            return frozenset()
        controls = [control for control in self.controls() if control.key in usual.system.params]
        for control in controls:
            if all(self._changes_parameters({control.key: end}) for end in (control.low, control.high)):
                chosen.append(control)
        together = all(self._changes_parameters({c.key: end(c) for c in chosen}) for end in (_low, _high))
        return frozenset(control.key for control in chosen) if together else frozenset()

    def _changes_parameters(self, values: Mapping[str, float]) -> bool:
        assert self.make is not None and isinstance(self.thing, Problem)
        try:
            made = self.make(**{**self.settings, **values})
        except DalembertError:
            return False
        return isinstance(made, Problem) and _differs_by_parameters(made, self.thing, values)

    def pose(self, moved: Mapping[str, float], start: Mapping[str, float]) -> Posed:
        """The model with sliders moved; initial values are projected onto the constraints."""
        settings = self.settings_at(moved)
        thing = self.thing
        params: Mapping[str, Any] | None = settings if self.make is None else None
        if self.make is not None and moved:
            if self.parameters.issuperset(moved):
                params = {name: settings[name] for name in moved}
            else:
                thing, params = _with_system(self.make(**settings), self.thing)
        try:
            system, state = initial_state(thing, params=params, **self.initial)
        except InconsistentStart:  # a parameter of the constraints was changed
            system, t0, given = given_values(thing, False, None, self.initial, params)
            state = consistent(system, t0=0.0 if t0 is None else t0, params=params, **given)
        if start:
            state = _moved(system, state, start)
        drawing = self.draw or stated(thing)[1] or _dot(system)
        return Posed(system, state, upright(drawing))


def _with_system(thing: Thing, known: Thing) -> tuple[Thing, Mapping[str, Any] | None]:
    """A problem with the system of another one, from which much was derived already, if it is equal; and its parameters."""
    if not (isinstance(thing, Problem) and isinstance(known, Problem)):
        return thing, None
    if thing.system.fingerprint != known.system.fingerprint:
        return thing, None
    return replace(thing, system=known.system), thing.system.params


def _differs_by_parameters(problem: Problem, usual: Problem, values: Mapping[str, float]) -> bool:
    """Whether a problem starts and looks as the usual one does, and has the same system with other values of parameters."""
    own, other = usual.system.params | {name: np.float64(value) for name, value in values.items()}, problem.system.params
    if problem.system.fingerprint != usual.system.fingerprint or own.keys() != other.keys():
        return False
    starts = [(getattr(problem, name), getattr(usual, name)) for name in ("q0", "v0", "p0", "y0", "z0", "lam0", "t0")]
    same = all((a is None) == (b is None) and (a is None or np.array_equal(a, b)) for a, b in starts)
    return (
        same and all(np.array_equal(own[name], other[name]) for name in own) and _looks(problem, other) == _looks(usual, other)
    )


def _looks(problem: Problem, params: Mapping[str, Any]) -> list[Any] | None:
    """The parts of a drawing at the start."""
    if problem.drawing is None:
        return None
    first = problem.q0 if problem.y0 is None else problem.y0
    (_, n), (_, m) = problem.system.state_blocks
    shown = picture(problem.drawing, problem.t0, np.asarray(first, dtype=float), np.zeros(m), params, np.zeros(n))
    return [(part.kind, part.color, part.radius, part.points.tolist()) for part in shown]


def coordinate_labels(thing: Thing, system: System) -> tuple[str, ...]:
    """The names of the coordinates: of the problem, of the mechanism, or their letter and number."""
    named = thing.labels if isinstance(thing, Problem) and thing.labels else system.coordinate_names
    first, second = system.state_blocks
    letter, size = first if first[1] else second
    return named if len(named) == size else tuple(f"{letter}{i + 1}" for i in range(size))


def _initial_blocks(system: System, state: State) -> dict[str, np.ndarray]:
    """The initial values by letter: velocities stand for momenta."""
    if isinstance(system, IndexTwoDAE):
        return {"y": state.y}
    return {"q": state.q, "v": state.v} if isinstance(system, MechanicalSystem) else {"y": state.y, "z": state.z}


def _moved(system: System, state: State, start: Mapping[str, float]) -> State:
    """The nearest consistent state to one of which some values were changed."""
    blocks = {letter: values.copy() for letter, values in _initial_blocks(system, state).items()}
    for key, number in start.items():
        letter, _, index = key.partition(".")
        if letter not in blocks or not index.isdecimal() or int(index) >= len(blocks[letter]):
            raise InputError(f"there is no initial value {key!r}")
        blocks[letter][int(index)] = number
    guesses = {name: values for name, values in zip(system.guesses, (state.lam, state.psi), strict=True) if name}
    initial: dict[str, Any] = {f"{letter}0": values for letter, values in blocks.items()} | guesses
    params = system.parameters.unflatten(state.theta)
    return consistent(system, t0=state.t, params=params, **initial)


def _is_numeric(value: Any) -> bool:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(value, (bool, str)) and value is not None and array.size <= 12 and bool(np.all(np.isfinite(array)))


def _of_setting(name: str, value: Any) -> list[Control]:
    whole = isinstance(value, (int, np.integer))
    if np.ndim(value) == 0:
        return [Control(name, name, float(value), *_span(float(value), whole), whole)]
    size = float(np.max(np.abs(value))) or 1.0
    return [
        Control(f"{name}.{i}", f"{name} {i + 1}", float(number), -3 * size, 3 * size)
        for i, number in enumerate(np.asarray(value, dtype=float).reshape(-1))
    ]


def _span(value: float, whole: bool) -> tuple[float, float]:
    """Where a slider ends: at a tenth and at three times a positive number."""
    if whole:
        return (1.0, max(3 * value, value + 4)) if value > 0 else (value - 5, value + 5)
    if value > 0:
        return value / 10, 3 * value
    return (-1.0, 1.0) if value == 0 else (3 * value, -3 * value)


def _of_start(letter: str, values: np.ndarray, labels: tuple[str, ...]) -> list[Control]:
    reach = float(np.max(np.abs(values), initial=0.0)) or 1.0
    first = letter in ("q", "y")
    names = [labels[i] if first else f"{letter} of {labels[i]}" if i < len(labels) else f"{letter}{i + 1}"
             for i in range(len(values))]  # fmt: skip
    return [
        Control(f"{letter}.{i}", name, float(number), float(number) - reach, float(number) + reach)
        for i, (name, number) in enumerate(zip(names, values, strict=True))
    ]


def _dot(system: System) -> Drawing:
    """How a system without a drawing is shown: its first coordinates, as a point."""
    first, second = system.state_blocks
    size = first[1] or second[1]

    def drawing(y: np.ndarray) -> list[Part]:
        if size > 1:
            return [mass(y[:2])]
        return [track([0.0, 0.0], [0.0, float(y[0])]), mass([0.0, float(y[0])])]

    return drawing
