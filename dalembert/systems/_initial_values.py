"""What a motion starts from, as users give it: numbers of the right shapes, and a momentum from a velocity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np

from dalembert.errors import InputError
from dalembert.systems._matrices import well_conditioned
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._model import one_line, real_array
from dalembert.systems._newton import newton
from dalembert.systems._start_checks import short
from dalembert.systems._system import System


class GivenValues(TypedDict, total=False):
    """Keywords of all functions that begin with initial values."""

    q0: Any
    v0: Any
    p0: Any
    y0: Any
    z0: Any
    lam0: Any
    psi0: Any


class InitialValues:
    """What a user gave: a configuration, a momentum (or a velocity, which depends on the configuration), guesses."""

    def __init__(self, system: System, t: float, theta: np.ndarray, initial: Mapping[str, Any]) -> None:
        self.system, self.t, self.theta = system, t, theta
        self.given = {name: value for name, value in initial.items() if value is not None}
        first, second, *_ = takes = system.starts_from
        wrong = next((name for name in self.given if name not in (*takes, *system.guesses)), None)
        if wrong is not None:
            wanted = ", ".join(name for name in takes[:-1] if name) + f" and {takes[-1]}" if first else takes[-1]
            raise InputError(f"a {system.kind} starts from {wanted}; it has no {wrong}")
        mechanical = isinstance(system, MechanicalSystem)
        if any(name and name not in self.given for name in ((first,) if mechanical else (first, second))):
            wanted = "q0 and v0 or p0" if mechanical else " and ".join(name for name in takes if name)
            raise InputError(f"give the initial values {wanted} (or start=da.consistent(...))")
        (_, dim_y), (_, self.dim_z) = system.state_blocks
        self.position = vector_of(first, self.given[first], dim_y) if first else np.zeros(0)

    def momentum(self, y: np.ndarray) -> np.ndarray:
        if not isinstance(self.system, MechanicalSystem):
            name = self.system.starts_from[1]
            return vector_of(name, self.given[name], self.dim_z)
        return momentum_of(self.system, self.t, y, self.given.get("v0"), self.given.get("p0"), self.theta)

    @property
    def multipliers(self) -> np.ndarray:
        sizes = dict(zip(self.system.guesses, (self.system.n_holonomic, self.system.n_nonholonomic), strict=True))
        return np.concatenate([vector_of(n, self.given.get(n, np.zeros(size)), size) for n, size in sizes.items()])


def finite_number(name: str, value: Any) -> float:
    try:
        number = float(real_array(value))
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not np.isfinite(number):
        raise InputError(f"{name} must be a finite number; got {one_line(value)}")
    return number


def vector_of(name: str, value: Any, size: int) -> np.ndarray:
    try:
        array = real_array(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be {size} real numbers; got {one_line(value)}") from None
    if array.shape != (size,):
        of = {"lam0": "multiplier", "psi0": "multiplier", "y0": "variable", "z0": "variable"}.get(name, "coordinate")
        raise InputError(f"{name} must have shape ({size},), one number for each {of}; got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise InputError(f"{name} must be finite; got {short(array)}")
    return array


def momentum_of(system: MechanicalSystem, t: float, q: np.ndarray, v0: Any, p0: Any, theta: np.ndarray) -> np.ndarray:
    if (v0 is None) == (p0 is None):
        raise InputError(
            "give either the initial velocity v0 or the initial momentum p0" + ("" if v0 is None else ", not both")
        )
    if p0 is not None:
        return vector_of("p0", p0, system.dim)
    v = vector_of("v0", v0, system.dim)
    if "L_v" in system.function_names:
        return system.evaluate("L_v", t, q, v, theta=theta)

    def equations(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        H_pp = system.matrix("H_pp", t, q, p, theta=theta)
        if not well_conditioned(H_pp):
            raise InputError("the Hamiltonian cannot be inverted for p(v) because H_pp is singular here: give p0 instead of v0")
        return system.evaluate("H_p", t, q, p, theta=theta) - v, H_pp

    p = newton(equations, np.zeros(system.dim))
    if p is None:
        raise InputError("no momentum p with H_p(q0, p) = v0 was found: give p0 instead of v0")
    return p
