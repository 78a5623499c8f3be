"""The step equations of a time-stepping method as machine code: kernels over one block of memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from dalembert.compiler._independence import independent_still
from dalembert.compiler._ir import Kernel, compile_kernels
from dalembert.compiler._jit import Code
from dalembert.compiler._memory import place_in_order
from dalembert.compiler._reduction import ReducedStep, reduce_step
from dalembert.compiler._tape import entries_of
from dalembert.methods import Step
from dalembert.methods._step import StepEquations
from dalembert.symbolic import Scalar, as_column
from dalembert.symbolic._kept import Recent
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import MechanicalSystem
from dalembert.time_stepping._impulse_laws import Outcome, Tuning
from dalembert.time_stepping.stepping_methods import TimeStepping

SCALARS = ("t", "h", "relaxation", "restitution", "work", "bounce", "energy", "lawful", "independent", "fresh", "judged")
STICKS = 1e-9
"""Sliding velocities below this part of what they consist of are rounding errors."""
MOST_PROJECTED = 12
"""Constraints up to which the matrix of contacts takes them into account in straight-line code."""


MOST_COUPLED = 8
"""Contacts up to which it is known what the impulse of one does to another."""


def coupled(m: int) -> int:
    """How many columns the matrix of m contacts has that is looked at for Painleve's paradox: all, or one, its diagonal."""
    return m if m <= MOST_COUPLED else 1


