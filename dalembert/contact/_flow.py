"""Partial steps: a one-step map whose step size is an argument, and its equations.

Numbers in parentheses refer to Pekarek and Murphey (2014), Int. J. Numer. Meth. Engng.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import casadi as ca

from dalembert.compiler import reduced_step
from dalembert.methods import OneStepMethod
from dalembert.systems import MechanicalSystem

Scale = Literal["velocity", "momentum", "one"]
"""What an unknown is measured by where it is small itself: |q|/h, |p| or 1."""


@dataclass(frozen=True, eq=False)
class Point:
    """Symbols for a point of the motion, and for what happens there.

    `dt` is the length of the partial step that starts here, `h` that of a full one. `hit` and `ahead` choose, as unit vectors,
    the unilateral constraint that is hit here and the guard on whose zero the partial step is to end. `energy` is
    the discrete energy of the partial step that ended here.
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

    @classmethod
    def of(cls, system: MechanicalSystem) -> Point:
        n, m = system.dim, system.n_unilateral
        scalars = {name: ca.SX.sym(name) for name in ("t", "dt", "h", "energy")}
        vectors = {"theta": system.parameters.size, "q": n, "p": n, "hit": m, "ahead": system.n_guards}
        return cls(**scalars, **{name: ca.SX.sym(name, size) for name, size in vectors.items()})


@dataclass(frozen=True, eq=False)
class Equations:
    """F(x) = 0 from a guess of x; the Jacobian of `model`, by default F itself, is the matrix of Newton's iteration."""

    x: ca.SX
    scales: tuple[tuple[Scale, int], ...]
    """The blocks of x, what each is measured by, and their sizes."""
    guess: ca.SX
    residual: ca.SX
    model: ca.SX


@dataclass(frozen=True, eq=False)
class Flow:
    """A partial step from a point: equations, and the increments (dq, dp) of the state, also of the model.

    Where the step starts with an impact that belongs to its equations, `kick` is the jump of p there and `impulse` its size.
    """

    equations: Equations
    increment: ca.SX
    model_increment: ca.SX
    kick: ca.SX | None = None
    impulse: ca.SX | None = None


def base_flow(system: MechanicalSystem, base: OneStepMethod, at: Point) -> Flow:
    """Phi_dt of a one-step method."""
    reduced = reduced_step(system.smooth, base)
    own, here = ca.vertcat(*reduced.data), ca.vertcat(at.t, at.dt, at.theta, at.q, at.p)
    residual, increment = (ca.substitute(part, own, here) for part in (reduced.residual, reduced.express(reduced.increment)))
    v = system.function("v")(at.t, at.q, at.p, at.theta)
    none = ca.SX.zeros(system.n_holonomic, 1), ca.SX.zeros(system.n_nonholonomic, 1)
    p_dot = system.function("z_dot")(at.t, at.q, at.p, *none, at.theta)
    guess, scales = [ca.SX(0, 1)], []
    for block in reduced.blocks:
        size = block.symbols.shape[0]
        if block.kind == "increment":
            rate = v if block.of == "q" else p_dot
            guess += [float(node) * rate * (1 if block.per_h else at.dt) for node in block.nodes]
        else:
            guess.append(ca.SX.zeros(size, 1))
        scales.append(("velocity" if block.kind == "increment" and block.of == "q" else "momentum", size))
    equations = Equations(reduced.x, tuple(scales), ca.vertcat(*guess), residual, residual)  # type: ignore[arg-type]
    return Flow(equations, increment, increment)


def onto_the_wall(system: MechanicalSystem, flow: Flow, at: Point, guess: ca.SX) -> Equations:
    """The partial step that ends where a wall is met or another guard is zero: its length s h joins the unknowns.

    CollisionTime of section 4.1. phi is divided by h, so that conditioning does not depend on h.
    """
    s, n = ca.SX.sym("s"), system.dim

    def end(residual: ca.SX, increment: ca.SX) -> ca.SX:
        phi = system.function("guards")(at.t + at.dt, at.q + increment[:n], at.p + increment[n:], at.theta)
        return ca.substitute(ca.vertcat(residual, ca.dot(at.ahead, phi) / at.h), at.dt, s * at.h)

    equations = flow.equations
    return Equations(
        ca.vertcat(equations.x, s),
        (*equations.scales, ("one", 1)),
        ca.vertcat(equations.guess, guess),
        end(equations.residual, flow.increment),
        end(equations.model, flow.model_increment),
    )
