"""The step equations of a time-stepping method as machine code: kernels over one block of memory."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.compiler._elimination import diagonal_order, eliminate, substitute
from dalembert.compiler._independence import independent_still
from dalembert.compiler._ir import Kernel, compile_kernels
from dalembert.compiler._jit import Code
from dalembert.compiler._reduction import ReducedStep, reduce_step
from dalembert.compiler._step_kernels import SELDOM
from dalembert.compiler._tape import entries_of
from dalembert.methods import Step
from dalembert.methods._step import StepEquations
from dalembert.symbolic import Scalar, as_column
from dalembert.symbolic._kept import Recent
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import MechanicalSystem
from dalembert.time_stepping._impulse_laws import Outcome, Tuning
from dalembert.time_stepping.stepping_methods import TimeStepping

STICKS = 1e-9
"""Sliding velocities below this part of what they consist of are rounding errors."""
MOST_COUPLED = 8
"""Contacts up to which it is known what the impulse of one does to another."""


def coupled(m: int) -> int:
    """How many columns the matrix of m contacts has that is looked at for Painleve's paradox: all, or one, its diagonal."""
    return m if m <= MOST_COUPLED else 1


SIZES = ("n_theta", "n_state", "n_x", "n_laws", "n_entries", "n_contacts", "n_tangents", "n_columns")
"""Of these `n_laws` unknowns are impulses of contacts, which come last; `n_columns` has the matrix of contacts that is
looked at for Painleve's paradox, one if it is the diagonal only."""
SCALARS = ("t", "h", "relaxation", "restitution", "work", "bounce", "energy", "lawful", "independent", "fresh", "judged")
"""`independent` says whether combinations of redundant constraints still are at the end of the step, `fresh` whether they
were chosen for the state at its beginning, `judged` what was found about the motions from there: not asked, ONE, or no or
several."""
VECTORS = (
    "theta", "state", "x", "residual", "entries", "matrix", "scales", "pivots", "delta", "impulses", "slip", "bound", "stiff",
    "guess", "saved", "masses", "sums", "touched", "push", "most", "peak",
)  # fmt: skip
"""`impulses` are P_N and P_F, `bound` is mu P_N, `stiff` what normal impulses of contacts that slide do to their normal
velocities, a matrix, or the diagonal of one for many, `masses` the diagonal of the mass matrix at the start, `sums` the
impulses since the last stored state, `touched` the normal ones of the last step, without rounding errors; the largest
change of a momentum in the last step is `push`, the largest impulse so far `most`, the largest momentum `peak`."""


