"""From what a user gave to a `RunSpec` and a `Policy`: the checks that all ways to run a simulation share."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from dalembert.draw import Drawing
from dalembert.engine._spec import RunSpec
from dalembert.errors import InconsistentStart, InputError, UnsupportedSystem, is_one_of
from dalembert.mechanisms import Mechanism
from dalembert.methods import OneStepMethod
from dalembert.methods._base import refuse_varying
from dalembert.runs._controls import given_controls, with_ramps
from dalembert.runs._drivers import driver_of
from dalembert.runs._problem import Problem, stated
from dalembert.systems import State, System, state_at
from dalembert.systems._consistent import finite_number, unpack, with_parameters
from dalembert.systems._coulomb import check_coefficients
from dalembert.systems._model import checked_mapping, one_line, real_array, shape_of
from dalembert.systems._start_checks import check_domain, check_start
from dalembert.systems._states import States, states_at

MOST_STEPS, FIRST_PART = 2**61, 128
"""Steps of varying size until a final time, and the part of that time of which the first step is, if no h is given."""


@dataclass(frozen=True)
class Policy:
    """How a run is executed, what is followed along it and where results go; it changes numbers by round-off at most."""

    progress: bool | None = None
    on_failure: str = "raise"
    save_to: Any = None
    executor: Any = None
    workers: int | None = None
    """How many threads compute: None for all cores, but one in each worker of an executor unless more are asked for."""
    simd: bool | None = None
    """Whether members are computed in vectors; None where that is faster."""
    quantities: dict[str, ca.Function] = field(default_factory=dict)
    """What is followed along the runs of an ensemble without being stored, as functions (t, y, z, theta)."""
    counted: tuple[str, ...] = ()
    """The names under which impacts are counted instead of stored."""
    drawing: Drawing | None = None

    def __post_init__(self) -> None:
        if not is_one_of(self.on_failure, "raise", "return"):
            raise InputError(f'on_failure is "raise" or "return"; got {self.on_failure!r}')
        if self.simd is not None and not isinstance(self.simd, (bool, np.bool_)):
            raise InputError(f"simd is True, False, or None (vectors where they are faster); got {self.simd!r}")
        if self.save_to is not None and not isinstance(self.save_to, (str, os.PathLike)):
            raise InputError(f'save_to is the name of a store on disk, as in save_to="run.zarr"; got {self.save_to!r}')
        if self.save_to is not None and "\0" in str(self.save_to):
            raise InputError(f"save_to has a null character, which no file name may have; got {self.save_to!r}")
        workers = 1 if self.workers is None and self.executor is not None else self.workers
        checked = {
            "simd": None if self.simd is None else bool(self.simd),
            "workers": None if workers is None else count("workers", workers, least=1),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Arguments:
    """What `simulate`, `simulate_many` and `poincare` are given; a problem brings what is missing."""

    caller: str
    system: Any
    method: Any
    initial: Mapping[str, Any]
    """Initial values and guesses of multipliers by their names, q0 and so on; None where they were not given."""
    start: Any
    params: Mapping[str, Any] | None
    t0: Any
    t1: Any
    h: Any
    steps: Any
    save_every: Any = 1
    newton_tolerance: Any = None
    stage_multipliers: bool = False
    controls: Mapping[str, Any] | None = None

    @property
    def drawing(self) -> Drawing | None:
        """How a problem is drawn."""
        return stated(self.system)[1]

    def single(self) -> RunSpec:
        """One run."""
        system, start = initial_state(self.system, start=self.start, t0=self.t0, params=self.params, **self.initial)
        spec = self._spec(system, start)
        spec.method.check_start(system, start, spec.h)
        return spec

    def many(self) -> RunSpec:
        """A run for every row of initial values and parameters."""
        system, states = self.starts()
        check_method(self.method, system, self.caller)
        if self.caller == "poincare" and not driver_of(self.method).has_steppers:
            raise UnsupportedSystem(
                f"{self.method} makes whole steps only, so that none can end on the section: look at the stored states"
            )
        if self.caller != "simulate_many" and not (self.caller == "poincare" and "rate" in self.method.clock_names):
            refuse_varying(self.method, f"da.{self.caller}")
        spec = self._spec(system, states)
        if type(spec.method).check_start is not OneStepMethod.check_start:
            for member in range(len(states)):
                spec.method.check_start(system, states[member], spec.h)
        return spec

    def starts(self) -> tuple[System, States]:
        """The system and the states in which members start."""
        system, t0, given = given_values(self.system, self.start is not None, self.t0, self.initial, self.params)
        return system, states_at(system, t0=0.0 if t0 is None else t0, params=self.params, start=self.start, **given)

    def _spec(self, system: System, start: State | States) -> RunSpec:
        check_method(self.method, system, self.caller)
        check_coefficients(States.of(system, start) if isinstance(start, State) else start)
        h, steps, t0 = self.h, self.steps, start.t if isinstance(start, State) else float(start.t[0])
        if isinstance(self.system, Problem):
            if self.method.rejects and self.t1 is None and steps is None:
                if self.caller != "simulate":
                    raise InputError(f"da.{self.caller} takes so many steps of every member: give steps= with {self.method}")
                return replace(self, t1=t0 + self.system.h * self.system.steps)._spec(system, start)
            h = self.system.h if h is None else h
            steps = self.system.steps if steps is None and self.t1 is None else steps
        if h is None and self.method.rejects and self.t1 is not None and self.steps is None:
            h = (finite_number("t1", self.t1) - t0) / FIRST_PART  # the first of steps that find their size themselves
            if h == 0:
                raise InputError(f"t1 must be another time than t0 = {t0:g}; got {self.t1!r}")
        h, t_end = step_size(h, self.method), None
        if self.t1 is not None and self.method.varies_steps:
            h, t_end = self._end(t0, h, steps)
        steps = number_of_steps(steps, self.t1, t0, h) if t_end is None else MOST_STEPS
        save_every = count("save_every", self.save_every, least=1)
        tolerance = None if self.newton_tolerance is None else positive("newton_tolerance", self.newton_tolerance)
        if tolerance is not None and tolerance >= 1:
            raise InputError(f"newton_tolerance is relative, so that it is less than 1; got {self.newton_tolerance!r}")
        if not isinstance(self.stage_multipliers, (bool, np.bool_)):
            raise InputError(f"stage_multipliers is True or False; got {one_line(self.stage_multipliers)}")
        if self.stage_multipliers and "energy" in self.method.clock_names:
            raise InputError(f"the stages of {self.method} have multipliers of another time: read run.lam")
        # Where multipliers enter nonlinearly, those of the stages tell on which branch a stored state is.
        stage_multipliers = bool(self.stage_multipliers) or not system.linear_in_multipliers
        if self.controls is not None:
            refuse_varying(self.method, "controls=")
        moving, controls = given_controls(system, self.controls, steps, t0, h)
        if moving.ramps:
            system, start = moving, with_ramps(moving, start)
        given = (h, steps, save_every, tolerance, stage_multipliers)
        spec = RunSpec(system, self.method, start, *given, controls=controls, t_end=t_end)
        driver_of(self.method).check(spec)
        return spec

    def _end(self, t0: float, h: float, steps: Any) -> tuple[float, float]:
        """The first step size and the final time, where step sizes vary."""
        if "rate" not in self.method.clock_names:
            refuse_varying(self.method, "t1=")
        if self.caller != "simulate":
            raise InputError(
                f"with {self.method} members take different numbers of steps until t1: give steps= and the first h= in "
                "place of t1=, or call da.simulate for each of them"
            )
        if steps is not None:
            raise InputError("give either the number of steps or the final time t1, not both")
        length = finite_number("t1", self.t1) - t0
        if length * h <= 0:
            raise InputError(
                f"t1 must be a time {'after' if h > 0 else 'before'} t0 = {t0:g}, or h have another sign; got {self.t1!r}"
            )
        return math.copysign(min(abs(h), abs(length)), h), float(self.t1)


def check_method(method: Any, system: System, caller: str) -> None:
    """Refuse what is no method, or one that cannot serve the system."""
    if not isinstance(method, OneStepMethod):
        hint = f"; write da.{method.__name__}()" if isinstance(method, type) and issubclass(method, OneStepMethod) else ""
        raise InputError(
            f"the second argument of {caller} is a method, such as da.LobattoIIIAB(stages=3); got {method!r}{hint}"
        )
    method.check(system)


def given_values(
    system: System | Problem | Mechanism,
    started: bool,
    t0: float | None,
    initial: Mapping[str, Any],
    params: Mapping[str, Any] | None,
) -> tuple[System, float | None, dict[str, Any]]:
    """The system, the time and the initial values that were given, or that a problem brings."""
    given = {name: value for name, value in initial.items() if value is not None}
    if isinstance(system, Problem):
        if not started and not {"q0", "y0"} & set(given):
            t0 = system.t0 if t0 is None else t0
            motion = {} if {"v0", "p0", "z0"} & set(given) else {"v0": system.v0, "p0": system.p0, "z0": system.z0}
            given = {"q0": system.q0, "y0": system.y0, "lam0": system.lam0, **motion, **given}
            given = {name: value for name, value in given.items() if value is not None}
        system = system.system
    if isinstance(system, Mechanism):
        if not started and not given:
            given = _assembled_pose(system, 0.0 if t0 is None else t0, params)
        system = system.system()
    if not isinstance(system, System):
        raise UnsupportedSystem(
            "the first argument is a da.Hamiltonian, a da.Lagrangian, a da.ODAE, a da.Mechanism or a problem of da.problems; "
            f"got {type(system).__name__}"
        )
    if started and given:
        raise InputError(f"give either start= or the initial values {' and '.join(given)}, not both")
    return system, t0, given


def _assembled_pose(m: Mechanism, t0: float, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The initial values of a mechanism that was given none: those of its first member, if parameters have one row a member.

    Velocities are given rather than momenta, which each member has by its own masses.
    """
    declared = m.system().parameters.values
    one = {
        name: value[0] if name in declared and len(shape_of(value)) == declared[name].ndim + 1 and len(value) else value
        for name, value in checked_mapping(params).items()
    }
    state = m.start(t0=t0, params=one)
    return {"q0": state.q, **({"v0": state.v} if np.any(state.v) else {"p0": state.p})}


