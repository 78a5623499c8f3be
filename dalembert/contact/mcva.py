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

from dalembert.contact._collision import CollisionIntegrator, Maps
from dalembert.contact._flow import Event, Flow, Point, Reset
from dalembert.contact.cva import divided_difference, elastic_impulses
from dalembert.errors import UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.modified import ModifiedHamiltonian, modified_hamiltonian
from dalembert.symbolic import Scalar, SymbolicArray, as_column, from_column
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
        H_mod, event = self.modified(system), Event(system, at)
        velocity = None
        if H_mod.explicit:
            _, _, H_p, _ = Modified(H_mod, event)(event.q, event.p)
            velocity = as_column(H_p)
        return Maps(modified_flow(event, H_mod), reset(Event(system, at), H_mod), velocity=velocity)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"{super().__str__()[:-1]}, order={self.truncation}, expansion={self.expansion!r})"


@dataclass(frozen=True, eq=False)
class Modified:
    """H~ at an event, with the size h of a full step; where it is a stationary value over z, z is an unknown."""

    H_mod: ModifiedHamiltonian
    event: Event

    def __call__(self, q: Any, p: Any, z: Any = ()) -> tuple[Any, Any, Any, Any]:
        """H~(q, p, h), H~_q, H~_p, and N_z, which is zero for the right z."""
        at = self.event.at
        value, gradient, N_z = self.H_mod.at(as_column(q), as_column(p), as_column(z), at.h, at.theta)
        H_q, H_p = np.split(from_column(gradient), 2)
        return Scalar(value), H_q, H_p, from_column(N_z)

    def z(self, p: SymbolicArray) -> SymbolicArray:
        """A guess of z; there is none where z is known as a function of (q, p)."""
        at, H_mod = self.event.at, self.H_mod
        return from_column(ca.SX(0, 1) if H_mod.explicit else H_mod.guess(at.q, as_column(p), at.theta))


def modified_flow(event: Event, H_mod: ModifiedHamiltonian) -> Flow:
    """Phi~^{O(h^s)}: a Gauss method for q' = H~_p, p' = -H~_q, with Newton's matrix from H itself."""
    t, dt, q, p, system, modified = event.t, event.dt, event.q, event.p, event.system, Modified(H_mod, event)
    tableau = gauss((H_mod.order + 1) // 2)
    A, b, c = tableau.A, tableau.b, tableau.c
    V = event.unknowns("V", np.stack([system.H_p(t, q, p)] * len(b)), "velocity")
    W = event.unknowns("W", c[:, None] * (-dt * system.H_q(t, q, p)), "momentum")
    Z = event.unknowns("z", np.stack([modified.z(p)] * len(b)), "velocity")
    # fmt: off
    Q, P = q + dt * V, p + W
    _, H_q, H_p, N_z = (np.stack(part) for part in zip(*map(modified, Q, P, Z), strict=True))
    l, k = system.H_q(t, Q, P), system.H_p(t, Q, P)  # noqa: E741 - those of H
    event.equation(V, A @ H_p, model=V - A @ k)                                    # V_i = sum_j a_ij H~_p(Q_j, P_j)
    event.equation(W, -dt * (A @ H_q), model=W + dt * (A @ l))                     # W_i = -dt sum_j a_ij H~_q(Q_j, P_j)
    event.equation(N_z, 0)
    increment, model = np.concatenate([dt * (b @ H_p), -dt * (b @ H_q)]), np.concatenate([dt * (b @ k), -dt * (b @ l)])
    # fmt: on
    return Flow(event.equations, as_column(increment), as_column(model))


def reset(event: Event, H_mod: ModifiedHamiltonian) -> Reset:
    """R^MCVA, (34), without the trivial root lambda = 0.

    H~+ - H~- = lambda grad phi . mean of H~_p between p- and p+. Where H~ is a polynomial of degree `order` in p, as in the
    even expansion of a quadratic H, a Gauss quadrature of the mean is exact, and lambda drops out. Else (H~+ - H~-)/lambda
    loses its digits in small impacts: there Simpson's rule takes its place, whose error, of fourth order in lambda, is then
    below round-off; z at p-, between and at p+ are unknowns, too.
    """
    t, q, p, n, phi_t, modified = event.t, event.q, event.p, event.normal, event.phi_t, Modified(H_mod, event)
    elastic = elastic_impulses(event)[0]
    lam = event.unknowns("lam", elastic, "momentum")
    kick = lam * n
    middle = p + kick / 2
    model = n @ event.system.H_p(t, q, middle) + phi_t
    # fmt: off
    if H_mod.explicit and event.quadratic:
        rule = gauss((H_mod.order + 1) // 2)
        places = (rule.c - rule.c[::-1]) / 2  # about the middle, and exactly symmetric: else round-off would have a sign
        mean = sum(b * modified(q, middle + c * kick)[2] for b, c in zip(rule.b, places, strict=True))
        event.equation(n @ mean + phi_t, 0, model)                                                                     # (34)
    else:
        Z = event.unknowns("z", np.stack([modified.z(p + c * elastic * n) for c in (0, 0.5, 1)]), "velocity")
        H, _, H_p, N_z = zip(*(modified(q, P, z) for P, z in zip((p, middle, p + kick), Z, strict=True)), strict=True)
        simpson = sum(w * (n @ v) for w, v in zip((1 / 6, 2 / 3, 1 / 6), H_p, strict=True))
        event.equation(divided_difference(event, lam, H[0], H[2], simpson) + phi_t, 0, model)                          # (34)
        event.equation(np.stack(N_z), 0)
    # fmt: on
    return Reset.of(event, kick, lam)


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
