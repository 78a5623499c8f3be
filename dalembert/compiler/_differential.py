"""The derivative of a step of a small program, its transpose, and the derivative of that, each as one straight-line kernel.

`push` turns the derivatives z = (ds, dtheta) of the state and some parameters, of `WIDTH` directions side by side, into those
of the next state; `pull` turns a covector of the next state into one of the state and those parameters, and `pull twice` also
pulls the change of such a covector, for second derivatives. With F(x; z) = 0 for
the unknowns x, E(y, x; z) = M y - b = 0 for the last unknowns, and the increment D(x, y; z):

    F_x dx = -F_z dz,   M dy = -E_x dx - E_z dz,   ds_1 = ds + D_x dx + D_y dy + D_z dz.

Solves with F_x are refined once; its pivot order may leave an error before that, which is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import casadi as ca

from dalembert.compiler._elimination import eliminate, substitute
from dalembert.compiler._ir import Kernel, compile_kernels
from dalembert.compiler._jit import Code
from dalembert.compiler._memory import place_in_order
from dalembert.compiler._program import Program
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time

WIDTH = 4
"""How many directions are pushed at once, in one vector of the processor."""

LONGEST = 6_000
"""Operations up to which a kernel is compiled; longer ones take seconds, and are left to loops (`_linearised`)."""


@dataclass(frozen=True)
class DifferentialLayout:
    """Slots of the memory of both kernels."""

    n_theta: int
    n_state: int
    n_x: int
    n_z: int
    """What is given or results: for "push" the state and the parameters with respect to which it is differentiated."""

    time = 0
    h = 1
    error = 2
    theta = 3

    state: int = field(init=False)
    x: int = field(init=False)
    z: int = field(init=False)
    work: int = field(init=False)

    def __post_init__(self) -> None:
        sizes = {"theta": self.n_theta, "state": self.n_state, "x": self.n_x, "z": self.n_z, "work": 0}
        place_in_order(self, self.theta, sizes)


@dataclass(frozen=True, eq=False)
class Differential:
    """One of the kernels, its memory for each of `width` directions, and where things lie in it."""

    layout: DifferentialLayout
    code: Code
    address: int
    memory_size: int
    width: int


@kept
@one_at_a_time
def differential(program: Program, chosen: tuple[int, ...], kind: str) -> Differential | None:
    """The kernel of one of `KINDS`; None if it would be too long."""
    if not program.straight_line:
        return None
    _, _, theta, state = program.reduced.data
    n, n_z = state.shape[0], state.shape[0] + len(chosen)
    result, error = KINDS[kind](_Solves(program, chosen), given := ca.SX.sym("given", GIVEN[kind](n, n_z)))
    layout = DifferentialLayout(theta.shape[0], n, program.reduced.x.shape[0], max(given.shape[0], result.shape[0]))
    slots = (layout.time, layout.h, layout.theta, layout.state, layout.x)
    inputs = [*zip((*program.reduced.data, program.reduced.x), slots, strict=True), (given, layout.z)]
    kernel = Kernel("differential", inputs, [(result, layout.z), (error, layout.error)])
    if kernel.operations > LONGEST:
        return None
    width = WIDTH if kind == "push" else 1
    code, used = compile_kernels([kernel], layout.work, width)
    return Differential(layout, code, code.addresses[kernel.name], layout.work + used, width)


class _Solves:
    """The equations of a step, and solves with the matrices of its unknowns x and of the last ones y."""

    def __init__(self, program: Program, chosen: tuple[int, ...]) -> None:
        reduced = program.reduced
        _, _, theta, state = reduced.data
        self.x, self.F, self.D, self.F_x = reduced.x, reduced.residual, reduced.increment, reduced.jacobian
        self.z = ca.vertcat(state, theta[list(chosen)] if chosen else ca.SX(0, 1))
        self.factors, self.order = eliminate(self.F_x, program.order), program.order
        self.y, self.E, value = ca.SX(0, 1), ca.SX(0, 1), ca.SX(0, 1)
        if reduced.last is not None and program.last_order is not None:
            self.y, self.E = reduced.last.y, reduced.last.matrix @ reduced.last.y - reduced.last.rhs
            self.last_factors, self.last_order = eliminate(reduced.last.matrix, program.last_order), program.last_order
            value = self.solve_last(reduced.last.rhs)
        self.values = (self.y, value)
        self.all = ca.vertcat(self.x, self.z, self.y)

    def solve_last(self, rhs: ca.SX) -> ca.SX:
        return substitute(*self.last_factors, self.last_order, rhs) if rhs.shape[0] else rhs

    def solve(self, rhs: ca.SX) -> ca.SX:
        return substitute(*self.factors, self.order, rhs) if rhs.shape[0] else rhs

    def refined(self, solve: Callable[[ca.SX], ca.SX], matrix: ca.SX, rhs: ca.SX) -> tuple[ca.SX, ca.SX]:
        """A solution with one refinement, and the backward error that it had before (Oettli and Prager 1964)."""
        first = solve(rhs)
        rest, size = rhs - matrix @ first, ca.fabs(rhs) + ca.fabs(matrix) @ ca.fabs(first)
        error = ca.SX(0)
        for k in range(rest.shape[0]):
            error = ca.fmax(error, ca.fabs(rest[k]) / (size[k] + 1e-300))
        return first + solve(rest), error

    def finished(self, result: ca.SX, error: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The results with the last unknowns solved for."""
        if not self.y.shape[0]:
            return result, error
        found = ca.substitute(ca.vertcat(result, error), *self.values)
        return found[:-1], found[-1]


