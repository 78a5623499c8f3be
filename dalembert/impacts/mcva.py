"""The modified collision Verlet algorithm: partial steps and resets that keep the modified Hamiltonian.

Numbers in parentheses refer to Pekarek and Murphey (2014), Int. J. Numer. Meth. Engng.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedSystem
from dalembert.impacts._collision import CollisionIntegrator, Maps, Reset
from dalembert.impacts._flow import Equations, Flow, Point
from dalembert.impacts.cva import normal, quadratic_reset
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

    base: str | Callable[..., Any]
    truncation: int
    """The power of h that H~ leaves out."""
    expansion: Literal["eta", "even"]
    collision_tolerance: float | None
    symplectic: ClassVar[bool | None] = False
    full_is_partial: ClassVar[bool] = False

    def __init__(
        self,
        base: str | Callable[..., Any] = "SVC",
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
        return Maps(modified_flow(system, H_mod, at), reset(system, H_mod, at))

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
    q, p, h, theta = at.q, at.p, at.h, at.theta
    n, phi_t = normal(system, at)
    lam, size = ca.SX.sym("lam"), 0 if H_mod.explicit else H_mod.n_internal
    z0, z1 = ca.SX.sym("z0", size), ca.SX.sym("z1", size)
    kick, elastic = lam * n, quadratic_reset(system, at)[0]
    H_pp = system.function("H_pp")(at.t, q, p, theta)
    slope = ca.dot(n, system.function("H_p")(at.t, q, p + kick / 2, theta)) + phi_t
    if H_mod.explicit and not ca.depends_on(H_pp, p):
        # H~ is then a polynomial of degree `order` in p: H~+ - H~- = kick . integral of H~_p by a Gauss quadrature that is
        # exact for it, from which lambda cancels
        rule = gauss((H_mod.order + 1) // 2)
        places = (rule.c - rule.c[::-1]) / 2  # about the middle, and exactly symmetric: else round-off would have a sign
        velocities = [H_mod.at(q, (p + kick / 2) + c * kick, z0, h, theta)[1][system.dim :] for c in places]
        mean = sum((b * v for b, v in zip(rule.b, velocities, strict=True)), ca.SX(0))
        residual, model = ca.dot(n, mean) + phi_t, slope
    else:
        (H0, _, N0), (H1, _, N1) = (H_mod.at(q, P, z, h, theta) for P, z in ((p, z0), (p + kick, z1)))
        residual = ca.vertcat((H1 - H0) / lam + phi_t, N0, N1)  # p+ != p-: divided by lambda
        model = ca.vertcat(slope, N0, N1)
    guesses = [] if H_mod.explicit else [H_mod.guess(q, P, theta) for P in (p, p + elastic * n)]
    equations = Equations(
        ca.vertcat(lam, z0, z1), (("momentum", 1), ("velocity", 2 * size)), ca.vertcat(elastic, *guesses), residual, model
    )
    return Reset(equations, kick, lam)


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
