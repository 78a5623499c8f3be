"""Coulomb friction at unilateral constraints: its coefficients, and the velocity with which a contact slides.

A wall phi(t, q) >= 0 tells where contact is, not which material points touch: a wheel may roll on it or slide. So the sliding
velocity is stated, `slip`, linear in v; its directions slip_v^T are those of the friction impulses. Only a point mass
needs no statement: it slides along the tangents of the wall.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import InputError, ModelError
from dalembert.symbolic import as_column, from_column
from dalembert.systems._model import Parameters, call_model, one_line, vector_expression

if TYPE_CHECKING:
    from dalembert.systems._states import States


LEAST_FORCE = 1e-30
"""Laws of friction may have no value, or no slope, at N = 0: they are asked for no smaller normal force than this."""


def coefficients(friction: Any, normal: ca.SX, visible: Mapping[str, Any], parameters: Parameters) -> ca.SX:
    """mu of each unilateral constraint, of (t, q) and of its own normal force N, the rows of `normal`."""
    count = normal.shape[0]
    if callable(friction):
        forces = from_column(ca.fmax(ca.fabs(normal), LEAST_FORCE))
        values = [
            vector_expression("friction", call_model("friction", friction, {**visible, "N": N}, parameters)) for N in forces
        ]
        size = values[0].shape[0]
        if size not in (1, count):
            raise ModelError(f"friction must return one coefficient, or {count}, one for each wall; got {size}")
        return ca.vertcat(*(value[k if size > 1 else 0] for k, value in enumerate(values)))
    try:
        numbers = np.broadcast_to(np.ravel(np.array(friction, dtype=float)), count)
    except (TypeError, ValueError, OverflowError):
        numbers = np.full(count, np.nan)
    if not np.all((numbers >= 0) & np.isfinite(numbers)):
        raise ModelError(
            f"friction is a coefficient >= 0, {count} of them, one for each wall, or a function of t, q, N and parameters; got "
            f"{one_line(friction)}"
        )
    return ca.SX(ca.DM(numbers))


ITERATIONS = 8
"""Of Newton's method for forces of friction whose coefficients depend on normal forces, from no friction on."""


def coulomb_forces(law: ca.SX, own: ca.SX, N: ca.SX, T: ca.SX) -> ca.SX:
    """The forces T of contacts that slide, with T_i = law_i(N_i), where `law` is of the symbols `own`, and N is affine in T."""
    without, coupling = ca.substitute(N, T, ca.SX.zeros(*T.shape)), ca.jacobian(N, T)
    slope, found = ca.jacobian(law, own), ca.SX.zeros(*T.shape)
    for _ in range(ITERATIONS):
        pressing = without + coupling @ found
        residual, rate = (ca.substitute(part, own, pressing) for part in (law, slope))
        found -= ca.solve(ca.densify(ca.SX.eye(T.shape[0]) - rate @ coupling), found - residual)
    return found


def check_coefficients(states: States) -> None:
    """Refuse parameters that give coefficients which no wall has; those that change with t or q are checked in contact."""
    if not getattr(states.system, "constant_friction", False):
        return
    rows = states.evaluate("friction")
    wrong = np.argwhere(~((rows >= 0) & np.isfinite(rows)))
    if len(wrong):
        member, wall = wrong[0]
        whose = f" of member {member}" if len(states) > 1 else ""
        said = f"the coefficient of friction of unilateral[{wall}]{whose} is {rows[member, wall]:.6g}"
        raise InputError(f"{said}: it must be >= 0 and finite; change the parameters that state it")


def sliding(slip: Callable, mu: ca.SX, moving: Mapping[str, Any], v: ca.SX, parameters: Parameters) -> ca.SX:
    """The sliding velocity of each contact as stated, of (t, q, v): one component each in the plane, two in space.

    A third one is a radius times the velocity of spin: friction of a patch of contact, which opposes slip and spin together.
    """
    count = mu.shape[0]
    given = call_model("slip", slip, moving, parameters)
    flat = [x for row in given for x in row] if any(np.ndim(row) for row in np.atleast_1d(given)) else given
    value = vector_expression("slip", flat)
    if value.shape[0] not in (count, 2 * count, 3 * count):
        raise ModelError(
            f"slip must return the sliding velocity of each of {count} contacts, one component each in the plane or two in "
            f"space, or three with that of spin; got {value.shape[0]} numbers"
        )
    slope = ca.jacobian(value, v)
    if ca.depends_on(slope, v):
        raise ModelError("slip must be linear in v, as velocities of points of bodies are")
    each = value.shape[0] // count
    for k in range(value.shape[0]):
        if not slope[each * (k // each) : each * (k // each + 1), :].nnz() and not mu[k // each].is_zero():
            raise ModelError(f"slip[{k}] does not depend on v: it is the velocity with which contact slides")
    return value


def point_tangents(phi_q: ca.SX, phi_t: ca.SX, H_pp: ca.SX, v: ca.SX) -> ca.SX:
    """The sliding velocity of a point mass, whose coordinates are those of a plane or of space, on walls at rest."""
    n = v.shape[0]
    alike = H_pp.sparsity().is_diag() and H_pp.nnz() == n and all(ca.is_equal(H_pp[0, 0], H_pp[i, i], 9) for i in range(n))
    if n not in (2, 3) or not alike or phi_t.nnz():
        raise ModelError(
            "friction needs slip=lambda q, v: ..., the velocity with which each contact slides (one component in a plane, two "
            "in space, linear in v): it follows from the walls only for a point mass in 2 or 3 Cartesian coordinates and walls "
            "at rest"
        )
    rows = [phi_q[k, :].T for k in range(phi_q.shape[0])]
    return ca.vertcat(*(tangents(row / ca.norm_2(row)).T @ v for row in map(ca.densify, rows)))


def tangents(n: ca.SX) -> ca.SX:
    """Unit vectors perpendicular to a unit vector, as columns: one in the plane, two in space."""
    if n.shape[0] == 2:
        return ca.vertcat(n[1], -n[0])
    return ca.horzcat(*(as_column(list(vector)) for vector in across(tuple(from_column(n)))))


def across(n: Sequence[Any]) -> tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]:
    """Two unit vectors perpendicular to a unit vector in space: T. Duff et al., J. Comput. Graph. Tech. 6 (2017) 1."""
    sign = np.where(n[2] < 0, -1.0, 1.0)
    a = -1 / (sign + n[2])
    b = n[0] * n[1] * a
    return (1 + sign * n[0] ** 2 * a, sign * b, -sign * n[0]), (b, sign + n[1] ** 2 * a, -n[1])
