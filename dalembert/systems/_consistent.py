"""States on the constraint manifold: making them from initial values, and projecting a guess onto it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dalembert.errors import InconsistentStart, InputError, UnsupportedSystem
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._matrices import well_conditioned
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._model import one_line, real_array
from dalembert.systems._newton import newton
from dalembert.systems._projection import project_momentum, project_position
from dalembert.systems._start_checks import check_defined, check_domain, check_forces, check_start, short
from dalembert.systems._system import System

STARTS = 8
"""How many starts of a system are remembered: a run that is made again need not be checked again."""


@dataclass(frozen=True, eq=False)
class State:
    """A state of a system with everything that follows from it: `q`, `p` and `v`, or `y` and `z`; `lam`, `psi`, `residuals`."""

    t: float
    first: np.ndarray
    """q of a mechanical system, y of an ODAE, nothing of an index-2 DAE."""
    second: np.ndarray
    """p of a mechanical system, z of an ODAE, y of an index-2 DAE."""
    v: np.ndarray
    lam: np.ndarray
    psi: np.ndarray
    residuals: dict[str, np.ndarray]
    theta: np.ndarray
    names: tuple[str, str]
    """Of the two blocks."""
    fingerprint: str = ""
    """Of the model to which the state belongs."""
    keeps_velocity: bool = False
    """Whether it was made from a velocity, which a run with other masses then keeps; else that keeps the momentum."""

    def __repr__(self) -> str:
        blocks = zip(self.names, (self.first, self.second), strict=True)
        shown = [
            f"{name} = {np.array2string(values, precision=4, threshold=6, edgeitems=3)}" for name, values in blocks if name
        ]
        return f"<State at t = {self.t:g}: {', '.join(shown)}>".replace("\n", "")

    def copy(self) -> State:
        """The same numbers in arrays of their own."""
        own = {name: getattr(self, name).copy() for name in ("first", "second", "v", "lam", "psi", "theta")}
        return replace(self, residuals={name: value.copy() for name, value in self.residuals.items()}, **own)

    @property
    def q(self) -> np.ndarray:
        """The configuration."""
        return self.first

    @property
    def p(self) -> np.ndarray:
        """The momentum."""
        return self.second

    @property
    def y(self) -> np.ndarray:
        """The differential variables y of an ODAE or of an index-2 DAE; the configuration of a mechanical system."""
        return self.second if self.names[1] == "y" else self.first

    @property
    def z(self) -> np.ndarray:
        """The variables z: of an ODAE; the algebraic ones of an index-2 DAE; the momentum of a mechanical system."""
        return self.psi if self.names[1] == "y" else self.second

    @property
    def packed(self) -> np.ndarray:
        """All variables in one vector."""
        return np.concatenate([self.first, self.second])

    @property
    def multipliers(self) -> np.ndarray:
        """lam and psi in one vector."""
        return np.concatenate([self.lam, self.psi])

    @property
    def values(self) -> dict[str, Any]:
        """The arguments of a system's functions here; y0 and z0, the beginning of a step, are this state too."""
        blocks = {"y": self.first, "z": self.second, "y0": self.first, "z0": self.second}
        return {"t": self.t, "lam": self.lam, "psi": self.psi, **blocks}


def state_at(
    system: System,
    *,
    t0: float = 0.0,
    params: Mapping[str, Any] | None = None,
    theta: np.ndarray | None = None,
    check: bool = True,
    **initial: Any,
) -> State:
    """The state of given initial values, refused in one sentence when they are malformed or inconsistent.

    Mechanical systems take q0 with v0 or p0, ODAEs y0 and z0, index-2 DAEs y0. `lam0` and `psi0` (z0 of an index-2 DAE) are
    guesses for multipliers that enter nonlinearly: they choose the branch.
    """
    theta = system.parameters.vector(params) if theta is None else theta
    t0 = finite_number("t0", t0)
    found, start = system.checked_starts(), _values_of(initial)
    key = (t0, theta.tobytes(), *start) if check and start else None
    if (known := found.get(key)) is not None:
        return known.copy()
    given = _InitialValues(system, t0, theta, initial)
    y, z = given.position, given.momentum(given.position)
    if check:
        check_start(system, t0, y, z, theta)
    state = _at_start(system, t0, y, z, theta, given.multipliers)
    if check:
        check_domain(system, state)
    if key is not None:
        found[key] = state.copy()
        for old in list(found)[:-STARTS]:  # a copy of the keys, because other threads may be here, too
            found.pop(old, None)
    return state


