"""With respect to what a run is differentiated: names of initial values and parameters, and the run that they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalembert._calls import check_known
from dalembert.derivatives._given import names_of
from dalembert.derivatives._start import Start
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError
from dalembert.runs._arguments import INITIAL, SHARED, Arguments
from dalembert.runs._controls import parameter_slots
from dalembert.runs._drivers import check_differentiable
from dalembert.runs._starts import given_values
from dalembert.systems import State, System

FURTHER = {"save_every": 1, "newton_tolerance": None, "controls": None}
"""Arguments of a run besides those that all functions share, as `da.simulate` takes them."""
NAMES = "wrt names initial values and parameters"


@dataclass(frozen=True)
class Wanted:
    """One name in `wrt`: the shape of its values, and where they are among (first block, second block, theta)."""

    name: str
    shape: tuple[int, ...]
    columns: np.ndarray
    control: bool = False
    """Whether it is a control, which has values of its own in every interval."""
    slopes: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    """Where the slopes of a control that is linear in between are, in theta."""


@dataclass(frozen=True, eq=False)
class Differentiated:
    """A run, how its start came about, and the names with respect to which it is differentiated."""

    spec: RunSpec
    start: Start
    wanted: tuple[Wanted, ...]
    drawing: Any = None

    @property
    def constant(self) -> tuple[Wanted, ...]:
        """What is the same along the run: all but controls."""
        return tuple(each for each in self.wanted if not each.control)

    @property
    def columns(self) -> np.ndarray:
        """Where all of it is among (first block, second block, theta)."""
        return np.concatenate([np.zeros(0, int), *(each.columns for each in self.constant)])

    @property
    def chosen(self) -> tuple[int, ...]:
        """The parameters among it, controls included, as positions in theta, each once."""
        n = self.spec.system.n_state
        own = {int(k) - n for each in self.wanted for k in each.columns if k >= n}
        return tuple(sorted(own.union(*(each.slopes.tolist() for each in self.wanted))))

    def places(self, each: Wanted) -> tuple[list[int], list[int]]:
        """Where a parameter, and its slopes, are among the chosen ones."""
        n, chosen = self.spec.system.n_state, {k: i for i, k in enumerate(self.chosen)}
        return [chosen[int(k) - n] for k in each.columns if k >= n], [chosen[int(k)] for k in each.slopes]

    def shape(self, each: Wanted) -> tuple[int, ...]:
        """The shape of its gradient: controls have a row for each interval, or one for each end of intervals."""
        controls = self.spec.controls
        rows = 0 if controls is None else len(controls.values) + bool(len(each.slopes))
        return (rows, *each.shape) if each.control else each.shape

    def seeds(self) -> np.ndarray:
        """d chosen / d columns."""
        n, chosen = self.spec.system.n_state, np.array(self.chosen, int)
        return (chosen[:, None] == self.columns[None, :] - n).astype(float)


def run_arguments(caller: str, system: Any, method: Any, arguments: Mapping[str, Any]) -> Arguments:
    """The arguments of a run that is to be differentiated; those that it does not have are refused."""
    check_known(f"da.{caller}", arguments, (*INITIAL, *SHARED, *FURTHER))
    own: dict[str, Any] = {name: arguments.get(name, default) for name, default in FURTHER.items()}
    return Arguments.of(caller, system, method, arguments, **own)


def initial_values(packed: Arguments, wrt: str | Sequence[str] | None) -> dict[str, Any]:
    """The initial values of a run by name; start= has velocities if it keeps them or `wrt` names v0, and momenta else."""
    names = () if wrt is None else names_of(NAMES, wrt, 'wrt=("q0", "m")')
    started = packed.start is not None
    system, _, given = given_values(packed.system, started, packed.t0, packed.initial, packed.params)
    unclear = next((name for name in names if name in INITIAL and name in system.parameters.values), None)
    if unclear is not None:
        raise InputError(f"{unclear!r} in wrt= is both an initial value and a parameter of this system: rename the parameter")
    if not started:
        return given
    many = isinstance(packed.start, Sequence)
    states = list(packed.start) if many else [packed.start]
    keeping = {getattr(state, "keeps_velocity", False) for state in states}
    if len(keeping) > 1 and not {"v0", "p0"} & set(names):
        raise InputError(
            'some states of start= were made from velocities, others from momenta: name in wrt= which of these are kept, "v0" '
            'or "p0", or make all states alike'
        )
    if "v0" in names or (True in keeping and "p0" not in names):
        velocities = np.array([state.v for state in states])
        given["v0"] = velocities if many else velocities[0]
    return given


def differentiated(
    caller: str, system: Any, method: Any, wrt: str | Sequence[str] | None, arguments: Mapping[str, Any]
) -> Differentiated:
    """Check the arguments of a run that is to be differentiated."""
    packed = run_arguments(caller, system, method, arguments)
    spec = packed.single()
    check_differentiable(spec.method, f"da.{caller}")
    given = initial_values(packed, wrt)
    return Differentiated(spec, start_from(spec, given), () if wrt is None else wanted(spec, wrt, given), packed.drawing)


def start_from(spec: RunSpec, given: Mapping[str, Any]) -> Start:
    """How the start of a run came about."""
    system, state, velocity = spec.system, spec.start, given.get("v0") is not None
    assert isinstance(state, State)
    second = np.array(given["v0"], dtype=float) if velocity else state.second
    return Start(system, state, state.first, second, velocity)


def wanted(spec: RunSpec, wrt: str | Sequence[str], given: Mapping[str, Any]) -> tuple[Wanted, ...]:
    """The names in `wrt`, checked."""
    names = names_of(NAMES, wrt, 'wrt=("q0", "m")')
    system, controlled = spec.system, set() if spec.controls is None else set(spec.controls.slots.tolist())
    return tuple(_wanted(system, name, given, controlled) for name in names)


def _wanted(system: System, name: str, given: Mapping[str, Any], controlled: set[int]) -> Wanted:
    (_, n), (_, m) = system.state_blocks
    first, *others = system.starts_from
    second = "v0" if given.get("v0") is not None else others[-1]
    if name == first:
        return Wanted(name, (n,), np.arange(n))
    if name == second:
        return Wanted(name, (m,), n + np.arange(m))
    if name in others:
        raise InputError(f"wrt names {name!r}, but the run starts from {second}: differentiate with respect to that")
    slots = parameter_slots(system, name, "wrt")
    shape, behind = system.parameters.values[name].shape, system.parameters.size - 1 - len(system.ramps)
    slopes = np.array([behind + k for k, slot in enumerate(system.ramps) if slot in slots], int)
    return Wanted(name, shape, n + m + slots, set(slots.tolist()) <= controlled and bool(controlled), slopes)
