"""The modified collision Verlet algorithm: partial steps and resets that keep the modified Hamiltonian.

Numbers in parentheses refer to Pekarek and Murphey (2014), Int. J. Numer. Meth. Engng.

Deviations from the print:
    - lambda = 0 solves (34), too: it is divided out of the balance of H~ instead of being excluded by p+ != p-.
    - H~ belongs to the full step size h in partial steps, too.
    - Where the full step passes a wall and the partial flow does not, the partial flow is taken without a reset.
    - H4 = 0 of SVA holds for the expansion in powers of h around H (`expansion="even"`), not around eta: MCVAA uses the former.
    - SVC is symmetric, too, and has the even expansion, contrary to the paper's remark: it is the default.
    - Moving walls, which the paper does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import casadi as ca
import numpy as np

from dalembert.contact._collision import CollisionIntegrator, Maps, Reset
from dalembert.contact._flow import Equations, Flow, Point
from dalembert.contact.cva import divided_difference, normal, quadratic_reset
from dalembert.errors import UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.modified import ModifiedHamiltonian, modified_hamiltonian
from dalembert.systems import MechanicalSystem, System
from dalembert.tableaux import gauss

_modified: dict[tuple[str, OneStepMethod, int, str], ModifiedHamiltonian] = {}


@dataclass(frozen=True, init=False, repr=False)
class MCVA(CollisionIntegrator):
    """The generalised modified collision Verlet algorithm (section 4.4): what the full steps conserve is kept at impacts.

    Phi^full is the base method. Phi^partial is a Gauss method, of an order not below `order`, for Hamilton's equations of its
    truncated modified Hamiltonian H~, and the reset is

        q+ = q-,   p+ = p- + lambda grad phi(q),   H~(q+, p+, h) = H~(q-, p-, h),   p+ != p-                               (34)

    H~ belongs to the full step size h throughout. `order` and `expansion` are those of `da.modified_hamiltonian`. Systems with
    forces, holonomic constraints or an H that depends on time have no modified Hamiltonian and are refused; with a moving wall
    H~+ - H~- = -lambda phi_t.

    S. D. Bond and B. J. Leimkuhler, SIAM J. Sci. Comput. 30 (2007) 134-147; Pekarek and Murphey (2014), sections 4.3, 4.4.

    Example:
        >>> import numpy as np, dalembert as da
        >>> pendulum = da.Lagrangian(lambda q, v: v @ v / 2 + np.cos(q[0]), dim=1, unilateral=lambda q: q[0] + 0.2)
        >>> run = da.simulate(pendulum, da.MCVA(), q0=[1.0], v0=[0.0], h=0.1, steps=1000)
        >>> kept = da.modified_hamiltonian(pendulum, da.Variational("SVC"), 4, "even")(run.q, run.p, 0.1)
        >>> bool(np.ptp(kept) < 1e-2 * np.ptp(run.energy))
        True

    """

    base: str | Callable[..., Any] | OneStepMethod
    truncation: int
    """The power of h that H~ leaves out."""
    expansion: Literal["eta", "even"]
    collision_tolerance: float | None
    symplectic: ClassVar[bool | None] = False
    full_is_partial: ClassVar[bool] = False

    def __init__(
        self,
        base: str | Callable[..., Any] | OneStepMethod = "SVC",
        order: int = 4,
        expansion: Literal["eta", "even"] = "even",
        *,
        collision_tolerance: float | None = None,
    ) -> None:
        given = {"base": base, "truncation": order, "expansion": expansion, "collision_tolerance": collision_tolerance}
        for name, value in given.items():
            object.__setattr__(self, name, value)
        self._check_arguments()

    def check(self, system: System) -> None:
        """Refuse systems without a modified Hamiltonian."""
        super().check(system)
        assert isinstance(system, MechanicalSystem)
        try:
            self.modified(system)
        except UnsupportedSystem as error:
            raise UnsupportedSystem(f"{self} cannot serve this system ({error}); da.CVA(base) and da.VCI(base) can") from None

    def modified(self, system: MechanicalSystem) -> ModifiedHamiltonian:
        """H~, the truncated modified Hamiltonian of the base method; made once for equal models."""
        key = (system.smooth.fingerprint, self.full, self.truncation, self.expansion)
        if key not in _modified:
            _modified[key] = modified_hamiltonian(system.smooth, self.full, self.truncation, self.expansion)
        return _modified[key]

    def maps(self, system: MechanicalSystem, at: Point) -> Maps:
        """Phi~ of H~, and R^MCVA."""
        H_mod = self.modified(system)
        velocity = H_mod.at(at.q, at.p, ca.SX(0, 1), at.h, at.theta)[1][system.dim :] if H_mod.explicit else None
        return Maps(modified_flow(system, H_mod, at), reset(system, H_mod, at), velocity=velocity)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"{super().__str__()[:-1]}, order={self.truncation}, expansion={self.expansion!r})"


def modified_flow(system: MechanicalSystem, H_mod: ModifiedHamiltonian, at: Point) -> Flow:
    """Phi~^{O(h^s)}: a Gauss method for q' = H~_p, p' = -H~_q, with Newton's matrix from H itself.

    Where H~ is a stationary value over z, z_i is an unknown of every stage.
    """
    tableau = gauss((H_mod.order + 1) // 2)
    s, n, dt = len(tableau.b), system.dim, at.dt
    A, b = ca.DM(tableau.A), ca.DM(tableau.b)
    V, W = ca.SX.sym("V", n, s), ca.SX.sym("W", n, s)
    Z = ca.SX.sym("z", 0 if H_mod.explicit else H_mod.n_internal, s)
    Q, P = ca.repmat(at.q, 1, s) + dt * V, ca.repmat(at.p, 1, s) + W
    exact, model, internal = [], [], [ca.SX(0, 1)]
    for i in range(s):
        _, gradient, N_z = H_mod.at(Q[:, i], P[:, i], Z[:, i], at.h, at.theta)
        exact.append(gradient)
        model.append(ca.vertcat(*(system.function(name)(at.t, Q[:, i], P[:, i], at.theta) for name in ("H_q", "H_p"))))
        internal.append(N_z)

    def gauss_method(gradients: list[ca.SX]) -> tuple[ca.SX, ca.SX]:
        l, k = ca.vertsplit(ca.horzcat(*gradients), [0, n, 2 * n])  # noqa: E741 - H~_q and H~_p at the stages
        stages = ca.veccat(V - k @ A.T, W + dt * (l @ A.T), *internal)
        return stages, ca.vertcat(dt * (k @ b), -dt * (l @ b))

    residual, increment = gauss_method(exact)
    model_residual, model_increment = gauss_method(model)
    v, H_q = (system.function(name)(at.t, at.q, at.p, at.theta) for name in ("H_p", "H_q"))
    c = np.asarray(tableau.c)
    z = [] if H_mod.explicit else [H_mod.guess(at.q, at.p, at.theta)] * s
    guess = ca.veccat(ca.repmat(v, s, 1), ca.kron(ca.DM(c), -dt * H_q), *z)
    scales = (("velocity", s * n), ("momentum", s * n), ("velocity", Z.numel()))
    equations = Equations(ca.veccat(V, W, Z), scales, guess, residual, model_residual)  # type: ignore[arg-type]
    return Flow(equations, increment, model_increment)


def reset(system: MechanicalSystem, H_mod: ModifiedHamiltonian, at: Point) -> Reset:
    """R^MCVA, (34), without the trivial root lambda = 0."""
    explicit = H_mod.explicit and not ca.depends_on(system.function("H_pp")(at.t, at.q, at.p, at.theta), at.p)
    return (_polynomial_reset if explicit else _general_reset)(system, H_mod, at)


def _polynomial_reset(system: MechanicalSystem, H_mod: ModifiedHamiltonian, at: Point) -> Reset:
    """The reset where H~ is a polynomial of degree `order` in p, as in the even expansion of a quadratic H.

    H~+ - H~- = lambda grad phi . mean of H~_p between p- and p+: a Gauss quadrature of the mean is exact, and lambda drops out.
    """
    n, phi_t = normal(system, at)
    lam = ca.SX.sym("lam")
    middle = at.p + lam * n / 2
    rule = gauss((H_mod.order + 1) // 2)
    places = (rule.c - rule.c[::-1]) / 2  # about the middle, and exactly symmetric: else round-off would have a sign
    mean = ca.SX(0)
    for b, c in zip(rule.b, places, strict=True):
        mean += b * H_mod.at(at.q, middle + c * (lam * n), ca.SX(0, 1), at.h, at.theta)[1][system.dim :]
    model = ca.dot(n, system.function("H_p")(at.t, at.q, middle, at.theta)) + phi_t
    equations = Equations(lam, (("momentum", 1),), quadratic_reset(system, at)[0], ca.dot(n, mean) + phi_t, model)
    return Reset(equations, lam * n, lam)


def _general_reset(system: MechanicalSystem, H_mod: ModifiedHamiltonian, at: Point) -> Reset:
    """The reset of any H~, which may be a stationary value over z: z at p-, between and at p+ are unknowns, too.

    (H~+ - H~-)/lambda loses its digits in small impacts. There Simpson's mean of grad phi . H~_p takes its place, whose error,
    of fourth order in lambda, is then below round-off.
    """
    q, p, h, theta = at.q, at.p, at.h, at.theta
    n, phi_t = normal(system, at)
    lam, elastic = ca.SX.sym("lam"), quadratic_reset(system, at)[0]
    Z = ca.SX.sym("z", 0 if H_mod.explicit else H_mod.n_internal, 3)
    momenta = [p, p + lam * n / 2, p + lam * n]
    values, gradients, internal = zip(*(H_mod.at(q, P, Z[:, k], h, theta) for k, P in enumerate(momenta)), strict=True)
    simpson = sum((w * ca.dot(n, g[system.dim :]) for w, g in zip((1 / 6, 2 / 3, 1 / 6), gradients, strict=True)), ca.SX(0))
    balance = divided_difference(system, at, lam, values[0], values[2], simpson) + phi_t
    model = ca.dot(n, system.function("H_p")(at.t, q, p + lam * n / 2, theta)) + phi_t
    guesses = [] if H_mod.explicit else [H_mod.guess(q, p + c * elastic * n, theta) for c in (0, 0.5, 1)]
    equations = Equations(
        ca.vertcat(lam, ca.vec(Z)),
        (("momentum", 1), ("velocity", Z.numel())),
        ca.vertcat(elastic, *guesses),
        ca.vertcat(balance, *internal),
        ca.vertcat(model, *internal),
    )
    return Reset(equations, lam * n, lam)


def MCVAA(collision_tolerance: float | None = None) -> MCVA:
    """MCVA with SVA between impacts and H~ = H + h^2 H_3, which leaves O(h^4): the paper's first instance (section 5.2).

    Example:
        >>> import dalembert as da
        >>> da.MCVAA()
        da.MCVA(base='SVA', order=4, expansion='even')

    """
    return MCVA("SVA", 4, "even", collision_tolerance=collision_tolerance)


def MCVAC(collision_tolerance: float | None = None) -> MCVA:
    """MCVA with SVC between impacts and H~ = eta + h H_2 + h^2 H_3, which leaves O(h^3): the paper's second (section 5.2).

    Example:
        >>> import dalembert as da
        >>> da.MCVAC()
        da.MCVA(base='SVC', order=3, expansion='eta')

    """
    return MCVA("SVC", 3, "eta", collision_tolerance=collision_tolerance)
