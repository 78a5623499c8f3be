"""States on the constraint manifold: checking them, and projecting a guess onto it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.errors import InconsistentStart, InputError, ModelError
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._model import one_line
from dalembert.systems._projection import project_momentum, project_position, well_conditioned

CONSISTENCY_TOLERANCE = 1e-12
"""How far, relative to the size of the terms, given initial values may be off a constraint."""

SMALLEST_SCALE = 1e-3
"""What the size of the terms is taken for where all of them are smaller, as at rest."""


@dataclass(frozen=True, eq=False)
class State:
    """A state of a mechanical system with everything that follows from it."""

    t: float
    q: np.ndarray
    v: np.ndarray
    p: np.ndarray
    lam: np.ndarray
    residuals: dict[str, np.ndarray]
    theta: np.ndarray
    fingerprint: str = ""
    """Of the model to which the state belongs."""


def state_at(
    system: MechanicalSystem,
    q0: Any,
    v0: Any = None,
    p0: Any = None,
    *,
    t0: float = 0.0,
    params: Mapping[str, Any] | None = None,
    theta: np.ndarray | None = None,
    check: bool = True,
) -> State:
    """The state of given initial values, refused in one sentence when they are malformed or inconsistent."""
    theta = system.parameters.vector(params) if theta is None else theta
    t0 = finite_number("t0", t0)
    q = _vector(system, "q0", q0)
    p = _momentum(system, t0, q, v0, p0, theta)
    if check:
        _check_model(system, t0, q, p, theta)
        _check_consistency(system, t0, q, p, theta)
    return _complete(system, t0, q, p, theta)


def consistent(
    system: MechanicalSystem,
    *,
    q0: Any,
    v0: Any = None,
    p0: Any = None,
    t0: float = 0.0,
    params: Mapping[str, Any] | None = None,
) -> State:
    """Project a guess onto the constraints, orthogonally in the metric of the mass matrix.

    q minimises (q - q0)^T M (q - q0) subject to g(t0, q) = 0, with M = H_pp^-1 at the guess; then p = p0 - g_q^T mu with
    g_t + g_q v = 0, which is the M-orthogonal projection of the velocity.

    Example:
        >>> import numpy as np, dalembert as da
        >>> pendulum = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2,
        ...                           holonomic=lambda q: [np.hypot(q[0], q[1]) - 1])
        >>> state = da.consistent(pendulum, q0=[3.0, 4.0], v0=[1.0, 0.0])
        >>> np.allclose(state.q, [0.6, 0.8]), np.allclose(state.v, [0.64, -0.48])
        (True, True)

    """
    system = getattr(system, "system", system)  # a problem of the catalogue serves as well
    theta = system.parameters.vector(params)
    t0 = finite_number("t0", t0)
    guess = _vector(system, "q0", q0)
    p = _momentum(system, t0, guess, v0, p0, theta)
    _check_model(system, t0, guess, p, theta)
    q = guess
    if system.n_holonomic:
        q = project_position(system, t0, guess, p, theta)
        p = project_momentum(system, t0, q, _momentum(system, t0, q, v0, p0, theta), theta)
    return _complete(system, t0, q, p, theta)


def _complete(system: MechanicalSystem, t: float, q: np.ndarray, p: np.ndarray, theta: np.ndarray) -> State:
    residuals = {"g": system.evaluate("g", t, q, theta=theta), "g_dot": system.evaluate("g_dot", t, q, p, theta=theta)}
    v, lam = system.evaluate("H_p", t, q, p, theta=theta), system.multipliers(t, q, p, theta)
    return State(t, q, v, p, lam, residuals, theta, system.fingerprint)


def finite_number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise InputError(f"{name} must be a finite number; got {one_line(value)}")
    return number


def _vector(system: MechanicalSystem, name: str, value: Any) -> np.ndarray:
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be {system.dim} numbers; got {one_line(value)}") from None
    if array.shape != (system.dim,):
        raise InputError(f"{name} must have shape ({system.dim},), one number for each coordinate; got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise InputError(f"{name} must be finite; got {short(array)}")
    return array


def short(array: np.ndarray) -> str:
    return np.array2string(array, max_line_width=10_000, threshold=12, precision=6)


def _momentum(system: MechanicalSystem, t: float, q: np.ndarray, v0: Any, p0: Any, theta: np.ndarray) -> np.ndarray:
    if (v0 is None) == (p0 is None):
        raise InputError(
            "give either the initial velocity v0 or the initial momentum p0" + ("" if v0 is None else ", not both")
        )
    if p0 is not None:
        return _vector(system, "p0", p0)
    v = _vector(system, "v0", v0)
    if "L_v" in system.function_names:
        return system.evaluate("L_v", t, q, v, theta=theta)
    p, previous = np.zeros(system.dim), np.inf
    for _ in range(100):  # Newton for H_p(q, p) = v; one step when H is quadratic in p
        residual = system.evaluate("H_p", t, q, p, theta=theta) - v
        H_pp = system.evaluate("H_pp", t, q, p, theta=theta)
        if not well_conditioned(H_pp):
            raise InputError("the Hamiltonian cannot be inverted for p(v) because H_pp is singular here: give p0 instead of v0")
        step = np.linalg.solve(H_pp, residual)
        p = p - step
        size = np.max(np.abs(step))
        if size <= 1e-15 * np.max(np.abs(p)) or (size <= 1e-6 * np.max(np.abs(p)) and size >= previous / 2):
            return p
        previous = size
    raise InputError("no momentum p with H_p(q0, p) = v0 was found: give p0 instead of v0")


def _check_model(system: MechanicalSystem, t: float, q: np.ndarray, p: np.ndarray, theta: np.ndarray) -> None:
    if "L_vv" in system.function_names and not well_conditioned(system.evaluate("L_vv", t, q, theta=theta)):
        raise ModelError(
            f"the mass matrix L_vv is singular or not finite at the initial values q = {short(q)}: every velocity must enter "
            "the Lagrangian quadratically, as in m * v[i]**2 / 2 with m > 0"
        )
    described = {
        "H": "the Hamiltonian" if system.kind.startswith("Ham") else "the Lagrangian's energy",
        "H_p": "the velocity H_p",
        "H_q": "the derivative H_q",
        "force": "force",
        "g": "holonomic",
        "G": "the derivative of holonomic",
    }
    for name, label in described.items():
        arguments = (t, q) if name in ("g", "G") else (t, q, p)
        value = system.evaluate(name, *arguments, theta=theta)
        if not np.all(np.isfinite(value)):
            raise InputError(
                f"{label} is {'nan' if np.any(np.isnan(value)) else 'infinite'} at the initial values q = {short(q)}, "
                f"p = {short(p)}: "
                "check the model's formulas and parameters there"
            )


def _check_consistency(system: MechanicalSystem, t: float, q: np.ndarray, p: np.ndarray, theta: np.ndarray) -> None:
    if not system.n_holonomic:
        return
    G = system.evaluate("G", t, q, theta=theta)
    singular_values = np.linalg.svd(G / np.maximum(np.linalg.norm(G, axis=1, keepdims=True), 1e-300), compute_uv=False)
    if singular_values[-1] < 1e-10:
        raise InconsistentStart(
            f"the {system.n_holonomic} holonomic constraints are not independent at q0 (the smallest singular value of g_q is "
            f"{singular_values[-1]:.1e}): remove the redundant ones or start elsewhere"
        )
    if not well_conditioned(system.evaluate("multiplier_matrix", t, q, p, theta=theta)):
        raise InconsistentStart(
            "the multipliers are not determined at the initial values, because g_q H_pp g_q^T is singular there: H_pp must be "
            "regular, so every momentum that a constraint acts on must enter the Hamiltonian quadratically"
        )
    v = system.evaluate("H_p", t, q, p, theta=theta)
    g_t = system.evaluate("g_dot", t, q, p, theta=theta) - G @ v
    slopes = np.sum(np.abs(G), axis=1)
    position_scale = np.maximum(slopes * np.max(np.abs(q)) + np.abs(g_t * t), SMALLEST_SCALE)
    velocity_scale = np.maximum(slopes * np.max(np.abs(v)) + np.abs(g_t), SMALLEST_SCALE)
    for name, label, arguments, scale in (
        ("g", "holonomic constraint g", (t, q), position_scale),
        ("g_dot", "hidden constraint g_t + g_q v", (t, q, p), velocity_scale),
    ):
        residual = system.evaluate(name, *arguments, theta=theta)
        worst = int(np.argmax(np.abs(residual) / scale))
        if abs(residual[worst]) > CONSISTENCY_TOLERANCE * scale[worst]:
            raise InconsistentStart(
                f"the initial values violate the {label}[{worst}] by {residual[worst]:.3g}: correct them, or project them with "
                "start=da.consistent(system, q0=..., v0=...)"
            )
