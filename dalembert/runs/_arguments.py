"""From what a user gave to a `RunSpec` and a `Policy`: the checks that all ways to run a simulation share."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from dalembert.draw import Drawing
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, UnsupportedSystem, is_one_of
from dalembert.methods import OneStepMethod
from dalembert.methods._base import refuse_varying
from dalembert.runs._controls import given_controls, with_ramps
from dalembert.runs._drivers import driver_of
from dalembert.runs._lengths import count, number_of_steps, positive, step_size
from dalembert.runs._problem import Problem, stated
from dalembert.runs._starts import given_values, initial_state
from dalembert.systems import State, System
from dalembert.systems._coulomb import check_coefficients
from dalembert.systems._initial_values import GivenValues, finite_number
from dalembert.systems._model import one_line
from dalembert.systems._states import States, states_at

MOST_STEPS, FIRST_PART = 2**61, 128
"""Steps of varying size until a final time, and the part of that time of which the first step is, if no h is given."""


class GivenStart(GivenValues, total=False):
    """Keywords of all functions that run a method: where the motion starts."""

    start: State | Sequence[State] | None
    t0: float | None
    params: Mapping[str, Any] | None


class GivenRun(GivenStart, total=False):
    """The same, and how far it goes."""

    h: float | None
    steps: int | None
    t1: float | None
    progress: bool | None


INITIAL = tuple(GivenValues.__annotations__)
SHARED = ("start", "t0", "params", "h", "steps", "t1")
"""What a run is given besides initial values."""


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
    start: Any = None
    t0: Any = None
    params: Mapping[str, Any] | None = None
    h: Any = None
    steps: Any = None
    t1: Any = None
    save_every: Any = 1
    newton_tolerance: Any = None
    stage_multipliers: bool = False
    controls: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, caller: str, system: Any, method: Any, given: Mapping[str, Any], **own: Any) -> Arguments:
        """From keywords as `GivenRun` has them, and others."""
        initial = {name: given.get(name) for name in INITIAL}
        own |= {name: given.get(name) for name in SHARED}
        return cls(caller, system, method, initial, **own)

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
