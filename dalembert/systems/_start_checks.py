"""What initial values must fulfil, each with the sentence that refuses those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import InconsistentStart, InputError, ModelError
from dalembert.systems._dependency import check_gradients, combination_at, refuse_contradiction
from dalembert.systems._matrices import row_norms, row_sums, scaled_rows, well_conditioned
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._rank import least_singular_value, smallest_singular_value
from dalembert.systems._system import System

if TYPE_CHECKING:
    from dalembert.systems._state import State

CONSISTENCY_TOLERANCE = 1e-12
"""How far, relative to the size of the terms, given initial values may be off a constraint."""

SMALLEST_SCALE = 1e-3
"""What the size of the terms is taken for where all of them are smaller, as at rest."""


def short(array: np.ndarray) -> str:
    """An array in the length of a sentence."""
    return np.array2string(array, max_line_width=10_000, threshold=12, precision=6)


def check_defined(system: System, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray) -> None:
    """Refuse a state at which a function of the model is not finite, or the mass matrix is singular."""
    if "L_vv" in system.function_names and not well_conditioned(system.matrix("L_vv", t, y, theta=theta)):
        raise ModelError(
            f"the mass matrix L_vv is singular or not finite at the initial values q = {short(y)}: every velocity must enter "
            "the Lagrangian quadratically, as in m * v[i]**2 / 2 with m > 0"
        )
    (y_name, _), (z_name, _) = system.state_blocks
    zero = {"lam": np.zeros(system.n_holonomic), "psi": np.zeros(system.n_nonholonomic)}
    for name, label in system.described.items():
        if name == "domain" or (name[:2] in ("f", "r", "f_") and not isinstance(system, MechanicalSystem)):
            continue  # need not be defined for multipliers zero
        value = system.numbers(name, {"t": t, "y": y, "z": z, **zero}, theta)
        if not np.all(np.isfinite(value)):
            raise InputError(
                f"{label} is {'nan' if np.any(np.isnan(value)) else 'infinite'} at the initial values {y_name} = {short(y)}, "
                f"{z_name} = {short(z)}: check the model's formulas and parameters there"
            )


def check_domain(system: System, state: State) -> None:
    """Refuse a start outside of the model's domain, or where its forces are not defined."""
    if isinstance(system, MechanicalSystem):
        return
    check_forces(system, state)
    if "domain" in system.function_names:
        values = system.at("domain", state.values, state.theta)
        worst = int(np.argmin(values))
        if not np.all(values > 0):
            raise InputError(
                f"the initial values are outside of the model's domain: domain[{worst}] is {values[worst]:.3g} there, and must "
                "be positive"
            )


def check_forces(system: System, state: State) -> None:
    """Refuse a state at which the forces of an ODAE are not finite."""
    for name in ("f", "r"):
        if not np.all(np.isfinite(system.at(name, state.values, state.theta))):
            raise InputError(
                f"{name} is not finite at the initial values y = {short(state.y)}, z = {short(state.z)}, "
                f"multipliers {short(state.multipliers)}: check the model's formulas and parameters there"
            ) from None


def check_start(system: System, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray) -> None:
    """Refuse a state where the model is not defined, off the constraints, or where they are not independent."""
    check_defined(system, t, y, z, theta)
    _check_consistency(system, t, y, z, theta)
    _check_inside(system, t, y, theta)


def _check_inside(system: System, t: float, y: np.ndarray, theta: np.ndarray) -> None:
    """Refuse a state behind a wall, or on one that has no direction there."""
    if not system.n_unilateral:
        return
    phi, phi_rounding = (system.evaluate(name, t, y, theta=theta) for name in ("phi", "phi_rounding"))
    slack = CONSISTENCY_TOLERANCE * np.maximum(phi_rounding, SMALLEST_SCALE)  # a stored state may be 1e-20 behind y = 0
    worst = int(np.argmin(phi + slack))
    if phi[worst] < -slack[worst]:
        raise InconsistentStart(
            f"the initial values lie behind a wall: {system.row_called('phi', worst)} is {phi[worst]:.3g} there, and must not "
            "be negative: correct them (a run by da.MoreauJean, which passes walls by up to h v, goes on by da.resume)"
        )


def _check_consistency(system: System, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray) -> None:
    if not system.n_multipliers:
        return
    if isinstance(system, MechanicalSystem):
        check_gradients(system, t, y, z, theta)
        _check_residuals(system, t, y, z, theta)
        _check_determined(system, t, y, z, theta, _redundant_rows(system, t, y, z, theta))
    else:
        _check_independence(system, t, y, z, theta)
        _check_determined(system, t, y, z, theta, 0)
        _check_residuals(system, t, y, z, theta)


