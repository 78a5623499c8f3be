"""What happens at a point of the motion, described as a method describes its step: unknowns, equations, what follows from them.

Numbers in parentheses refer to Pekarek and Murphey (2014), Int. J. Numer. Meth. Engng.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import casadi as ca
import numpy as np

from dalembert.compiler import reduced_step
from dalembert.methods import OneStepMethod
from dalembert.symbolic import Scalar, SymbolicArray, as_column, from_column
from dalembert.systems import BoundSystem, MechanicalSystem
from dalembert.systems._mechanical import solve_symmetric

Scale = Literal["velocity", "momentum", "one"]
"""What an unknown is measured by where it is small itself: |q|/h, |p| or 1."""


@dataclass(frozen=True, eq=False)
class Point:
    """Symbols for a point of the motion, and for what happens there.

    `dt` is the length of the partial step that starts here, `h` that of a full one. `hit` and `ahead` choose, as unit vectors,
    the unilateral constraint that is hit here and the guard on whose zero the partial step is to end, whose rate there is
    about `slope` if it is no wall. `energy` is the discrete energy of the partial step that ended here. `bending` is 1 where
    guesses have a second term, and 0 in those by which stores know their equations.
    """

    t: ca.SX
    dt: ca.SX
    h: ca.SX
    theta: ca.SX
    q: ca.SX
    p: ca.SX
    hit: ca.SX
    ahead: ca.SX
    energy: ca.SX
    slope: ca.SX
    bending: ca.SX

    @classmethod
    def of(cls, system: MechanicalSystem) -> Point:
        n, m = system.dim, system.n_unilateral
        scalars = {name: ca.SX.sym(name) for name in ("t", "dt", "h", "energy", "slope", "bending")}
        vectors = {"theta": system.parameters.size, "q": n, "p": n, "hit": m, "ahead": system.n_guards}
        return cls(**scalars, **{name: ca.SX.sym(name, size) for name, size in vectors.items()})

    def kicked(self, kick: SymbolicArray) -> Point:
        """The same point with the momentum p + kick."""
        return replace(self, p=self.p + as_column(kick))


@dataclass(frozen=True, eq=False)
class Equations:
    """F(x) = 0 from a guess of x; the Jacobian of `model`, by default F itself, is the matrix of Newton's iteration."""

    x: ca.SX
    scales: tuple[tuple[Scale, int], ...]
    """The blocks of x, what each is measured by, and their sizes."""
    guess: ca.SX
    residual: ca.SX
    model: ca.SX

    def with_length(self, dt: ca.SX, length: ca.SX) -> Equations:
        """The same for a partial step of another length, which need not be a symbol."""
        residual, model = (ca.substitute(part, dt, length) for part in (self.residual, self.model))
        return replace(self, residual=residual, model=model)


@dataclass(frozen=True, eq=False)
class Reset:
    """R^reset at a point on the wall: p+ = p- + kick if the impact is elastic, kick = impulse grad phi without constraints."""

    equations: Equations
    kick: ca.SX
    impulse: ca.SX

    @classmethod
    def of(cls, event: Event, kick: SymbolicArray, impulse: Scalar) -> Self:
        """The reset that an event describes."""
        return cls(event.equations, as_column(kick), as_column(impulse))


@dataclass(frozen=True, eq=False)
class Flow:
    """A partial step from a point: equations, the increments (dq, dp) of the state, and those of the model."""

    equations: Equations
    increment: ca.SX
    model_increment: ca.SX
    reset: Reset | None = None
    """The impact with which it starts, if that belongs to its equations."""


class Event:
    """The unknowns and equations of what happens at a point, as `methods.Step` has those of a step.

    `q` and `p` are the state there, `system` has the functions of the system, and of the constraint that is hit there are
    `normal`, grad phi, and `phi_t`.
    """

    def __init__(self, definition: MechanicalSystem, at: Point) -> None:
        self.at, self.definition, self.system = at, definition, BoundSystem(definition, at.theta)
        self.t, self.dt, self.h, self.energy = (Scalar(symbol) for symbol in (at.t, at.dt, at.h, at.energy))
        self.q, self.p, self.hit, self.ahead = (from_column(column) for column in (at.q, at.p, at.hit, at.ahead))
        self._blocks: list[tuple[Scale, int]] = []
        self._unknowns, self._guesses, self._residuals, self._models = ([ca.SX(0, 1)] for _ in range(4))

    @property
    def normal(self) -> SymbolicArray:
        """grad phi of the constraint that is hit."""
        at, phi_q = self.at, self.definition.function("phi_q")  # of many constraints a large and sparse matrix
        return from_column(ca.densify(phi_q(at.t, at.q, at.theta).T @ at.hit))

    @property
    def phi_t(self) -> Scalar:
        """phi_t of the constraint that is hit."""
        return self.system.phi_t(self.t, self.q) @ self.hit

    @property
    def approach_speeds(self) -> Any:
        """-phi_dot of all walls; zero where only a modified Hamiltonian approaches."""
        return np.maximum(-self.system.phi_dot(self.t, self.q, self.p), 0)

    @property
    def impulse_fraction(self) -> Any:
        """(1 + e)/2, by which an impact with the coefficient of restitution e scales the elastic impulse."""
        e = from_column(self.definition.function("restitution")(as_column(self.approach_speeds), self.at.theta))
        return (1 + sum(np.where(self.hit != 0, e, 0))) / 2  # no other wall may be in its way by a nan

    @property
    def constraints(self) -> Any:
        """The rows along which holonomic and nonholonomic constraints act: G and k_v."""
        return np.concatenate([self.system.G(self.t, self.q), self.system.k_v(self.t, self.q, self.p)])

    @property
    def quadratic(self) -> bool:
        """Whether H is quadratic in p."""
        return not ca.depends_on(as_column(self.system.H_pp(self.t, self.q, self.p)), self.at.p)

    def unknowns(self, name: str, guess: Any, scale: Scale) -> Any:
        """Unknowns of the shape of their guess."""
        symbols = ca.SX.sym(name, np.size(guess))
        self._blocks.append((scale, symbols.shape[0]))
        self._unknowns.append(symbols)
        self._guesses.append(as_column(guess))
        return from_column(symbols, np.shape(guess)) if np.shape(guess) else Scalar(symbols)

    def equation(self, left: Any, right: Any, model: Any = None) -> None:
        """Demand left = right; Newton's matrix may have the derivative of `model` in place of that of left - right."""
        self._residuals.append(as_column(left - right))
        self._models.append(self._residuals[-1] if model is None else as_column(model))

    def step(self, flow: Flow, guess: ca.SX | None = None) -> None:
        """Let the unknowns, the first ones, and equations of a partial step belong to the event."""
        own = flow.equations
        self._blocks[:0], self._unknowns[:0] = own.scales, [own.x]
        self._guesses[:0] = [own.guess if guess is None else guess]
        self._residuals.append(own.residual)
        self._models.append(own.model)

    @property
    def equations(self) -> Equations:
        """All of them."""
        x, guess, residual, model = (
            ca.vertcat(*parts) for parts in (self._unknowns, self._guesses, self._residuals, self._models)
        )
        return Equations(x, tuple(self._blocks), guess, residual, model)


