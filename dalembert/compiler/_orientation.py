"""The sign that tells whether a step stayed on its branch: of det(hidden_z directions), taken between the ends of the step."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.compiler._elimination import SINGULAR, is_symmetric, reciprocal_pivots, sign_of_pivots
from dalembert.compiler._independence import independent_still
from dalembert.compiler._last_block import LastBlock
from dalembert.compiler._metric import NOTHING, Metric, all_rows
from dalembert.compiler._stopping import STALE
from dalembert.compiler._tape import CHOICES, read_tape
from dalembert.methods import Step
from dalembert.systems import MechanicalSystem, System
from dalembert.systems._matrices import Matrix, diagonal_pivots

HELD = 1e-2**2
"""The squared part of all positions by which a row is measured whose own coordinates vanish: about one rounding error."""

FAR_OFF = 0.3
"""How far, relative to positions, a state may be off constraints that a method does not keep."""

LONG = 24
"""Of so many terms rounding errors stay below those that `_metric.ROUND_OFF` allows for."""

EVERYWHERE = (
    ca.OP_CONST, ca.OP_INPUT, ca.OP_ADD, ca.OP_SUB, ca.OP_MUL, ca.OP_SQ, ca.OP_TWICE, ca.OP_NEG, ca.OP_SIN, ca.OP_COS,
    ca.OP_TANH, ca.OP_ATAN, ca.OP_ATAN2, ca.OP_ERF, ca.OP_FABS, ca.OP_HYPOT, *CHOICES,
)  # fmt: skip
"""Operations whose results are finite for all finite operands, unless they overflow."""


@dataclass(frozen=True, eq=False)
class Turn:
    """A symbol that stands for a number with the sign of a determinant, until it is known how that is computed."""

    symbol: ca.SX
    matrix: ca.SX

    def sign(self) -> ca.SX:
        """The number, by elimination in straight-line code; in mechanics the matrix is close to positive definite."""
        return sign_of_pivots(self.matrix, reciprocal_pivots(self.matrix))

    def value(self, matrix: Matrix) -> float:
        """The same of a matrix of numbers."""
        pivots = diagonal_pivots(matrix)
        if pivots is None:
            return 0.0
        worst = np.max(np.abs(matrix.diagonal() / pivots))
        return float(np.prod(np.sign(pivots))) if worst < 1 / SINGULAR else 0.0


def step_orientation(
    step: Step, new: list[ca.SX], unknowns: dict[str, ca.SX], multipliers: dict[str, ca.SX]
) -> tuple[ca.SX, Turn | None]:
    """The sign of det(hidden_z(t0, y0, z0) directions(t1, y1, z1, lam, psi)); 0 where it is refused.

    It is refused where stages disagree, or the domain or constraints are left. It is next to nothing where combinations of
    redundant rows of g serve only if they were chosen for this step: beside a singular position none are better. Where the
    forces are nonlinear in the multipliers, every stage's multipliers must lie on the branch. A large matrix is left to those
    who compile the result.
    """
    turn = None
    system, theta, h = step.definition, step.theta, step.h_symbol
    if system.n_multipliers == 0:
        value = ca.SX(1)
    else:
        t1, (y1, z1) = step.time_symbol + h, new
        hidden_z = ca.sparsify(system.function("hidden_z")(step.time_symbol, *step.state.values(), theta))
        values = []
        for lam, psi in _stage_multipliers(step, unknowns):
            directions = ca.sparsify(system.function("directions")(t1, y1, z1, lam, psi, theta))
            matrix = hidden_z @ directions
            if _is_left_to_others(matrix, system):
                turn = Turn(ca.SX.sym("turn"), matrix)
            values.append(_sign_of_determinant(matrix, system) if turn is None else turn.symbol)
        value = values[0]
        if system.combines is not None:
            at_end = ca.sparsify(system.function("hidden_z")(t1, y1, z1, theta)) @ directions
            if_not = STALE if system.linear_in_multipliers and not system.combines[1].nonholonomic else 0
            value = ca.sign(value) * ca.if_else(independent_still((matrix, at_end), system, theta), 1, if_not)
        for other in values[1:]:
            value = ca.if_else(value * other > 0, value, 0)
    if "domain" in system.function_names:
        arguments = (step.time_symbol + h, *new, multipliers["lam"], multipliers["psi"], *step.state.values(), theta)
        inside = ca.mmin(ca.densify(system.function("domain")(*arguments)))
        value = ca.if_else(inside > 0, value, 0)
    if system.n_holonomic and not {"g", "g_dot"} <= set(step.ends):
        value = ca.if_else(leaves(step, new), 0, value)
    return value, turn


def energy_at_end(step: Step, new: list[ca.SX]) -> ca.SX:
    """H at the end, or v where there is no energy: not a finite number outside the domain of the model.

    Derivatives may be finite there, too. Zero where no operation has an end to its domain, as in polynomials.
    """
    system = step.definition
    function = system.function("H" if "H" in system.function_names else "v")
    symbols = [ca.SX.sym("s", part.shape[0]) for part in (step.time_symbol, *new, step.theta)]
    if is_defined_everywhere(ca.densify(function(*symbols)), ca.vertcat(*symbols[:-1]), symbols[-1]):
        return ca.SX(0)
    return ca.sum1(function(step.time_symbol + step.h_symbol, *new, step.theta))


def is_defined_everywhere(column: ca.SX, variables: ca.SX, parameters: ca.SX) -> bool:
    """Whether a function of `variables` is finite for all their values, but for overflow: only parameters may be divisors."""
    from dalembert.compiler._passes import mark_dependent

    tape = read_tape(ca.Function("column", [ca.vertcat(variables, parameters)], [column]))
    varies = (tape.inputs >= 0) & (tape.inputs < variables.shape[0])
    mark_dependent(tape.operands, varies)
    second = tape.operands[:, 1]
    exponents = np.where(tape.code[second] == ca.OP_CONST, tape.constants[second], np.nan)
    powers = np.isin(tape.code, (ca.OP_POW, ca.OP_CONSTPOW)) & (exponents >= 0) & (exponents == np.floor(exponents))
    quotients = (tape.code == ca.OP_DIV) & ~varies[second]
    return bool(np.all((np.isin(tape.code, EVERYWHERE) | powers | quotients)[varies]))


def unseen_increments(step: Step, increment: ca.SX) -> ca.SX:
    """The increments that may not be finite numbers though all constraints at the end of the step are such."""
    system, seen = all_rows(step.definition), np.zeros(increment.shape[0], dtype=bool)
    (_, n_y), _ = system.state_blocks
    for name in step.ends:
        function, arguments = system.function(name), system.arguments(name)
        symbols = [ca.SX.sym("s", function.size1_in(k)) for k in range(function.n_in())]
        tape = read_tape(ca.Function("condition", [ca.vertcat(*symbols)], [function(*symbols)]))
        for argument, first in (("y", 0), ("z", n_y)):
            if argument in arguments and not np.any(np.isin(tape.code, CHOICES)):
                columns = function.jac_sparsity(0, arguments.index(argument)).get_triplet()[1]
                seen[first + np.array(columns, dtype=int)] = True
    return increment[np.flatnonzero(~seen).tolist()]


def leaves(step: Step, new: list[ca.SX]) -> ca.SX:
    """Whether the new state is far off g = 0, or will be after another step: a method that does not keep them may explode."""
    system, t1, (y1, z1) = step.definition, step.time_symbol + step.h_symbol, new
    G, off = ca.sparsify(system.function("G")(t1, y1, step.theta)), system.function("g")(t1, y1, step.theta)
    ahead = step.h_symbol * system.function("g_dot")(t1, y1, z1, step.theta)
    return ca.mmax(off**2 + ahead**2 - FAR_OFF**2 * ca.sum2(G * G) * ca.sumsqr(y1)) > 0


def misses(step: Step, new: list[ca.SX], residual: ca.SX, unknowns: dict[str, ca.SX], metric: Metric, iterated: bool) -> ca.SX:
    """Whether the new state is off the constraints that the step imposes on it, by far more than rounding errors explain.

    Positions are known to eps y, so velocities to eps y/h; momenta to eps z and to eps times the impulses that act on them.
    Their energies, times the square of the gradient of a constraint in the metric of the masses, are in the units of that
    constraint, and so are the terms that it adds up. For positions this is too much where a light body hangs on a heavy
    one, and the plain length of those that a row depends on too much where they have different units: the smaller one counts.
    Conditions on velocities that are `iterated` with the stages hold to what rounding leaves in velocities, as far as a body
    has come: with factors that are old they converge several times more slowly than the increments, which stop the iteration.
    Newton's iteration should have seen to it; this is the last look.
    """
    if residual.shape[0] == 0:
        return ca.SX(0)
    system, t1, (y1, z1), h = all_rows(step.definition), step.time_symbol + step.h_symbol, new, step.h_symbol
    theta, n, names = step.theta[: system.parameters.size], system.n_holonomic, _end_names(step)
    if system is not step.definition:  # all rows must hold, not only their combinations
        rows = _end_rows(step, new)
        residual = ca.vertcat(*(rows[name] / (h if name == "g" else 1) for name in names))
    G = ca.sparsify(system.function("G")(t1, y1, theta))
    y1 = y1 * ca.DM(np.bincount(G.sparsity().get_triplet()[1], minlength=y1.shape[0]) > 0)
    positions = ca.dot(metric.mass, y1**2) / h**2 if step.constrains_positions else ca.SX(0)
    motion, impulses = ca.dot(metric.mobility, z1**2), ca.SX(0)
    for block in step.unknowns:
        if block.kind == "impulse" and block.size:
            columns = ca.reshape(unknowns[block.name], block.size, len(block.nodes))
            impulses += ca.dot(metric.impulses[block.of], ca.sum2(columns**2))
    G_squared = (G * G) @ metric.inverse_mass
    within = ca.DM(G.sparsity(), 1.0) @ y1**2 / h**2  # of the coordinates that a row depends on
    # A coordinate that is held at zero keeps what rounding left in it at the start.
    at_positions = ca.fmin(G_squared * positions, ca.sum2(G * G) * within) + HELD * G_squared * positions
    terms_of_g, terms_of_k = ca.vertsplit(metric.terms, [0, n, metric.terms.shape[0]])
    one_rounding = HELD * ca.fmin(G_squared * positions, ca.sum2(G * G) * ca.sumsqr(y1) / h**2)
    at_velocities = one_rounding if iterated else at_positions
    scales = []
    for name in names:
        if name == "k":
            k_z = ca.sparsify(system.function("hidden_z")(t1, *new, theta))[n:, :]
            carried = (HELD if iterated else 1) * positions
            scales.append((k_z * k_z) @ metric.inertia * (motion + impulses + carried) + terms_of_k**2)
            continue
        if name == "g_dot":
            scales.append(at_velocities + G_squared * (motion + impulses) + (0 if iterated else 1) * (terms_of_g / h) ** 2)
        else:  # impulses that cancel each other beside a singular position are large, but positions do not feel them
            at_rest = HELD if system.may_rest else 0  # what rounding leaves of forces that hold a body at rest
            scales.append(at_positions + G_squared * (motion + at_rest * impulses) + (terms_of_g / h) ** 2)
    return ca.mmax(residual**2 - metric.tolerated * ca.vertcat(*scales)) > 0


def glances(
    step: Step, new: list[ca.SX], sign: ca.SX, unseen: ca.SX, metric: Metric, last: LastBlock
) -> tuple[ca.SX, ca.SX | None]:
    """Numbers with the sign of the orientation only where the new state is on its constraints and all results are finite.

    The squares of what is left of all constraints, in rounding errors of the terms that these add up, have a sum below 1: so
    they hold in the eyes of `misses`, too, which allows for more. `unseen` are results that no constraint contains.

    The second number does not wait for the momenta at the end, which are known last of all. It serves where Gauss elimination
    finds the matrix of the last unknowns definite: then it needs no other pivots and leaves no more than rounding errors of
    constraints on velocities (Higham, Accuracy and Stability of Numerical Algorithms, theorem 10.4), and their right-hand sides
    show what is not finite. There is none for matrices that are not symmetric, and where these errors add up in long rows.
    """
    system, rows, h = all_rows(step.definition), _end_rows(step, new), step.h_symbol
    per_g, per_k = ca.vertsplit(metric.per_rounding, [0, system.n_holonomic, metric.per_rounding.shape[0]])
    units = {"g": per_g, "g_dot": h**2 * per_g, "k": per_k}
    errors = {name: ca.dot(units[name], rows[name] ** 2) for name in _end_names(step)}
    on_positions, on_velocities = errors.pop("g", ca.SX(0)), sum(errors.values(), ca.SX(0))
    finite = NOTHING * unseen
    complete = sign * ca.fmax(1 - (on_positions + on_velocities) - finite, 0)
    terms = np.bincount(system.function("hidden_z").sparsity_out(0).row(), minlength=last.y.shape[0])
    if system is not step.definition or max(len(terms), *terms) > LONG or not is_symmetric(last.matrix):
        return complete, None
    return complete, sign * ca.fmax(1 - on_positions - finite - NOTHING * ca.sumsqr(last.rhs), 0)


def is_definite(reciprocals: list[ca.SX]) -> ca.SX:
    """A number that is positive only if all pivots of a symmetric matrix have one sign, given their reciprocals.

    It is a product of ratios: of the pivots themselves it would depend on units, and vanish for twenty heavy bodies. A first
    pivot of zero makes them infinite.
    """
    positive = ca.fmax(1 - NOTHING * reciprocals[0] ** 2, 0)
    for other in reciprocals[1:]:
        positive *= ca.fmax(reciprocals[0] * (1 / other), 0)
    return positive


def _end_names(step: Step) -> list[str]:
    """The constraints that a step imposes on its new state, in the order of its residual."""
    return sorted(step.ends, key=lambda name: name != "g")


def _end_rows(step: Step, new: list[ca.SX]) -> dict[str, ca.SX]:
    """All rows of the constraints at the end of a step, by name."""
    system, t1, (y1, z1) = all_rows(step.definition), step.time_symbol + step.h_symbol, new
    theta = step.theta[: system.parameters.size]
    rows = {"g": system.function("g")(t1, y1, theta)}
    return rows | {name: system.function(name)(t1, y1, z1, theta) for name in ("g_dot", "k")}


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


def _is_left_to_others(matrix: ca.SX, system: System) -> bool:
    """Whether a determinant may be eliminated at run time: in mechanics, where the matrix is close to positive definite."""
    return _is_mechanical(system) and matrix.shape[0] > 3


def _is_mechanical(system: System) -> bool:
    """Whether directions are the transposed of G and k_v, whatever the multipliers."""
    return system.linear_in_multipliers and isinstance(system, MechanicalSystem)


def _sign_of_determinant(matrix: ca.SX, system: System) -> ca.SX:
    """A number with the sign of det(matrix)."""
    n = matrix.shape[0]
    if n <= 3:
        value, sizes = ca.det(ca.densify(matrix)), ca.SX(1)
        for k in range(n):
            sizes *= matrix[k, k]
        checked = _is_mechanical(system) and n > 1
        return ca.if_else(ca.fabs(value) > SINGULAR * ca.fabs(sizes), value, 0) if checked else value
    if isinstance(system, MechanicalSystem):  # close to positive definite
        return Turn(ca.SX(0), matrix).sign()
    # By Faddeev and LeVerrier, which needs no pivots: M_k = A M_(k-1) + c_k I, c_k = -tr(A M_(k-1)) / k
    product, coefficient = matrix, ca.SX(0)
    for k in range(1, n + 1):
        coefficient = -ca.trace(product) / k
        product = matrix @ (product + coefficient * ca.SX.eye(n))
    return coefficient * (-1) ** n
