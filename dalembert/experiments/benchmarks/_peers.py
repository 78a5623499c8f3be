"""General-purpose solvers that can be installed from PyPI, each on the formulation that suits it.

A peer prepares a problem once, and what comes back is run with one tolerance after another; only the call that integrates is
timed. All functions and Jacobians that it calls are compiled. They stop a run after a given CPU time.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from dalembert.compiler._numeric import numeric
from dalembert.experiments.benchmarks._exudyn import exudyn
from dalembert.experiments.benchmarks._heyoka import expressions
from dalembert.experiments.benchmarks._motion import Timeout
from dalembert.experiments.benchmarks._mujoco import mujoco
from dalembert.runs._index_reduction import reduce_index
from dalembert.runs._problem import Problem
from dalembert.runs._starts import initial_state
from dalembert.runs._trajectory import Trajectory

Solve = Callable[[float], Trajectory]
SYMBOLIC, LONG = 3, 8000
"""Up to so many multipliers are eliminated by symbols, more by LAPACK; longer functions are evaluated by CasADi."""


class Formulations:
    """A problem in the forms that solvers take, with theta in place; functions look at the clock now and then."""

    SELDOM = 1000
    """Calls from one look at the clock to the next, once as many were made: a look may take as long as a call."""

    def __init__(self, problem: Problem, times: np.ndarray, longest: float) -> None:
        self.reduced, self.times, self.longest = reduce_index(problem), times, longest
        self.state = initial_state(problem)[1]
        self.theta, self.xi0 = self.state.theta, self.reduced._pack(self.state)
        self.n, self.m = self.reduced.form.n_state, self.reduced.form.n_multipliers
        self.began, self.calls, self.next_look = 0.0, 0, 1

    def start(self) -> None:
        """Set the clock."""
        self.calls, self.next_look = 0, 1
        self.began = time.thread_time()

    def look(self) -> None:
        """Stop a run that takes too long; look again after as many calls as there were, at most SELDOM."""
        self.next_look = self.calls + min(self.calls, self.SELDOM)
        if time.thread_time() - self.began > self.longest:
            raise Timeout(f"stopped after {self.longest:.0f} s")

    def _timed(self, function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        def call(*arguments: Any) -> np.ndarray:
            self.calls += 1
            if self.calls >= self.next_look:
                self.look()
            return function(*arguments, self.theta)

        return call

    def compiled(self, function: ca.Function) -> Callable[..., np.ndarray]:
        """A function of arrays that looks at the clock."""
        return self._timed(_of_arrays(function))

    @property
    def eliminated(self) -> bool:
        """Whether multipliers can be eliminated."""
        return self.reduced.form.linear_in_multipliers

    @cached_property
    def start_of_ode(self) -> np.ndarray:
        """The state, with its multipliers if they are integrated."""
        return self.xi0[: self.n] if self.eliminated else self.xi0

    @cached_property
    def ode(self) -> Callable[..., np.ndarray]:
        """The underlying ODE: multipliers are eliminated where they enter linearly, and integrated where not."""
        if not self.eliminated:
            return self.compiled(self.reduced.ode)
        if self.m <= SYMBOLIC:
            return self.compiled(self.reduced.state_ode)
        t, y, z, lam, psi, theta = self.reduced._symbols
        x, form = ca.vertcat(y, z), self.reduced.form
        rows = ca.horzcat(*(form.function(name)(t, y, z, theta) for name in ("multiplier_matrix", "multiplier_rhs")))
        linear = _of_arrays(ca.Function("linear", [t, x, theta], [ca.densify(rows)]))
        rate = _of_arrays(ca.Function("rate", [t, x, ca.vertcat(lam, psi), theta], [ca.densify(self.reduced._rate)]))

        def slope(t: float, x: np.ndarray, theta: np.ndarray) -> np.ndarray:
            known = linear(t, x, theta)
            return rate(t, x, np.linalg.lstsq(known[:, :-1], known[:, -1], rcond=1e-12)[0], theta)

        return self._timed(slope)

    @cached_property
    def ode_jacobian(self) -> Callable[..., np.ndarray] | None:
        """Its derivative, where it is symbolic."""
        if self.eliminated and self.m > SYMBOLIC:
            return None
        function = self.reduced.state_ode if self.eliminated else self.reduced.ode
        t, x, theta = (ca.SX.sym(name, function.size1_in(i)) for i, name in enumerate(("t", "x", "theta")))
        return self.compiled(ca.Function("slope", [t, x, theta], [ca.densify(ca.jacobian(function(t, x, theta), x))]))

    def _implicit(self) -> tuple[ca.SX, ...]:
        t, *unknowns, theta = self.reduced._symbols
        xi, rate = ca.vertcat(*unknowns), ca.SX.sym("rate", self.n + self.m)
        return t, xi, rate, theta, self.reduced.mass_matrix(t, xi, theta) @ rate - self.reduced.index_one(t, xi, theta)

    @cached_property
    def residual(self) -> Callable[..., np.ndarray]:
        """Of the DAE of index 1."""
        t, xi, rate, theta, defect = self._implicit()
        return self.compiled(ca.Function("residual", [t, xi, rate, theta], [ca.densify(defect)]))

    @cached_property
    def residual_jacobian(self) -> Callable[..., np.ndarray]:
        """Its derivative by xi plus cj times that by xi'."""
        t, xi, rate, theta, defect = self._implicit()
        cj = ca.SX.sym("cj")
        slope = ca.jacobian(defect, xi) + cj * ca.jacobian(defect, rate)
        return self.compiled(ca.Function("slope", [t, xi, rate, cj, theta], [ca.densify(slope)]))

    @cached_property
    def first_rate(self) -> np.ndarray:
        """xi' at the start: of the state by the ODE, and of the multipliers zero, which solvers correct."""
        rate = np.zeros(self.n + self.m)
        self.start()
        rate[: self.n] = self.ode(self.state.t, self.start_of_ode)[: self.n]
        return rate

    def trajectory(self, name: str, x: np.ndarray, message: str) -> Trajectory:
        """What a solver found at the times, as a run."""
        seconds = time.thread_time() - self.began
        if message:
            raise RuntimeError(message)
        full = np.hstack([x, np.zeros((len(x), self.n + self.m - x.shape[1]))])
        return self.reduced._trajectory(self.state, self.times, full, name, "", {"cpu_seconds": seconds})