def lay_out(*given: int) -> dict[str, int]:
    """Sizes, and where everything lies in the memory of the kernels and of the driver (counted in doubles)."""
    n_theta, n_state, n, _, n_entries, m, d, n_columns = given
    sizes = dict.fromkeys((*SCALARS, *VECTORS), 1) | dict.fromkeys(("x", "residual", "pivots", "guess", "saved"), n)
    sizes |= {"theta": n_theta, "state": n_state, "delta": n_state, "masses": n_state // 2}
    sizes |= {"entries": n_entries, "matrix": n * max(n, 2), "scales": 2 * n, "stiff": m * n_columns}
    sizes |= {"impulses": m * (1 + d), "sums": m * (1 + d), "slip": m * d, "bound": m if d else 0, "touched": m}
    places = itertools.accumulate(sizes.values(), initial=0)
    return dict(zip((*SIZES, *sizes, "room"), (*given, *places), strict=True))


@dataclass(frozen=True, eq=False)
class SteppingProgram:
    """Everything that the driver of time stepping needs."""

    slots: dict[str, int]
    code: Code
    memory_size: int
    rows: np.ndarray
    columns: np.ndarray
    """Of the entries of the matrix."""
    blocks: np.ndarray
    """(size, kind) of each block of unknowns: -1 for impulses of constraints, 0 velocities, 1 momenta, 2 P_N, 3 P_F."""


_programs: dict[tuple[str, TimeStepping], SteppingProgram] = Recent()


@one_at_a_time
def stepping_program(system: MechanicalSystem, method: TimeStepping) -> SteppingProgram:
    """The kernels of a time-stepping method; compiled once for equal models."""
    key = (system.fingerprint, method)
    if key not in _programs:
        _programs[key] = _compile(system, method)
    return _programs[key]


def _compile(system: MechanicalSystem, method: TimeStepping) -> SteppingProgram:
    step, relaxation, restitution = Step(system), ca.SX.sym("relaxation"), ca.SX.sym("restitution")
    outcome = method.contact_step(step.system, step, Tuning(Scalar(relaxation), Scalar(restitution)))
    reduced = reduce_step(StepEquations.of(step))
    assert reduced.last is None
    entries = entries_of(reduced.jacobian)
    m, d = system.n_unilateral, system.n_tangents
    kinds = {"V": 0, "L": -1, "Psi": -1, "P_N": 2, "P_F": 3}
    blocks = np.array([(b.symbols.shape[0], kinds.get(b.name.rstrip("1"), 1)) for b in reduced.blocks], dtype=np.int64)
    laws = int(blocks[blocks[:, 1] >= 2, 0].sum())
    slots = lay_out(step.theta.shape[0], system.n_state, reduced.x.shape[0], laws, entries.shape[0], m, d, coupled(m))
    inputs = [
        (symbol, slots[name])
        for name, symbol in {
            "t": step.time_symbol, "h": step.h_symbol, "relaxation": relaxation, "restitution": restitution,
            "theta": step.theta, "state": reduced.equations.state, "x": reduced.x,
        }.items()
    ]  # fmt: skip
    kernels = (
        Kernel("residual", inputs, [(reduced.residual, slots["residual"])]),
        Kernel("entries", inputs, [(entries, slots["entries"])]),
        Kernel("finish", inputs, _results(system, reduced, outcome, slots)),
    )
    code, used = compile_kernels(kernels, slots["room"], quick=("finish",), quick_from=SELDOM)
    rows, columns = (np.array(table, dtype=np.int64) for table in reduced.jacobian.sparsity().get_triplet())
    return SteppingProgram(slots, code, slots["room"] + used, rows, columns, blocks)


def _results(
    system: MechanicalSystem, reduced: ReducedStep, outcome: Outcome, slots: dict[str, int]
) -> list[tuple[ca.SX, int]]:
    """What a finished step leaves in memory."""
    impulses = ca.vertcat(as_column(outcome.P_N), as_column(outcome.P_F))
    slip, bound = (as_column(x) if system.n_tangents else ca.SX(0, 1) for x in (outcome.slip, outcome.bound))
    given = [
        (reduced.increment, slots["delta"]),
        (impulses, slots["impulses"]),
        (slip, slots["slip"]),
        (bound, slots["bound"]),
        (as_column([outcome.work]), slots["work"]),
        (as_column([outcome.bounce]), slots["bounce"]),
        (as_column([outcome.lawful]), slots["lawful"]),
        (reduced.energy, slots["energy"]),
        (_stiffness(system, reduced), slots["stiff"]),
        (_independent_at_end(system, reduced), slots["independent"]),
    ]
    return [(reduced.express(expression), slot) for expression, slot in given if expression.shape[0]]


def _independent_at_end(system: MechanicalSystem, reduced: ReducedStep) -> ca.SX:
    """Whether combinations of redundant constraints are independent in the new state; 1 where there are none."""
    if system.combines is None:
        return ca.SX(1)
    step = reduced.equations.step
    (q, p), (dq, dp) = step.state.values(), ca.vertsplit(reduced.increment, [0, system.dim, 2 * system.dim])
    end, none = (step.time_symbol + step.h_symbol, q + dq, p + dp), ca.SX.zeros(system.n_multipliers, 1)
    lam, psi = ca.vertsplit(none, [0, system.n_holonomic, system.n_multipliers])
    directions = ca.sparsify(system.function("directions")(*end, lam, psi, step.theta))
    matrix = ca.sparsify(system.function("hidden_z")(*end, step.theta)) @ directions
    return independent_still((matrix,), system, step.theta)


def _stiffness(system: MechanicalSystem, reduced: ReducedStep) -> ca.SX:
    """M_jk = w_Nj H_pp (w_N - mu w_F gamma_F/|gamma_F|)_k of contacts that slide at the start, by rows; those of 1 of others.

    This is d gamma_N / d P_N between the constraints, divided by the roots of w_N H_pp w_N. Where M is no P-matrix, the rigid
    model may have no or several accelerations: Painleve's paradox (`PlanarFriction.has_one_motion`).
    """
    step, m, d = reduced.equations.step, system.n_unilateral, system.n_tangents
    if not d:
        return ca.SX.eye(m)[:] if coupled(m) == m else ca.SX.ones(m, 1)
    t, theta, (q, p) = step.time_symbol, step.theta, step.state.values()
    v, slip = (system.function(name)(t, q, p, theta) for name in ("H_p", "slip"))
    normals, tangents, mu = (system.function(name)(t, q, theta) for name in ("phi_q", "slip_v", "friction"))
    pushed, sliding = [], []
    for k in range(m):
        n, along, gamma = normals[k, :].T, tangents[d * k : d * k + d, :], slip[d * k : d * k + d]
        speed = ca.sqrt(ca.sumsqr(gamma) + 1e-290)
        slides = speed > STICKS * (ca.sum1(ca.fabs(along) @ ca.fabs(v)) + 1e-140)
        sliding.append(slides)
        pushed += [n, n - mu[k] * along.T @ (gamma / speed)]
    moved = _between_constraints(system, (t, q, p, theta), ca.horzcat(*pushed))
    units = [1 / ca.sqrt(ca.dot(normals[k, :].T, moved[:, 2 * k]) + 1e-290) for k in range(m)]

    def element(j: int, k: int) -> ca.SX:
        both = ca.logic_and(sliding[j], sliding[k])
        return ca.if_else(both, units[j] * ca.dot(normals[j, :].T, moved[:, 2 * k + 1]) * units[k], float(j == k))

    return ca.vertcat(*(element(j, k) for j in range(m) for k in (range(m) if coupled(m) == m else (j,))))


def _between_constraints(system: MechanicalSystem, place: tuple[ca.SX, ...], pushes: ca.SX) -> ca.SX:
    """The velocities that impulses, which are columns, give to a system whose constraints answer with impulses of their own."""
    t, q, p, theta = place
    pushes, H_pp = ca.sparsify(pushes), ca.sparsify(system.function("H_pp")(t, q, p, theta))
    if not system.n_multipliers:
        return H_pp @ pushes
    hidden = ca.sparsify(system.function("hidden_z")(t, q, p, theta))
    J = ca.sparsify(ca.horzcat(system.function("G")(t, q, theta).T, system.function("k_v")(t, q, p, theta).T))
    matrix, wanted = hidden @ J, hidden @ pushes
    order = diagonal_order(matrix)
    factors = eliminate(matrix, order)
    answers = [substitute(*factors, order, wanted[:, k]) for k in range(pushes.shape[1])]
    return H_pp @ (pushes - J @ ca.sparsify(ca.horzcat(*answers)))