def _redundant_rows(system: MechanicalSystem, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray) -> int:
    """How many constraints follow from others, here and nearby; those that only seem to are refused."""
    found = combination_at(system, t, y, z, theta)
    return 0 if found is None else found[0].redundant


def _check_independence(system: System, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray) -> None:
    (y_name, _), (z_name, _) = system.state_blocks
    for matrix, label, symbol in (
        (system.matrix("G", t, y, theta=theta), f"{system.n_holonomic} holonomic constraints", f"g_{y_name}"),
        (
            system.matrix("hidden_z", t, y, z, theta=theta),
            f"{system.n_multipliers} constraints",
            f"(g_{y_name} v_{z_name}, k_{z_name})",
        ),
    ):
        least = smallest_singular_value(matrix)
        if least < 1e-10:
            raise InconsistentStart(
                f"the {label} are not independent at {y_name}0 (the smallest singular value of {symbol} is {least:.1e}): "
                "remove the redundant ones or start elsewhere"
            )


NEARLY_DEPENDENT = 1e-4
"""The smallest singular value of normalised rows below which these explain why multipliers are not determined."""


def _check_determined(system: System, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray, redundant: int) -> None:
    """Refuse a state in which the equations of the multipliers have another rank than the constraints."""
    if not system.linear_in_multipliers:
        return
    matrix = system.matrix("multiplier_matrix", t, y, z, theta=theta)
    if system.redundant_rows(t, y, z, theta) == redundant and (redundant or well_conditioned(matrix)):
        return
    rows = system.matrix("hidden_z", t, y, z, theta=theta)
    least = least_singular_value(scaled_rows(rows, 1 / np.maximum(row_norms(rows), 1e-300)))
    if least < NEARLY_DEPENDENT and not redundant:
        raise InconsistentStart(
            f"the multipliers are not determined at the initial values, because constraints are nearly dependent there (the "
            f"smallest singular value of their derivatives, rows normalised, is {least:.1e}): start elsewhere, or remove the "
            "constraint that follows from others"
        )
    reason = (
        "g_q H_pp g_q^T is singular there: H_pp must be regular, so every momentum that a constraint acts on must enter "
        "the Hamiltonian quadratically"
        if isinstance(system, MechanicalSystem)
        else "forces must act on what the constraints restrict"
    )
    raise InconsistentStart(f"the multipliers are not determined at the initial values, because {reason}")


def _check_residuals(system: System, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray) -> None:
    mechanical, (y_name, _) = isinstance(system, MechanicalSystem), system.state_blocks[0]
    G, v = system.matrix("G", t, y, theta=theta), system.evaluate("v", t, y, z, theta=theta)
    hidden_z = system.matrix("hidden_z", t, y, z, theta=theta)
    g_t = system.evaluate("g_dot", t, y, z, theta=theta) - G @ v
    slopes = row_sums(G)
    position_scale = np.maximum(slopes * np.max(np.abs(y), initial=0.0) + np.abs(g_t * t), SMALLEST_SCALE)
    velocity_scale = np.maximum(slopes * np.max(np.abs(v), initial=0.0) + np.abs(g_t), SMALLEST_SCALE)
    k_scale = np.maximum(row_sums(hidden_z)[system.n_holonomic :] * np.max(np.abs(z)), SMALLEST_SCALE)
    for name, label, arguments, scale in (
        ("g", "holonomic constraint g", (t, y), position_scale),
        ("g_dot", f"hidden constraint (g_t + g_{y_name} v)", (t, y, z), velocity_scale),
        ("k", "constraint g" if y_name == "" else "nonholonomic constraint k", (t, y, z), k_scale),
    ):
        residual = system.evaluate(name, *arguments, theta=theta)
        if not len(residual):
            continue
        worst = int(np.argmax(np.abs(residual) / scale))
        if abs(residual[worst]) > CONSISTENCY_TOLERANCE * scale[worst]:
            if name == "g" and isinstance(system, MechanicalSystem):
                refuse_contradiction(system, t, y, theta, CONSISTENCY_TOLERANCE * scale)
            values = "q0=..., v0=..." if mechanical else ", ".join(f"{name}=..." for name in system.starts_from if name)
            row = _named_row(system, name, label, worst)
            raise InconsistentStart(
                f"the initial values violate the {row} by {residual[worst]:.3g}: correct them, or project them with "
                f"start=da.consistent(system, {values})"
            )


def _named_row(system: System, name: str, label: str, row: int) -> str:
    """What a constraint is called: by the part of a mechanism that states it, or by its number."""
    names = system.row_names.get("g" if name == "g_dot" else name, ())
    return f"{label}[{row}], that of {names[row]!r}," if names else f"{label}[{row}]"
