"""Discrete mechanics: what follows from a discrete Lagrangian besides its integrator.

D. Pekarek and T. D. Murphey, Discrete Lagrangian mechanics for nonseparable nonsmooth systems, Int. J. Numer. Meth. Engng
(2014), sections 3.1, 3.2 and 3.5; J. E. Marsden and M. West, Discrete mechanics and variational integrators, Acta Numerica 10
(2001). Equation numbers refer to the former.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import DalembertError, InputError, UnsupportedSystem
from dalembert.methods._discrete_lagrangian import discrete_lagrangian, has_force
from dalembert.runs._problem import Problem, stated
from dalembert.runs._trajectory import Trajectory
from dalembert.symbolic import from_column
from dalembert.systems import MechanicalSystem
from dalembert.systems._model import call_model, vector_expression


class DiscreteMechanics:
    """The discrete mechanics of a system and a discrete Lagrangian.

    `L_d` is a variational method, or what `da.Variational` takes. All functions take one pair of configurations (q_0, q_1) or
    many of them, one a row, and internal configurations are solved for. `energy_along` and `momentum_along` read a run
    that stored every step, of the same method.

    Example:
        >>> import numpy as np, dalembert as da
        >>> kepler = da.Lagrangian(lambda q, v: v @ v / 2 + 1 / np.sqrt(q @ q), dim=2)
        >>> run = da.simulate(kepler, da.Variational("SVC"), q0=[1, 0], v0=[0, 1.2], h=0.05, steps=1000)
        >>> mechanics = da.DiscreteMechanics(kepler, "SVC")
        >>> angular = mechanics.momentum_along(run, lambda q: [-q[1], q[0]])
        >>> bool(np.ptp(angular) < 1e-12), bool(np.ptp(mechanics.energy_along(run)) < 2e-3)
        (True, True)

    """

    def __init__(self, system: MechanicalSystem | Problem, L_d: Any, *, params: Mapping[str, Any] | None = None) -> None:
        model, _ = stated(system)
        if not isinstance(model, MechanicalSystem):
            raise UnsupportedSystem(f"discrete mechanics takes a da.Lagrangian or da.Hamiltonian; got {type(model).__name__}")
        self.system = model
        self._theta = self.system.parameters.vector(params)
        self._L_d = discrete_lagrangian(self.system, L_d)

    # -- functions of pairs of configurations ------------------------------------------------------------------------

    def lagrangian(self, q0: Any, q1: Any, h: float, *, t0: Any = 0.0) -> np.ndarray:
        """L_d(q_0, q_1, h)."""
        return self._evaluate("L_d", q0, q1, h, t0)

    def legendre_minus(self, q0: Any, q1: Any, h: float, *, t0: Any = 0.0) -> np.ndarray:
        """p_0 = -D_1 L_d(q_0, q_1, h) - f^-, the momentum of the discrete Legendre transform F^- L_d (14)."""
        return self._evaluate("p0", q0, q1, h, t0)

    def legendre_plus(self, q0: Any, q1: Any, h: float, *, t0: Any = 0.0) -> np.ndarray:
        """p_1 = D_2 L_d(q_0, q_1, h) + f^+, the momentum of the discrete Legendre transform F^+ L_d (13)."""
        return self._evaluate("p1", q0, q1, h, t0)

    def energy(self, q0: Any, q1: Any, h: float, *, t0: Any = 0.0) -> np.ndarray:
        """The discrete energy -D_3 L_d(q_0, q_1, h)."""
        return self._evaluate("energy", q0, q1, h, t0)

    def symplectic_form(self, q0: Any, q1: Any, h: float, *, t0: Any = 0.0) -> np.ndarray:
        """The matrix D_1 D_2 L_d (rows q_0, columns q_1) of the discrete symplectic form of section 3.5.

        On two variations (a_0, a_1) and (b_0, b_1) of a pair the form is a_0^T D_1 D_2 L_d b_1 - b_0^T D_1 D_2 L_d a_1, up to
        its sign; the discrete flow keeps it.
        """
        self._without_force("the discrete symplectic form")
        # the internal configurations move with q_1: R(x, q_1) = 0
        D_1_q1, D_1_x, R_q1, R_x = (self._evaluate(name, q0, q1, h, t0) for name in ("D_1_q1", "D_1_x", "R_q1", "R_x"))
        return D_1_q1 - D_1_x @ np.linalg.solve(R_x, R_q1)

    def right_hamiltonian(self, q0: Any, p1: Any, h: float, *, t0: Any = 0.0) -> np.ndarray:
        """H_d^+(q_0, p_1, h) = p_1 . q_1 - L_d(q_0, q_1, h) with p_1 = D_2 L_d(q_0, q_1, h): (21), (22)."""
        self._without_force("the right discrete Hamiltonian")
        if self.system.n_holonomic:
            raise UnsupportedSystem("the right discrete Hamiltonian needs a system without constraints: eliminate them first")
        q0, p1 = np.asarray(q0, dtype=float), np.asarray(p1, dtype=float)
        shape = np.broadcast_shapes(q0.shape, p1.shape)
        start, momenta = (np.broadcast_to(x, shape).reshape(-1, self.system.dim) for x in (q0, p1))
        times = np.broadcast_to(np.asarray(t0, dtype=float), shape[:-1]).reshape(-1)
        # the start of the iteration: the velocity H_p(q_0, p_1)
        velocity = self.system.function("H_p").map(len(start))(
            times[None], start.T, momenta.T, _columns(self._theta, len(start))
        )
        guess = np.vstack([c * np.asarray(velocity, dtype=float) for c in (*self._L_d.formula.internal, 1.0)])
        sizes = np.full((1, len(start)), float(h))
        V = _solve(self._towards_momentum, guess, (times[None], sizes, start.T, momenta.T), self._theta)
        q1 = start + h * V[-self.system.dim :].T
        L_d = self._L_d.in_increments.map(len(start))(times[None], sizes, start.T, V, _columns(self._theta, len(start)))[0]
        return (np.sum(momenta * q1, axis=1) - np.asarray(L_d, dtype=float)[0]).reshape(shape[:-1])

    # -- functions of a run ------------------------------------------------------------------------------------------

    def energy_along(self, run: Trajectory) -> np.ndarray:
        """The discrete energy -D_3 L_d(q_k, q_{k+1}, h) of each step of a run."""
        return self.energy(*self._pairs(run), t0=run.t[:-1])

    def momentum_along(self, run: Trajectory, xi: Callable) -> np.ndarray:
        """The discrete Noether quantity D_2 L_d(q_k, q_{k+1}, h) . xi(q_{k+1}) of each step of a run.

        `xi` is the infinitesimal generator of a symmetry, a NumPy function of `q` and parameters: if L_d is invariant under
        the flow of xi, which it is where L is and xi is affine in q, the quantity is constant.
        """
        generator = _along(self.system, xi, run.t[1:], run.q[1:], self._theta)
        return np.sum(self.legendre_plus(*self._pairs(run), t0=run.t[:-1]) * generator, axis=1)

    def _pairs(self, run: Trajectory) -> tuple[np.ndarray, np.ndarray, float]:
        if len(run.t) < 2 or not np.allclose(np.diff(run.t), run.h, rtol=1e-6, atol=0.0):
            raise InputError("discrete mechanics needs every step of a run: simulate it with save_every=1")
        return run.q[:-1], run.q[1:], run.h

    # -- evaluation --------------------------------------------------------------------------------------------------

    def _without_force(self, what: str) -> None:
        if has_force(self.system):
            raise UnsupportedSystem(f"{what} belongs to systems without force: leave the force out of the model")

    @cached_property
    def _symbols(self) -> tuple[ca.SX, ...]:
        n, count = self.system.dim, len(self._L_d.formula.internal)
        t0, h, q0, q1 = ca.SX.sym("t0"), ca.SX.sym("h"), ca.SX.sym("q0", n), ca.SX.sym("q1", n)
        x = ca.SX.sym("x", count * (n + self.system.n_holonomic))
        return t0, h, q0, q1, x, ca.SX.sym("theta", self.system.parameters.size)

    @cached_property
    def _internal(self) -> tuple[ca.SX, dict[str, ca.SX]]:
        """The equations of the internal configurations and their multipliers x, and L_d with its derivatives there."""
        t0, h, q0, q1, x, theta = self._symbols
        n, m, count = self.system.dim, self.system.n_holonomic, len(self._L_d.formula.internal)
        V, L = x[: n * count], ca.reshape(x[n * count :], m, count)
        values = self._L_d.in_increments(t0=t0, h=h, q0=q0, V=ca.vertcat(V, (q1 - q0) / h), theta=theta)
        rows, J = [ca.SX(0, 1)], values["D"] + values["f"]
        for j, (c, weight) in enumerate(zip(self._L_d.formula.internal, self._L_d.formula.weights[1:-1], strict=True)):
            t, q = t0 + c * h, q0 + h * V[j * n : (j + 1) * n]
            rows.append(J[:, j + 1] + weight * self.system.function("reaction")(t, q, L[:, j], theta))
            rows.append(self.system.function("g")(t, q, theta) / h)
        return ca.vertcat(*rows), values

    @cached_property
    def _stationarity(self) -> ca.Function:
        """(x; t0, h, q0, q1, theta) -> the equations of the internal configurations and their Jacobian."""
        t0, h, q0, q1, x, theta = self._symbols
        R = self._internal[0]
        return ca.Function("stationarity", [x, t0, h, q0, q1, theta], [R, ca.densify(ca.jacobian(R, x))])

    @cached_property
    def _towards_momentum(self) -> ca.Function:
        """(V; t0, h, q0, p1, theta) -> the equations D_internal = 0 and D_2 L_d = p_1, and their Jacobian."""
        t0, h, q0, p1, _, theta = self._symbols
        n, count = self.system.dim, len(self._L_d.formula.internal)
        V = ca.SX.sym("V", n * (count + 1))
        D = self._L_d.in_increments(t0=t0, h=h, q0=q0, V=V, theta=theta)["D"]
        R = ca.vec(D[:, 1:]) - ca.vertcat(ca.SX.zeros(n * count, 1), p1)
        return ca.Function("towards_momentum", [V, t0, h, q0, p1, theta], [R, ca.densify(ca.jacobian(R, V))])

    @cached_property
    def _outputs(self) -> dict[str, tuple[tuple[int, ...], ca.Function]]:
        """The shape of each output and its elements, row by row, as a function of (t0, h, q0, q1, x, theta)."""
        _, _, _, q1, x, _ = self._symbols
        R, values = self._internal
        J, D_1 = values["D"] + values["f"], values["D"][:, 0]
        scalars = {"L_d": values["L_d"], "energy": -values["D_3"]}
        vectors = {"p0": -J[:, 0], "p1": J[:, -1]}
        matrices = {
            f"{name}_{by}": ca.jacobian(F, X) for name, F in (("D_1", D_1), ("R", R)) for by, X in (("q1", q1), ("x", x))
        }
        shapes = dict.fromkeys(scalars, ()) | {name: v.shape[:1] for name, v in vectors.items()}
        shapes |= {name: matrix.shape for name, matrix in matrices.items()}
        return {
            name: (shapes[name], ca.Function(name, list(self._symbols), [ca.densify(ca.vec(value.T))]))
            for name, value in (scalars | vectors | matrices).items()
        }

    def _evaluate(self, name: str, q0: Any, q1: Any, h: float, t0: Any) -> np.ndarray:
        n, q0, q1 = self.system.dim, np.asarray(q0, dtype=float), np.asarray(q1, dtype=float)
        if q0.shape != q1.shape or q0.shape[-1:] != (n,):
            raise InputError(f"q0 and q1 are pairs of configurations of {n} coordinates; got shapes {q0.shape} and {q1.shape}")
        lead = q0.shape[:-1]
        t = np.broadcast_to(np.asarray(t0, dtype=float), lead).reshape(1, -1)
        start, end = q0.reshape(-1, n).T, q1.reshape(-1, n).T
        count = start.shape[1]
        data = (t, np.full((1, count), float(h)), start, end)
        c = np.asarray(self._L_d.formula.internal, dtype=float)
        V = c[:, None, None] * ((end - start) / h)
        guess = np.vstack([V.reshape(len(c) * n, count), np.zeros((len(c) * self.system.n_holonomic, count))])
        x = _solve(self._stationarity, guess, data, self._theta)
        shape, function = self._outputs[name]
        value = function.map(count)(*data, x, _columns(self._theta, count))
        return np.asarray(value, dtype=float).T.reshape((*lead, *shape))


def momentum_map(run: Trajectory, xi: Callable) -> np.ndarray:
    """The momentum map p . xi(q) along a run of any method; `xi` is the infinitesimal generator of a symmetry.

    `xi` is a NumPy function of the arguments that it names, out of `t`, `q` and the parameters of the model.

    Example:
        >>> import numpy as np, dalembert as da
        >>> kepler = da.Lagrangian(lambda q, v: v @ v / 2 + 1 / np.sqrt(q @ q), dim=2)
        >>> run = da.simulate(kepler, da.LobattoGalerkin(stages=3), q0=[1, 0], v0=[0, 1.2], h=0.05, steps=1000)
        >>> bool(np.ptp(da.momentum_map(run, lambda q: [-q[1], q[0]])) < 1e-13)
        True

    """
    if not isinstance(run.system, MechanicalSystem):
        raise InputError(
            "a momentum map needs a run of a da.Lagrangian or da.Hamiltonian with its model; of a loaded one, compute "
            "np.sum(run.p * xi, axis=1) from arrays"
        )
    theta = np.concatenate([np.zeros(0), *(value.ravel() for value in run.parameters.values())])
    return np.sum(run.p * _along(run.system, xi, run.t, run.q, theta), axis=1)


def _along(system: MechanicalSystem, xi: Callable, t: np.ndarray, q: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The values of a generator xi(t, q), one row each."""
    time, position = ca.SX.sym("t"), ca.SX.sym("q", system.dim)
    arguments = {"t": from_column(time)[0], "q": from_column(position)}
    expression = vector_expression("xi", call_model("xi", xi, arguments, system.parameters), system.dim)
    function = ca.Function("xi", [time, position, system.parameters.theta], [ca.densify(expression)])
    return np.asarray(function.map(len(t))(t[None], q.T, _columns(theta, len(t))), dtype=float).T


def _columns(theta: np.ndarray, count: int) -> np.ndarray:
    return np.repeat(theta[:, None], count, axis=1)


def _solve(equations: ca.Function, guess: np.ndarray, data: tuple[np.ndarray, ...], theta: np.ndarray) -> np.ndarray:
    """Newton's iteration for many small systems at once, one a column, until the increments stop shrinking at round-off."""
    x, (size, count), last = guess, guess.shape, np.inf
    if size == 0:
        return x
    many, parameters = equations.map(count), _columns(theta, count)
    for _ in range(50):
        residual, jacobian = (np.asarray(part, dtype=float) for part in many(x, *data, parameters))
        matrices = jacobian.T.reshape(count, size, size).swapaxes(1, 2)
        try:
            change = np.linalg.solve(matrices, residual.T[:, :, None])[:, :, 0].T
        except np.linalg.LinAlgError:
            break
        x = x - change
        largest = float(np.max(np.abs(change) / (1.0 + np.abs(x))))
        if largest == 0.0 or (largest < 1e-9 and largest >= 0.1 * last):
            return x
        last = largest
    raise DalembertError(
        "the equations of the internal configurations, or of q_1, could not be solved: take a smaller h, and "
        "pairs (q_0, q_1) that a step of this size can join"
    )