@dataclass(frozen=True)
class Slots:
    """Where everything lies in the memory of the kernels and of the driver (counted in doubles)."""

    n_theta: int
    n_state: int
    n_x: int
    n_laws: int
    """Unknowns that are impulses of contacts, which come last."""
    n_entries: int
    n_contacts: int
    n_tangents: int
    n_columns: int
    """Of the matrix of contacts that is looked at for Painleve's paradox: one if it is the diagonal only."""

    t: int = field(init=False)
    h: int = field(init=False)
    relaxation: int = field(init=False)
    restitution: int = field(init=False)
    work: int = field(init=False)
    bounce: int = field(init=False)
    energy: int = field(init=False)
    lawful: int = field(init=False)
    independent: int = field(init=False)
    """Whether the combinations of redundant constraints still are at the end of the step."""
    fresh: int = field(init=False)
    """Whether they were chosen for the state at its beginning."""
    judged: int = field(init=False)
    """What was found about the motions from there: not asked, ONE, or no or several."""
    theta: int = field(init=False)
    state: int = field(init=False)
    x: int = field(init=False)
    residual: int = field(init=False)
    entries: int = field(init=False)
    matrix: int = field(init=False)
    scales: int = field(init=False)
    pivots: int = field(init=False)
    delta: int = field(init=False)
    impulses: int = field(init=False)
    """P_N, then P_F."""
    slip: int = field(init=False)
    bound: int = field(init=False)
    """mu P_N, where there is friction."""
    stiff: int = field(init=False)
    """What normal impulses of contacts that slide do to their normal velocities: a matrix, or the diagonal of one for many."""
    guess: int = field(init=False)
    saved: int = field(init=False)
    masses: int = field(init=False)
    """The diagonal of the mass matrix at the start."""
    sums: int = field(init=False)
    """Of the impulses since the last stored state."""
    touched: int = field(init=False)
    """Normal impulses of the last step, without rounding errors."""
    push: int = field(init=False)
    """The largest change of a momentum in the last step, then the largest impulse and the largest momentum so far."""
    most: int = field(init=False)
    peak: int = field(init=False)
    room: int = field(init=False)

    def __post_init__(self) -> None:
        n, m, d = self.n_x, self.n_contacts, self.n_tangents
        sizes = dict.fromkeys(SCALARS, 1) | {"theta": self.n_theta, "state": self.n_state, "x": n, "residual": n}
        sizes |= {
            "entries": self.n_entries,
            "matrix": n * n,
            "scales": 2 * n,
            "pivots": n,
            "delta": self.n_state,
            "impulses": m * (1 + d),
        }
        sizes |= {"slip": m * d, "bound": m if d else 0, "stiff": m * self.n_columns, "guess": n, "saved": n}
        sizes |= {"masses": self.n_state // 2, "sums": m * (1 + d), "touched": m, "push": 1, "most": 1, "peak": 1, "room": 0}
        place_in_order(self, 0, sizes)


@dataclass(frozen=True, eq=False)
class SteppingProgram:
    """Everything that the driver of time stepping needs."""

    slots: Slots
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
    slots = Slots(step.theta.shape[0], system.n_state, reduced.x.shape[0], laws, entries.shape[0], m, d, coupled(m))
    inputs = [
        (symbol, getattr(slots, name))
        for name, symbol in {
            "t": step.time_symbol, "h": step.h_symbol, "relaxation": relaxation, "restitution": restitution,
            "theta": step.theta, "state": reduced.equations.state, "x": reduced.x,
        }.items()
    ]  # fmt: skip
    kernels = (
        Kernel("residual", inputs, [(reduced.residual, slots.residual)]),
        Kernel("entries", inputs, [(entries, slots.entries)]),
        Kernel("finish", inputs, _results(system, reduced, outcome, slots)),
    )
    code, used = compile_kernels(kernels, slots.room)
    rows, columns = (np.array(table, dtype=np.int64) for table in reduced.jacobian.sparsity().get_triplet())
    return SteppingProgram(slots, code, slots.room + used, rows, columns, blocks)


def _results(system: MechanicalSystem, reduced: ReducedStep, outcome: Outcome, slots: Slots) -> list[tuple[ca.SX, int]]:
    """What a finished step leaves in memory."""
    impulses = ca.vertcat(as_column(outcome.P_N), as_column(outcome.P_F))
    slip, bound = (as_column(x) if system.n_tangents else ca.SX(0, 1) for x in (outcome.slip, outcome.bound))
    given = [
        (reduced.increment, slots.delta),
        (impulses, slots.impulses),
        (slip, slots.slip),
        (bound, slots.bound),
        (as_column([outcome.work]), slots.work),
        (as_column([outcome.bounce]), slots.bounce),
        (as_column([outcome.lawful]), slots.lawful),
        (reduced.energy, slots.energy),
        (_stiffness(system, reduced), slots.stiff),
        (_independent_at_end(system, reduced), slots.independent),
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
    if not d or system.n_multipliers > MOST_PROJECTED:
        return ca.SX.eye(m)[:] if coupled(m) == m else ca.SX.ones(m, 1)
    t, theta, (q, p) = step.time_symbol, step.theta, step.state.values()
    v, slip, H_pp, hidden = (system.function(name)(t, q, p, theta) for name in ("H_p", "slip", "H_pp", "hidden_z"))
    mobility = H_pp
    if system.n_multipliers:
        J = ca.horzcat(system.function("G")(t, q, theta).T, system.function("k_v")(t, q, p, theta).T)
        mobility = H_pp @ (ca.SX.eye(system.dim) - J @ ca.solve(hidden @ J, hidden))
    normals, tangents, mu = (system.function(name)(t, q, theta) for name in ("phi_q", "slip_v", "friction"))
    pushes, sliding, units = [], [], []
    for k in range(m):
        n, along, gamma = normals[k, :].T, tangents[d * k : d * k + d, :], slip[d * k : d * k + d]
        speed = ca.sqrt(ca.sumsqr(gamma) + 1e-290)
        slides = speed > STICKS * (ca.sum1(ca.fabs(along) @ ca.fabs(v)) + 1e-140)
        sliding.append(slides)
        units.append(1 / ca.sqrt(ca.dot(n, mobility @ n) + 1e-290))
        pushes.append(units[k] * (mobility @ (n - mu[k] * along.T @ (gamma / speed))))

    def element(j: int, k: int) -> ca.SX:
        both = ca.logic_and(sliding[j], sliding[k])
        return ca.if_else(both, units[j] * ca.dot(normals[j, :].T, pushes[k]), float(j == k))

    return ca.vertcat(*(element(j, k) for j in range(m) for k in (range(m) if coupled(m) == m else (j,))))