def initial_state(
    system: System | Problem | Mechanism,
    *,
    start: State | None = None,
    t0: float | None = None,
    params: Mapping[str, Any] | None = None,
    check: bool = True,
    **initial: Any,
) -> tuple[System, State]:
    """The system and the state in which a run starts, from a problem, from initial values or from `start`."""
    maker = "m.start" if isinstance(system, Mechanism) else "da.consistent"
    system, t0, given = given_values(system, start is not None, t0, initial, params)
    if start is None:
        return system, state_at(system, t0=0.0 if t0 is None else t0, params=params, **given)
    if not isinstance(start, State):
        raise InputError(f"start is a state that {maker} returned; got {type(start).__name__}")
    if t0 is not None and t0 != start.t:
        raise InputError(
            f"start= brings its own time, t = {start.t:g}: leave t0 out, or make the state with {maker}(..., t0=...)"
        )
    if start.fingerprint != system.fingerprint:
        given_to = f"{maker}(...)" if maker == "m.start" else f"{maker}(system, ...)"
        raise InputError(f"start= belongs to another model: make the state with {given_to} for this one")
    theta = system.parameters.vector(params, base=start.theta)
    packed = with_parameters(system, start, theta)
    if check:
        try:
            check_start(system, start.t, start.first, packed[len(start.first) :], theta)
        except InconsistentStart as error:
            if np.array_equal(theta, start.theta):
                raise
            violated, kept = str(error).partition(":")[0], "q and v" if start.keeps_velocity else system.state_blocks[1][0]
            advice = f"start= was made with other parameters and keeps its {kept}: make it with {maker}(..., params=...)"
            raise InconsistentStart(f"{violated}: {advice}") from None
    state = unpack(system, start.t, packed, theta, start.multipliers)
    if check:
        check_domain(system, state)
    return system, state