def solved(matrix: SymbolicArray, rhs: Any) -> SymbolicArray:
    """The solution of linear equations with a symmetric matrix."""
    n = len(rhs)
    return from_column(solve_symmetric(ca.sparsify(ca.reshape(as_column(matrix), n, n)), as_column(rhs)))


def base_flow(system: MechanicalSystem, base: OneStepMethod, at: Point) -> Flow:
    """Phi_dt of a one-step method."""
    reduced = reduced_step(system.smooth, base)
    own, here = ca.vertcat(*reduced.data), ca.vertcat(at.t, at.dt, at.theta, at.q, at.p)
    residual, increment = (ca.substitute(part, own, here) for part in (reduced.residual, reduced.express(reduced.increment)))
    derivatives = first_derivatives(system, at)
    guess, scales = [ca.SX(0, 1)], []
    for block in reduced.blocks:
        size = block.symbols.shape[0]
        if block.kind == "increment":
            rate, bend = derivatives[block.of]
            for node in map(float, block.nodes):
                guess.append(node * (rate + node / 2 * at.dt * (at.bending * bend)) * (1 if block.per_h else at.dt))
        else:
            guess.append(ca.SX.zeros(size, 1))
        scales.append(("velocity" if block.kind == "increment" and block.of == "q" else "momentum", size))
    equations = Equations(reduced.x, tuple(scales), ca.vertcat(*guess), residual, residual)  # type: ignore[arg-type]
    return Flow(equations, increment, increment)


def first_derivatives(system: MechanicalSystem, at: Point) -> dict[str, tuple[ca.SX, ca.SX]]:
    """First and second derivatives of q and p along the motion without constraint forces; no second ones where they exist."""
    own = Point.of(system)
    y, none = ca.vertcat(own.t, own.q, own.p), [ca.SX.zeros(size, 1) for size in (system.n_holonomic, system.n_nonholonomic)]
    v = system.function("v")(own.t, own.q, own.p, own.theta)
    rates = ca.vertcat(v, system.function("z_dot")(own.t, own.q, own.p, *none, own.theta))
    bends = ca.SX.zeros(rates.shape) if system.n_multipliers else ca.jtimes(rates, y, ca.vertcat(1, rates))
    symbols, values = ca.vertcat(y, own.theta), ca.vertcat(at.t, at.q, at.p, at.theta)
    halves = [ca.vertsplit(ca.substitute(part, symbols, values), system.dim) for part in (rates, bends)]
    return dict(zip(("q", "p"), zip(*halves, strict=True), strict=True))


def onto_the_wall(system: MechanicalSystem, flow: Flow, at: Point, guess: ca.SX) -> Equations:
    """The partial step that ends where a wall is met or another guard is zero: its length s h joins the unknowns.

    CollisionTime of section 4.1. phi is divided by h, so that conditioning does not depend on h. The gradient of a force of
    contact, which solves linear equations, would be most of Newton's matrix: there such guards change by slope ds, as they do
    along the motion.
    """
    event = Event(system, at)
    t, h, walls = event.t + event.dt, event.h, system.n_unilateral
    (dq, dp), dq_of_model = np.split(from_column(flow.increment), 2), np.split(from_column(flow.model_increment), 2)[0]

    event.step(flow)
    s = event.unknowns("s", Scalar(guess), "one")
    model = event.ahead[:walls] @ event.system.phi(t, event.q + dq_of_model) / h if walls else 0
    if system.n_guards > walls:
        model += Scalar(at.slope) * s
    event.equation(event.ahead @ event.system.guards(t, event.q + dq, event.p + dp) / h, 0, model=model)
    return event.equations.with_length(at.dt, as_column(s * h))
