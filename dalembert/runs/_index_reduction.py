"""Index reduction: the DAE of index 1 and the ODEs behind a constrained system, for general-purpose solvers.

S. K. Hilden, Numerical methods for nonholonomic mechanics, Master's thesis, NTNU (2009), section 2.3: equation numbers refer to
it. Constraints are differentiated until the multipliers, and then their rates, can be solved for. The solutions of what results
drift off the constraints that were differentiated away: they are here to be compared with.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import casadi as ca
import numpy as np

from dalembert.errors import DalembertError, InputError, StepFailed, UnsupportedSystem, is_one_of
from dalembert.runs._problem import Problem, stated
from dalembert.runs._starts import initial_state
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import ODAE, Lagrangian, State, System
from dalembert.systems._dependency import refuse_redundant
from dalembert.systems._initial_values import finite_number

MOST_STEPS = 10_000_000


def reduce_index(system: System | Problem) -> ReducedSystem:
    """The underlying DAE of index 1 and the underlying ODEs of any constrained system or problem.

    The unknowns are xi = (y, z, lam, psi): (q, v, lam, psi) for a Lagrangian, (q, p, lam, psi) for a Hamiltonian, (y, z) for an
    index-2 DAE. Holonomic constraints are differentiated twice and nonholonomic ones once for the DAE, once more for the ODE.

    Example:
        >>> import dalembert as da
        >>> run = da.reduce_index(da.problems.vertical_disk()).simulate("DOP853", t1=10.0, rtol=1e-6, atol=1e-9)
        >>> bool(1e-9 < abs(run.residuals["k"]).max() < 1e-3)        # the original constraints drift
        True

    """
    original, _ = stated(system)
    if not isinstance(original, System):
        raise UnsupportedSystem(
            "reduce_index takes a da.Hamiltonian, a da.Lagrangian, a da.ODAE, a da.IndexTwoDAE or a problem of da.problems; "
            f"got {type(original).__name__}"
        )
    return ReducedSystem(system, original, ODAE.of(original) if isinstance(original, Lagrangian) else original)


@dataclass(frozen=True, eq=False)
class ReducedSystem:
    """What `da.reduce_index` returns: CasADi functions of (t, xi, theta), and their integration.

        M_1(xi) xi' = f_1(xi)                   of index 1, like (2.11): `mass_matrix` and `index_one`
        xi' = f_2(xi)                           like (2.12): `ode`
        x' = f(x, multipliers(x))               for x = (y, z) alone: `state_ode`, where multipliers enter linearly

    theta is the flat vector of parameters, `form.parameters.vector()`. Multipliers have dalembert's signs: Hilden's lambda is
    -psi.
    """

    source: System | Problem = field(repr=False)
    original: System
    form: System = field(repr=False)
    """The system in the variables that are integrated."""

    @cached_property
    def mass_matrix(self) -> ca.Function:
        """M_1: the identity for y, p_z for z, and zero for the multipliers."""
        t, y, z, *_, theta = self._symbols
        blocks = [ca.SX.eye(y.shape[0]), ca.SX.eye(z.shape[0]), ca.SX(self.form.n_multipliers, self.form.n_multipliers)]
        if "momentum" in self.form.function_names:
            blocks[1] = ca.jacobian(self.form.function("momentum")(t, y, z, theta), z)
        return self._function("M_1", ca.diagcat(*blocks))

    @cached_property
    def index_one(self) -> ca.Function:
        """f_1: the forces, and the derivatives of the hidden constraints, which are algebraic equations for the multipliers."""
        t, y, z, lam, psi, theta = self._symbols
        system = self.form
        v = system.function("v")(t, y, z, theta)
        force = system.function("f")(t, y, z, psi, theta) + system.function("r")(t, y, z, lam, theta)
        if "momentum" in system.function_names:
            p = system.function("momentum")(t, y, z, theta)
            force -= ca.jacobian(p, t) + ca.jacobian(p, y) @ v
        return self._function("f_1", ca.vertcat(v, force, self._hidden_rate))

    @cached_property
    def ode(self) -> ca.Function:
        """f_2: the rates of the multipliers from 0 = d/dt of the algebraic equations."""
        t, y, z, lam, psi, _ = self._symbols
        rate, multipliers, x = self._rate, ca.vertcat(lam, psi), ca.vertcat(y, z)
        along = ca.jacobian(self._hidden_rate, t) + ca.jacobian(self._hidden_rate, x) @ rate
        return self._function("f_2", ca.vertcat(rate, _solve(ca.jacobian(self._hidden_rate, multipliers), -along)))

    @cached_property
    def state_ode(self) -> ca.Function:
        """The rate of (y, z) with the multipliers eliminated, a function of (t, (y, z), theta)."""
        t, y, z, lam, psi, theta = self._symbols
        if not self.form.linear_in_multipliers:
            raise UnsupportedSystem("the multipliers enter nonlinearly and cannot be eliminated: integrate them, with `ode`")
        matrix, rhs = (self.form.function(name)(t, y, z, theta) for name in ("multiplier_matrix", "multiplier_rhs"))
        rate = ca.substitute(self._rate, ca.vertcat(lam, psi), _solve(matrix, rhs))
        return ca.Function("state_ode", [t, ca.vertcat(y, z), theta], [ca.densify(rate)])

    @cached_property
    def _symbols(self) -> tuple[ca.SX, ...]:
        (_, dim_y), (_, dim_z) = self.form.state_blocks
        sizes = {"t": 1, "y": dim_y, "z": dim_z, "lam": self.form.n_holonomic, "psi": self.form.n_nonholonomic}
        return (*(ca.SX.sym(name, size) for name, size in sizes.items()), self.form.parameters.theta)

    @property
    def _rate(self) -> ca.SX:
        t, y, z, lam, psi, theta = self._symbols
        return ca.vertcat(self.form.function("v")(t, y, z, theta), self.form.function("z_dot")(t, y, z, lam, psi, theta))

    @property
    def _hidden_rate(self) -> ca.SX:
        return self.form.function("hidden_rate")(*self._symbols)

    def _function(self, name: str, expression: ca.SX) -> ca.Function:
        t, *unknowns, theta = self._symbols
        return ca.Function(name, [t, ca.vertcat(*unknowns), theta], [ca.densify(expression)])

    # -- integration -------------------------------------------------------------------------------------------------

    def simulate(
        self,
        solver: Literal["IDA", "Radau", "DOP853"] = "IDA",
        *,
        t1: float,
        rtol: float = 1e-6,
        atol: float = 1e-9,
        multipliers: Literal["integrated", "eliminated"] = "integrated",
        times: Any = None,
        **start: Any,
    ) -> Trajectory:
        """Integrate to t1: the DAE of index 1 by IDA of SUNDIALS, the ODE by SciPy's Radau or DOP853, with variable step sizes.

        `multipliers="eliminated"` integrates (y, z) alone. `start` takes initial values as `da.simulate` does; a problem brings
        its own. States are stored at every step of the solver, or at `times`. The result is an ordinary trajectory in the
        variables of the original system: `run.residuals` shows how far the original constraints have drifted, `run.h` is the
        average step size, and `run.stage_lam` and `run.stage_psi` are the multipliers that were integrated. IDA needs the
        package scikit-sundae.

        Example:
            >>> import dalembert as da
            >>> run = da.reduce_index(da.problems.chaplygin_sleigh()).simulate("Radau", t1=5.0, rtol=1e-8, atol=1e-10)
            >>> run.q.shape[1], bool(abs(run.energy - run.energy[0]).max() < 1e-5)
            (3, True)

        """
        if not is_one_of(solver, "IDA", "Radau", "DOP853"):
            raise InputError(f'the solver is "IDA", "Radau" or "DOP853"; got {solver!r}')
        if not is_one_of(multipliers, "integrated", "eliminated") or (solver == "IDA" and multipliers == "eliminated"):
            raise InputError(
                f'multipliers are "integrated" or, by "Radau" and "DOP853", "eliminated"; got {multipliers!r} for {solver}'
            )
        state = initial_state(self.source, **start)[1]
        refuse_redundant("index reduction", self.original, state.t, state.first, state.second, state.theta)
        interval = _interval(state.t, finite_number("t1", t1), times)
        clock = time.perf_counter()
        if solver == "IDA":
            t, xi, message = self._ida(state, interval, rtol, atol)
        else:
            t, xi, message = self._scipy(solver, state, interval, rtol, atol, multipliers == "integrated", times is not None)
        stats = {"steps": len(t) - 1, "wall_seconds": time.perf_counter() - clock}
        run = self._trajectory(state, t, xi, f"{solver}, rtol {rtol:g}, atol {atol:g}, index reduction", message, stats)
        if message:
            raise StepFailed(f"{message} (what was computed before it is in the exception's .run)", run)
        return run

    def _ida(self, state: State, interval: np.ndarray, rtol: float, atol: float) -> tuple[np.ndarray, np.ndarray, str]:
        try:
            from sksundae.ida import IDA
        except ImportError:
            raise DalembertError(
                'the solver "IDA" needs the package scikit-sundae: pip install dalembert[sundials], or take "Radau" or "DOP853"'
            ) from None
        t, *unknowns, theta = self._symbols
        xi, cj = ca.vertcat(*unknowns), ca.SX.sym("cj")
        rate = ca.SX.sym("rate", xi.shape[0])
        M = self.mass_matrix(t, xi, theta)
        defect = M @ rate - self.index_one(t, xi, theta)
        residual = _numbers(ca.Function("residual", [t, xi, rate, theta], [ca.densify(defect)]), state.theta)
        slope = ca.densify(ca.jacobian(defect, xi) + cj * M)
        jacobian = _numbers(ca.Function("jacobian", [t, xi, rate, cj, theta], [slope]), state.theta)

        def fill_residual(t: float, y: np.ndarray, yp: np.ndarray, res: np.ndarray) -> None:
            res[:] = residual(t, y, yp)[:, 0]

        def fill_jacobian(t: float, y: np.ndarray, yp: np.ndarray, res: np.ndarray, cj: float, JJ: np.ndarray) -> None:
            JJ[:] = jacobian(t, y, yp, cj)

        n, m = self.form.n_state, self.form.n_multipliers
        options: dict[str, Any] = {"algebraic_idx": list(range(n, n + m))} if m else {}
        ida = IDA(fill_residual, jacfn=fill_jacobian, rtol=rtol, atol=atol, max_num_steps=MOST_STEPS, **options)
        xi0 = self._pack(state)
        solution = ida.solve(interval, xi0, _numbers(self.ode, state.theta)(state.t, xi0)[:, 0])
        return solution.t, solution.y, "" if solution.success else f"IDA stopped at t = {solution.t[-1]:g}: {solution.message}"

    def _scipy(
        self,
        method: str,
        state: State,
        interval: np.ndarray,
        rtol: float,
        atol: float,
        integrated: bool,
        at_times: bool,
    ) -> tuple[np.ndarray, np.ndarray, str]:
        from scipy.integrate import solve_ivp

        function = self.ode if integrated else self.state_ode
        y0 = self._pack(state) if integrated else self._pack(state)[: self.form.n_state]
        t, x, theta = (ca.SX.sym(name, function.size1_in(i)) for i, name in enumerate(("t", "x", "theta")))
        slope = ca.Function("slope", [t, x, theta], [ca.densify(ca.jacobian(function(t, x, theta), x))])
        f, jacobian = _numbers(function, state.theta), _numbers(slope, state.theta)
        options: dict[str, Any] = {"jac": jacobian} if method == "Radau" else {}
        options |= {"t_eval": interval} if at_times else {}
        ends = (interval[0], interval[-1])
        solution = solve_ivp(lambda t, y: f(t, y)[:, 0], ends, y0, method=method, rtol=rtol, atol=atol, **options)
        message = "" if solution.success else f"{method} stopped at t = {solution.t[-1]:g}: {solution.message}"
        return solution.t, solution.y.T, message

    def _pack(self, state: State) -> np.ndarray:
        """xi of a state of the original system; a Lagrangian's second block is the velocity."""
        second = state.v if isinstance(self.original, Lagrangian) else state.second
        return np.concatenate([state.first, second, state.multipliers])

    def _trajectory(
        self, state: State, t: np.ndarray, xi: np.ndarray, method: str, message: str, stats: dict[str, float]
    ) -> Trajectory:
        n, system = self.form.n_state, self.original
        states = xi[:, :n].copy()
        if isinstance(system, Lagrangian):
            momentum, dim = _numbers(system.function("L_v"), state.theta), system.dim
            states[:, dim:] = [momentum(*row)[:, 0] for row in zip(t, xi[:, :dim], xi[:, dim:n], strict=True)]
        stage = np.split(xi[:, n:], [system.n_holonomic], axis=1) if xi.shape[1] > n or not system.n_multipliers else None
        return Trajectory(
            t=np.asarray(t),
            states=states,
            blocks=system.state_blocks,
            h=float((t[-1] - t[0]) / max(1, len(t) - 1)),
            method=method,
            parameters=system.parameters.unflatten(state.theta),
            status="failed" if message else "done",
            message=message,
            stats=stats,
            fingerprint=system.fingerprint,
            system=system,
            start=state,
            stage_lam=None if stage is None else stage[0],
            stage_psi=None if stage is None else stage[1],
        )