def _values_of(initial: Mapping[str, Any]) -> tuple[tuple[str, bytes], ...]:
    """Initial values to be compared by, if all of them are vectors of numbers; else none."""
    values = {name: value for name, value in initial.items() if value is not None}
    if not all(isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 1 for value in values.values()):
        return ()
    return tuple((name, value.tobytes()) for name, value in sorted(values.items()))


def unpack(system: System, t: float, packed: np.ndarray, theta: np.ndarray, guess: np.ndarray | None = None) -> State:
    """The state of a stored vector, taken as it is; its multipliers are nan where none were found."""
    y, z = np.split(packed, [system.state_blocks[0][1]])
    try:
        return complete(system, t, y, z, theta, guess)
    except np.linalg.LinAlgError:
        return complete(system, t, y, z, theta, multipliers=np.full(system.n_multipliers, np.nan))


@one_at_a_time
def consistent(
    system: System,
    *,
    q0: Any = None,
    v0: Any = None,
    p0: Any = None,
    y0: Any = None,
    z0: Any = None,
    lam0: Any = None,
    psi0: Any = None,
    t0: float = 0.0,
    params: Mapping[str, Any] | None = None,
) -> State:
    """Project a guess, q0 with v0 or p0 (y0 and z0 for an ODAE), onto the constraints.

    In mechanics the projection is orthogonal in the metric of the mass matrix: q minimises (q - q0)^T M (q - q0) subject to
    g(t0, q) = 0, with M = H_pp^-1 at the guess; then p = p0 - g_q^T mu - k_v^T nu with g_t + g_q v = 0 and k = 0, which is the
    M-orthogonal projection of the velocity if k is linear in it. For an ODAE, y and z move as little as possible in the
    Euclidean norm. `lam0` and `psi0` are guesses for multipliers that enter nonlinearly: they choose the branch.

    Example:
        >>> import numpy as np, dalembert as da
        >>> pendulum = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2,
        ...                           holonomic=lambda q: [np.hypot(q[0], q[1]) - 1])
        >>> state = da.consistent(pendulum, q0=[3.0, 4.0], v0=[1.0, 0.0])
        >>> np.allclose(state.q, [0.6, 0.8]), np.allclose(state.v, [0.64, -0.48])
        (True, True)

    """
    own = getattr(system, "system", system)  # a problem of the catalogue or a mechanism serves as well
    system = own() if own is not system and callable(own) else own
    if not isinstance(system, System):
        kinds = "a da.Hamiltonian, a da.Lagrangian, a da.ODAE, a da.Mechanism or a problem of da.problems"
        raise UnsupportedSystem(f"the first argument of consistent is {kinds}; got {type(system).__name__}")
    theta = system.parameters.vector(params)
    t0 = finite_number("t0", t0)
    initial = {"q0": q0, "v0": v0, "p0": p0, "y0": y0, "z0": z0, "lam0": lam0, "psi0": psi0}
    given = _InitialValues(system, t0, theta, initial)
    y = given.position
    z = given.momentum(y)
    check_defined(system, t0, y, z, theta)
    if system.n_holonomic:
        y = project_position(system, t0, y, z, theta)
        z = given.momentum(y)
    if system.n_multipliers:
        z = project_momentum(system, t0, y, z, theta)
    return replace(_at_start(system, t0, y, z, theta, given.multipliers), keeps_velocity=v0 is not None)


