"""The sign that tells whether a step stayed on its branch: of det(hidden_z directions), taken between the ends of the step."""

from __future__ import annotations

import casadi as ca

from dalembert.compiler._elimination import diagonal_order, eliminate
from dalembert.methods import Step
from dalembert.systems import MechanicalSystem, System

TOLERATED = 1e-13
"""How far, relative to the size of the terms, a new state may be off a constraint before the step counts as unsolved."""

FAR_OFF = 1.0
"""How far, relative to positions, a state may be off constraints that a method does not keep."""

SMALLEST = 1e-28
"""A squared residual that is always tolerated: where all terms vanish, as at rest in the origin, none has a size."""


def step_orientation(step: Step, new: list[ca.SX], unknowns: dict[str, ca.SX], multipliers: dict[str, ca.SX]) -> ca.SX:
    """The sign of det(hidden_z(t0, y0, z0) directions(t1, y1, z1, lam, psi)); 0 where it is refused.

    It is refused where stages disagree, or the domain or constraints are left. Where the forces are nonlinear in the
    multipliers, every stage's multipliers must lie on the branch.
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
    if system.n_holonomic and not {"g", "g_dot"} <= set(step.ends):
        value = ca.if_else(leaves(step, new), 0, value)
    return value


def leaves(step: Step, new: list[ca.SX]) -> ca.SX:
    """Whether the new state is far off g = 0, or will be after another step: a method that does not keep them may explode."""
    system, t1, (y1, z1) = step.definition, step.time_symbol + step.h_symbol, new
    G, off = system.function("G")(t1, y1, step.theta), system.function("g")(t1, y1, step.theta)
    ahead = step.h_symbol * system.function("g_dot")(t1, y1, z1, step.theta)
    far = [off[i] ** 2 + ahead[i] ** 2 - FAR_OFF**2 * ca.sumsqr(G[i, :]) * ca.sumsqr(y1) for i in range(system.n_holonomic)]
    return ca.mmax(ca.vertcat(*far)) > 0


def misses(step: Step, new: list[ca.SX], residual: ca.SX) -> ca.SX:
    """Whether the new state is off the constraints that the step imposes on it, by far more than rounding errors explain.

    Positions are known to eps |y|, so velocities to eps |y|/h. Newton's iteration should have seen to it; this is the last
    look.
    """
    if residual.shape[0] == 0:
        return ca.SX(0)
    system, t1, (y1, z1) = step.definition, step.time_symbol + step.h_symbol, new
    G, hidden_z = system.function("G")(t1, y1, step.theta), system.function("hidden_z")(t1, y1, z1, step.theta)
    by_position, by_momentum = ca.sumsqr(y1) / step.h_symbol**2, ca.sumsqr(z1)
    # Each row in its own units; velocities that are constrained apart from positions, in those of all.
    positions = [ca.sumsqr(G[i, :]) * by_position for i in range(system.n_holonomic)]
    hidden = [ca.sumsqr(hidden_z[i, :]) * by_momentum for i in range(system.n_holonomic)]
    together = ca.sumsqr(G) * by_position + ca.sumsqr(hidden_z) * by_momentum
    scales = [scale for name in step.ends if name == "g" for scale in positions]
    for name in step.ends:
        if name == "g_dot":
            scales += [a + b for a, b in zip(positions, hidden, strict=True)]
        elif name == "k":
            scales += [together] * system.n_nonholonomic
    assert len(scales) == residual.shape[0]
    excess = ca.SX(-1)
    for k, scale in enumerate(scales):
        excess = ca.fmax(excess, residual[k] ** 2 - TOLERATED**2 * scale)
    return excess > SMALLEST


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
    return [(lam, last["psi"]) for lam in stages["lam"] or [last["lam"]]] + [(last["lam"], psi) for psi in stages["psi"][:-1]]


def _sign_of_determinant(matrix: ca.SX, system: System) -> ca.SX:
    """A number with the sign of det(matrix)."""
    n = matrix.shape[0]
    if n <= 3:
        return ca.det(ca.densify(matrix))
    if isinstance(system, MechanicalSystem):  # close to positive definite
        sign = ca.SX(1)
        for pivot in eliminate(matrix, diagonal_order(matrix))[0]:
            sign *= ca.sign(pivot)
        return sign
    # By Faddeev and LeVerrier, which needs no pivots: M_k = A M_(k-1) + c_k I, c_k = -tr(A M_(k-1)) / k
    product, coefficient = matrix, ca.SX(0)
    for k in range(1, n + 1):
        coefficient = -ca.trace(product) / k
        product = matrix @ (product + coefficient * ca.SX.eye(n))
    return coefficient * (-1) ** n