def _solve(matrix: ca.SX, rhs: ca.SX) -> ca.SX:
    return ca.solve(ca.densify(matrix), rhs) if rhs.shape[0] else rhs


def _numbers(function: ca.Function, theta: np.ndarray) -> Callable[..., np.ndarray]:
    """A CasADi function with the parameters in place, on NumPy arrays.

    It reads and writes memory that is given to it once: to make matrices of the arguments takes longer than to compute.
    """
    symbols = function.sx_in()
    dense = ca.Function("numbers", symbols, [ca.densify(function(*symbols))])
    given, values = [np.zeros(dense.nnz_in(k)) for k in range(len(symbols))], np.zeros(dense.nnz_out(0))
    given[-1][:] = theta
    memory, evaluate = dense.buffer()
    for k, array in enumerate(given):
        memory.set_arg(k, array.data)
    memory.set_res(0, values.data)

    def compute(*arguments: Any, _kept: Any = memory) -> np.ndarray:  # without which `evaluate` would write into nowhere
        for array, argument in zip(given, arguments, strict=False):
            array[:] = argument
        evaluate()
        return values.reshape(dense.size_out(0), order="F").copy()

    return compute


def _interval(t0: float, t1: float, times: Any) -> np.ndarray:
    if not t1 > t0:
        raise InputError(f"t1 must be a time after t0 = {t0:g}; got {t1!r}")
    if times is None:
        return np.array([t0, t1])
    array = np.asarray(times, dtype=float)
    if array.ndim != 1 or len(array) < 3 or np.any(np.diff(array) <= 0) or array[0] != t0 or array[-1] != t1:
        raise InputError(f"times are at least three increasing times from t0 = {t0:g} to t1 = {t1:g}")
    return array