def with_parameters(system: System, state: State, theta: np.ndarray) -> np.ndarray:
    """The packed values of a state for other parameters: a state that was made from a velocity keeps it."""
    if not state.keeps_velocity or np.array_equal(theta, state.theta):
        return state.packed
    assert isinstance(system, MechanicalSystem)
    if np.array_equal(system.evaluate("v", state.t, state.q, state.p, theta=theta), state.v):
        return state.packed  # what has changed is no mass
    return np.concatenate([state.q, _momentum(system, state.t, state.q, state.v, None, theta)])


def complete(
    system: System,
    t: float,
    y: np.ndarray,
    z: np.ndarray,
    theta: np.ndarray,
    guess: np.ndarray | None = None,
    multipliers: np.ndarray | None = None,
) -> State:
    """The state with velocity, residuals and multipliers, which are solved for unless they are given."""
    residuals = {"g": system.evaluate("g", t, y, theta=theta), "g_dot": system.evaluate("g_dot", t, y, z, theta=theta)}
    if system.n_nonholonomic:
        residuals["k"] = system.evaluate("k", t, y, z, theta=theta)
    v = system.evaluate("v", t, y, z, theta=theta)
    if multipliers is None:
        multipliers = system.multipliers(t, y, z, theta, guess)
    lam, psi = multipliers[: system.n_holonomic], multipliers[system.n_holonomic :]
    (first, _), (second, _) = system.state_blocks
    return State(t, y, z, v, lam, psi, system.named_residuals(residuals), theta, (first, second), system.fingerprint)


class _InitialValues:
    """What a user gave: a configuration, a momentum (or a velocity, which depends on the configuration), guesses."""

    def __init__(self, system: System, t: float, theta: np.ndarray, initial: dict[str, Any]) -> None:
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
        self.position = _vector(first, self.given[first], dim_y) if first else np.zeros(0)

    def momentum(self, y: np.ndarray) -> np.ndarray:
        if not isinstance(self.system, MechanicalSystem):
            name = self.system.starts_from[1]
            return _vector(name, self.given[name], self.dim_z)
        return _momentum(self.system, self.t, y, self.given.get("v0"), self.given.get("p0"), self.theta)

    @property
    def multipliers(self) -> np.ndarray:
        sizes = dict(zip(self.system.guesses, (self.system.n_holonomic, self.system.n_nonholonomic), strict=True))
        return np.concatenate([_vector(n, self.given.get(n, np.zeros(size)), size) for n, size in sizes.items()])


def finite_number(name: str, value: Any) -> float:
    try:
        number = float(real_array(value))
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not np.isfinite(number):
        raise InputError(f"{name} must be a finite number; got {one_line(value)}")
    return number


def _vector(name: str, value: Any, size: int) -> np.ndarray:
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


def _momentum(system: MechanicalSystem, t: float, q: np.ndarray, v0: Any, p0: Any, theta: np.ndarray) -> np.ndarray:
    if (v0 is None) == (p0 is None):
        raise InputError(
            "give either the initial velocity v0 or the initial momentum p0" + ("" if v0 is None else ", not both")
        )
    if p0 is not None:
        return _vector("p0", p0, system.dim)
    v = _vector("v0", v0, system.dim)
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


def _at_start(system: System, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray, guess: np.ndarray) -> State:
    """The state with everything that follows from it, or a sentence on the multipliers that were not found."""
    try:
        return complete(system, t, y, z, theta, guess)
    except np.linalg.LinAlgError:
        check_forces(system, complete(system, t, y, z, theta, multipliers=guess))
        raise InconsistentStart(
            f"no multipliers near the guess {short(guess)} fulfil the hidden constraints: give a better one with "
            f"{' or '.join(system.used_guesses)}="
        ) from None