def _of_arrays(function: ca.Function) -> Callable[..., np.ndarray]:
    """In machine code, unless the function is long."""
    if function.n_instructions() <= LONG:
        return numeric(function)
    column = function.size2_out(0) == 1
    return lambda *values: np.asarray(function(*values))[:, 0] if column else np.asarray(function(*values))


def scipy(method: str) -> Callable[[Problem, np.ndarray, float], Solve]:
    """SciPy's solve_ivp on the underlying ODE."""

    def prepare(problem: Problem, times: np.ndarray, longest: float) -> Solve:
        from scipy.integrate import solve_ivp

        forms = Formulations(problem, times, longest)
        f = forms.ode
        options = {"jac": forms.ode_jacobian} if method == "Radau" else {}

        def solve(tolerance: float) -> Trajectory:
            forms.start()
            found = solve_ivp(
                f,
                (times[0], times[-1]),
                forms.start_of_ode,
                method,
                times,
                rtol=max(tolerance, 3e-14),
                atol=tolerance,
                **options,
            )
            return forms.trajectory(method, found.y.T, "" if found.success else found.message)

        return solve

    return prepare


def ida(problem: Problem, times: np.ndarray, longest: float) -> Solve:
    """IDA of SUNDIALS on the DAE of index 1."""
    from sksundae.ida import IDA

    forms = Formulations(problem, times, longest)
    residual, slope, rate = forms.residual, forms.residual_jacobian, forms.first_rate
    algebraic = {"algebraic_idx": list(range(forms.n, forms.n + forms.m))} if forms.m else {}

    def fill(t: float, y: np.ndarray, yp: np.ndarray, res: np.ndarray) -> None:
        res[:] = residual(t, y, yp)

    def fill_slope(t: float, y: np.ndarray, yp: np.ndarray, res: np.ndarray, cj: float, JJ: np.ndarray) -> None:
        JJ[:] = slope(t, y, yp, cj)

    def solve(tolerance: float) -> Trajectory:
        solver = IDA(fill, jacfn=fill_slope, rtol=tolerance, atol=tolerance, max_num_steps=10_000_000, **algebraic)
        forms.start()
        found = solver.solve(times, forms.xi0, rate)
        return forms.trajectory("IDA", found.y, "" if found.success else found.message)

    return solve


