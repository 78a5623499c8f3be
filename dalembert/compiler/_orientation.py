"""The sign that tells whether a step stayed on its branch: of det(hidden_z directions), taken between the ends of the step."""

from __future__ import annotations

import casadi as ca
import numpy as np

from dalembert.compiler._elimination import PivotOrder, choose_pivots, diagonal_order, eliminate
from dalembert.methods import Step
from dalembert.systems import MechanicalSystem, System


def step_orientation(step: Step, new: list[ca.SX], unknowns: dict[str, ca.SX], multipliers: dict[str, ca.SX]) -> ca.SX:
    """The sign of det(hidden_z(t0, y0, z0) directions(t1, y1, z1, lam, psi)); 0 if stages disagree or the domain is left.

    Where the forces are nonlinear in the multipliers, every stage's multipliers must lie on the branch.
    """
    system, theta, h = step.definition, step.theta, step.h_symbol
    if system.n_multipliers == 0:
        value = ca.SX(1)
    else:
        t1, (y1, z1) = step.time_symbol + h, new
        hidden_z = ca.sparsify(system.function("hidden_z")(step.time_symbol, *step.state.values(), theta))
        values = []
        for lam, psi in _stage_multipliers(step, unknowns):
            directions = ca.sparsify(system.function("directions")(t1, y1, z1, lam, psi, theta))
            values.append(_sign_of_determinant(hidden_z @ directions, system))
        value = values[0]
        for other in values[1:]:
            value = ca.if_else(value * other > 0, value, 0)
    if "domain" in system.function_names:
        arguments = (step.time_symbol + h, *new, multipliers["lam"], multipliers["psi"], *step.state.values(), theta)
        inside = ca.mmin(ca.densify(system.function("domain")(*arguments)))
        value = ca.if_else(inside > 0, value, 0)
    return value


def _stage_multipliers(step: Step, unknowns: dict[str, ca.SX]) -> list[tuple[ca.SX, ca.SX]]:
    """The multipliers at which to look: of every stage where forces are nonlinear in them, else any."""
    system, sizes = step.definition, {"lam": step.definition.n_holonomic, "psi": step.definition.n_nonholonomic}
    none = {name: ca.SX.zeros(size, 1) for name, size in sizes.items()}
    if system.linear_in_multipliers:
        return [(none["lam"], none["psi"])]
    stages: dict[str, list[ca.SX]] = {"lam": [], "psi": []}
    for block in step.unknowns:
        if block.kind == "impulse" and block.size:
            columns = ca.reshape(unknowns[block.name], block.size, len(block.nodes))
            stages[block.of] += [column / step.h_symbol for column in ca.horzsplit(columns)]
    last = {name: stages[name][-1] if stages[name] else none[name] for name in stages}
    pairs = [(lam, last["psi"]) for lam in stages["lam"]] + [(last["lam"], psi) for psi in stages["psi"][:-1]]
    return pairs or [(last["lam"], last["psi"])]


def _sign_of_determinant(matrix: ca.SX, system: System) -> ca.SX:
    """A number with the sign of det(matrix)."""
    n = matrix.shape[0]
    if n <= 3:
        return ca.det(ca.densify(matrix))
    # In mechanics the matrix is close to positive definite.
    order = diagonal_order(matrix) if isinstance(system, MechanicalSystem) else _any_order(matrix)
    sign = ca.SX(_parity(order.rows) * _parity(order.columns))
    for pivot in eliminate(matrix, order)[0]:
        sign *= ca.sign(pivot)
    return sign


def _any_order(matrix: ca.SX) -> PivotOrder:
    rows, columns = (np.array(a, dtype=int) for a in matrix.sparsity().get_triplet())
    return choose_pivots(rows, columns, np.random.default_rng(1788).uniform(0.5, 1.0, (len(rows), 3)), matrix.shape[0])


def _parity(permutation: tuple[int, ...]) -> int:
    return round(np.linalg.det(np.eye(len(permutation))[list(permutation)]))