def _transposed(solve: Callable[[ca.SX], ca.SX], rhs: ca.SX) -> ca.SX:
    """The transpose of a linear map."""
    if not rhs.shape[0]:
        return rhs
    v = ca.SX.sym("v", rhs.shape[0])
    return ca.jtimes(solve(v), v, rhs, True)


def _change(step: _Solves, dz: ca.SX) -> tuple[ca.SX, ca.SX]:
    """(dx, dz, dy) for a change dz of the state and the parameters, and the backward error of the solve."""
    dx, error = step.refined(step.solve, step.F_x, -ca.jtimes(step.F, step.z, dz))
    xz, dxz = ca.vertcat(step.x, step.z), ca.vertcat(dx, dz)
    dy = -step.solve_last(ca.jtimes(step.E, xz, dxz)) if step.y.shape[0] else step.y
    return ca.vertcat(dxz, dy), error


def _adjoint(step: _Solves, bar: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """From a covector of (x, z, y) that of z alone, x and y being solved for; the multipliers (w, v) of F and E; the error."""
    xz, n, n_z = ca.vertcat(step.x, step.z), step.x.shape[0], step.z.shape[0]
    of_xz, v = bar[: n + n_z], _transposed(step.solve_last, bar[n + n_z :])
    if step.y.shape[0]:
        of_xz -= ca.jtimes(step.E, xz, v, True)
    w, error = step.refined(lambda rhs: _transposed(step.solve, rhs), step.F_x.T, of_xz[:n])
    return of_xz[n:] - ca.jtimes(step.F, step.z, w, True) if n else of_xz, ca.vertcat(w, v), error


def _pushed(step: _Solves, dz: ca.SX) -> tuple[ca.SX, ca.SX]:
    changes, error = _change(step, dz)
    return step.finished(dz[: step.D.shape[0]] + ca.jtimes(step.D, step.all, changes), error)


def _pulled(step: _Solves, covector: ca.SX) -> tuple[ca.SX, ca.SX]:
    of_z, _, error = _adjoint(step, ca.jtimes(step.D, step.all, covector, True))
    of_z[: covector.shape[0]] += covector
    return step.finished(of_z, error)


def _pulled_twice(step: _Solves, given: ca.SX) -> tuple[ca.SX, ca.SX]:
    """From dz, a covector c and its change dc: the pulled covector, its change, and the state's change after the step.

    With l = c . D - w . F - v . E the pulled covector is c + l_z, where l_x = l_y = 0 give (w, v). So its change is that of
    a covector dc, to whose image D^T dc of (x, z, y) the second derivatives of l along (dx, dz, dy) are added.
    """
    n, n_z = step.D.shape[0], step.z.shape[0]
    dz, c, dc = ca.vertsplit(given, [0, n_z, n_z + n, n_z + 2 * n])
    changes, first_error = _change(step, dz)
    of_z, found, _ = _adjoint(step, ca.jtimes(step.D, step.all, c, True))
    multipliers = ca.SX.sym("wv", found.shape[0])
    action = ca.dot(c, step.D) - ca.dot(multipliers, ca.vertcat(step.F, step.E))
    curved = ca.substitute(ca.jtimes(ca.gradient(action, step.all), step.all, changes), multipliers, ca.densify(found))
    of_change, _, error = _adjoint(step, ca.jtimes(step.D, step.all, dc, True) + curved)
    of_z[:n] += c
    of_change[:n] += dc
    after = dz[:n] + ca.jtimes(step.D, step.all, changes)
    return step.finished(ca.vertcat(of_z, of_change, after), ca.fmax(first_error, error))


KINDS = {"push": _pushed, "pull": _pulled, "pull twice": _pulled_twice}
GIVEN: dict[str, Callable[[int, int], int]] = {
    "push": lambda n, n_z: n_z,
    "pull": lambda n, n_z: n,
    "pull twice": lambda n, n_z: n_z + 2 * n,
}
"""How many numbers a kernel is given, in terms of the sizes of the state and of (state, parameters)."""