def scipy_dae(problem: Problem, times: np.ndarray, longest: float) -> Solve:
    """Radau IIA of scipy_dae on the DAE of index 1."""
    from scipy_dae.integrate import solve_dae

    forms = Formulations(problem, times, longest)
    residual, slope, rate = forms.residual, forms.residual_jacobian, forms.first_rate

    def jacobian(t: float, y: np.ndarray, yp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        by_y = slope(t, y, yp, 0.0)
        return by_y, slope(t, y, yp, 1.0) - by_y

    def solve(tolerance: float) -> Trajectory:
        forms.start()
        found = solve_dae(
            residual, (times[0], times[-1]), forms.xi0, rate, method="Radau", t_eval=times, rtol=tolerance, atol=tolerance,
            jac=jacobian,
        )  # fmt: skip
        return forms.trajectory("scipy_dae", found.y.T, "" if found.success else found.message)

    return solve


def heyoka(problem: Problem, times: np.ndarray, longest: float) -> Solve:
    """The Taylor integrator of heyoka on the underlying ODE, which it compiles itself."""
    import heyoka as hy

    forms = Formulations(problem, times, longest)
    names = [f"x{i}" for i in range(forms.n)]
    system = list(zip(hy.make_vars(*names), expressions(forms.reduced.state_ode, names, forms.theta), strict=True))
    y0, many = forms.start_of_ode.tolist(), forms.reduced.state_ode.n_instructions() > 400
    solvers: dict[float, Any] = {}

    def solve(tolerance: float) -> Trajectory:
        if tolerance not in solvers:
            solvers[tolerance] = hy.taylor_adaptive(system, y0, tol=tolerance, compact_mode=many)
        solver = solvers[tolerance]
        forms.start()
        solver.time = times[0]
        solver.state[:] = y0
        return forms.trajectory("heyoka", solver.propagate_grid(times)[-1], "")

    return solve


@dataclass(frozen=True)
class Peer:
    """A solver: the module and the package that it needs, how a problem is prepared for it, and its tolerances.

    Those that take bodies are prepared for a mechanism and its start, and have numbers of steps for tolerances.
    """

    module: str
    package: str
    prepare: Callable[..., Callable[[float], Any]]
    tolerances: tuple[float, ...]
    takes_bodies: bool = False

    @property
    def installed(self) -> bool:
        """Whether its module can be imported."""
        return importlib.util.find_spec(self.module) is not None


def _down_to(last: int, step: int = 2) -> tuple[float, ...]:
    return tuple(10.0**-k for k in range(4, last + 1, step))


STEPS = tuple(400.0 * 4**k for k in range(7))
"""Multiples of all numbers of outputs."""
PEERS: dict[str, Peer] = {
    "SciPy DOP853, underlying ODE": Peer("scipy", "scipy", scipy("DOP853"), _down_to(12)),
    "SciPy Radau, underlying ODE": Peer("scipy", "scipy", scipy("Radau"), _down_to(10)),
    "SUNDIALS IDA, index 1": Peer("sksundae", "scikit-sundae", ida, _down_to(12)),
    "scipy_dae Radau, index 1": Peer("scipy_dae", "scipy_dae", scipy_dae, _down_to(10)),
    "heyoka, underlying ODE": Peer("heyoka", "heyoka", heyoka, _down_to(16, 3)),
    "Exudyn, trapezoidal rule, index 2": Peer("exudyn", "exudyn", exudyn(1.0), STEPS, True),
    "Exudyn, generalised alpha, 0.9": Peer("exudyn", "exudyn", exudyn(0.9), STEPS, True),
    "MuJoCo, RK4": Peer("mujoco", "mujoco", mujoco("RK4"), STEPS, True),
    "MuJoCo, implicit": Peer("mujoco", "mujoco", mujoco("implicit"), STEPS, True),
}