def step_size(value: Any, method: OneStepMethod) -> float:
    """A number other than 0; time runs backwards if it is negative."""
    if value is None:
        finding = "t1= without steps=" if method.rejects else "rtol= and t1="
        raise InputError(f"a step size is missing: give h=, or {finding}, which finds one")
    number = _number(value)
    if not np.isfinite(number) or number == 0:
        raise InputError(f"h must be a positive number, or a negative one to go back in time; got {one_line(value)}")
    return number


def _number(value: Any) -> float:
    try:
        return float(real_array(value))
    except (TypeError, ValueError, OverflowError):
        return np.nan


def positive(name: str, value: Any) -> float:
    """A number > 0."""
    number = _number(value)
    if not (np.isfinite(number) and number > 0):
        raise InputError(f"{name} must be a positive number; got {one_line(value)}")
    return number


def count(name: str, value: Any, least: int) -> int:
    """An integer that is not too small."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number < 2**62:
        raise InputError(f"{name} must be an integer >= {least}{' and below 2**62' * (number >= 2**62)}; got {one_line(value)}")
    return number


def check_memory(needed: int, what: str = "all these states", advice: str = "store fewer of them with save_every=") -> None:
    """Refuse to hold more than the machine's memory, before anything is computed."""
    try:
        available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not known on this platform
        return
    if needed > 0.8 * available:
        raise InputError(
            f"storing {what} takes {needed / 1e9:.3g} GB of the machine's {available / 1e9:.0f} GB of memory: {advice}"
        )


def number_of_steps(steps: int | None, t1: float | None, t0: float, h: float) -> int:
    """How many steps there are, by their number or by the final time."""
    if (steps is None) == (t1 is None):
        raise InputError("give either the number of steps or the final time t1" + ("" if steps is None else ", not both"))
    if steps is not None:
        return count("steps", steps, least=0)
    assert t1 is not None
    length = (finite_number("t1", t1) - t0) / h
    if not np.isfinite(length) or length < 0:
        where, other = ("after", "h < 0") if h > 0 else ("before", "h > 0")
        raise InputError(f"t1 must be a finite time {where} t0 = {t0:g}, or {other}; got {t1!r}")
    nearest = round(length)
    if abs(length - nearest) > 1e-9 * max(1.0, length):
        raise InputError(
            f"t1 - t0 = {float(t1) - t0:g} is not a whole number of steps h = {h:g}: "
            f"use h = {(float(t1) - t0) / max(1, nearest):.17g}"
        )
    return nearest
