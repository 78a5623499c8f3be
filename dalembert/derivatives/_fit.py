"""Identification: parameters and initial values for which a run agrees with data as well as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import casadi as ca
import numpy as np

from dalembert._interrupts import interruptible
from dalembert._progress import busy
from dalembert.derivatives._fitted import UNDETERMINED, Fit, warn_of_misfit
from dalembert.derivatives._given import checked_data, deviations, finite, limits, names_of
from dalembert.derivatives._loss import steps_at
from dalembert.derivatives._sensitivities import forward
from dalembert.derivatives._start import Start
from dalembert.derivatives._wanted import Differentiated, wanted
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, StepFailed
from dalembert.runs._arguments import INITIAL, check_method
from dalembert.runs._drivers import check_differentiable
from dalembert.runs._lengths import step_size
from dalembert.runs._starts import given_values, initial_state
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import State, System, consistent
from dalembert.systems._initial_values import GivenValues, finite_number
from dalembert.systems._model import one_line
from dalembert.systems._state_function import state_function


@interruptible()
def fit(
    system: Any,
    method: Any,
    t: Any,
    data: Any,
    *,
    params: Mapping[str, Any] | Sequence[str],
    h: float | None = None,
    observe: Callable | None = None,
    sigma: Any = None,
    bounds: Mapping[str, tuple[Any, Any]] | None = None,
    fixed: Mapping[str, Any] | None = None,
    start: State | None = None,
    t0: float | None = None,
    **initial: Unpack[GivenValues],
) -> Fit:
    """Find parameters and initial values for which a run agrees with measured data, by least squares with exact derivatives.

    `data` has a row for each of the times `t`, which are ends of steps, t0 + k h. `observe` says what was measured, a function
    of t, q, p, v and parameters that returns a list, by default q. `params` maps the names that are sought to guesses, or lists
    them, and the model's own values are the guesses; initial values (q0, v0 or p0, y0, z0) may be among them. Those that are
    not sought are given as to `da.simulate`; they are moved onto the constraints, which may depend on what is sought. A `start`
    gives positions and velocities, which stay when masses change, and parameters. `fixed` are values of other parameters,
    `bounds` maps names to (lower, upper), and `sigma` is the standard deviation of the data, one number or one for each column,
    which is estimated if it is not given; a warning says if the residuals contradict it.

    Example:
        >>> import numpy as np, dalembert as da
        >>> spring = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 3.0})
        >>> t = np.arange(0.0, 5.0, 0.1)
        >>> data = np.cos(2 * t)[:, None] + 1e-3 * np.sin(50 * t[:, None] ** 2)
        >>> found = da.fit(spring, da.Gauss(2), t, data, params=["k"], q0=[1.0], p0=[0.0], h=0.05)
        >>> bool(abs(found.values["k"] - 4) < 4 * found.std["k"] < 1e-2)
        True

    """
    from scipy.optimize import least_squares

    given: dict[str, Any] = {**initial}
    if start is not None:
        fixed, t0, given = _from_start(system, start, fixed, t0, given)
    problem = _Problem.of(system, method, t, data, params, h, observe, sigma, bounds, fixed, t0, given)
    scale = np.where(problem.guess != 0, np.abs(problem.guess), 1.0)
    with busy("fitting"):
        problem.check_guess()
        result = least_squares(
            problem.residuals, problem.guess, problem.jacobian, problem.bounds, x_scale=scale, method="trf", xtol=1e-9,
            ftol=1e-13, gtol=1e-15,
        )  # fmt: skip
        if result.status <= 0:
            raise StepFailed(f"the fit did not converge: {result.message}")
        return problem.found(result, scale)


@dataclass(eq=False)
class _Problem:
    """Residuals and their derivatives as functions of what is sought, in one vector."""

    system: System
    method: Any
    steps: np.ndarray
    h: float
    t0: float
    t: np.ndarray
    data: np.ndarray
    sigma: np.ndarray | None
    observed: ca.Function
    slopes: ca.Function
    given: dict[str, Any]
    fixed: dict[str, Any]
    names: tuple[str, ...]
    guess: np.ndarray
    shapes: dict[str, tuple[int, ...]]
    bounds: tuple[np.ndarray, np.ndarray]
    last: tuple[np.ndarray, np.ndarray, np.ndarray, Trajectory] | None = None
    evaluations: int = 0
    effect: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """The derivative of the start and the parameters: initial values off the constraints have no effect."""

    @classmethod
    def of(
        cls, system: Any, method: Any, t: Any, data: Any, params: Any, h: Any, observe: Any, sigma: Any, bounds: Any,
        fixed: Any, t0: Any, initial: dict[str, Any],
    ) -> _Problem:  # fmt: skip
        names = names_of("params names what is sought", params, 'params={"m": 0.2} or params=["m", "q0"]')
        sought = dict(params) if isinstance(params, Mapping) else {}
        initial = initial | {name: value for name, value in sought.items() if name in INITIAL}
        h = getattr(system, "h", None) if h is None else h
        model, begin, given = given_values(system, False, t0, {name: initial.get(name) for name in INITIAL}, fixed)
        check_method(method, model, "fit")
        check_differentiable(method, "da.fit")
        begin = 0.0 if begin is None else finite_number("t0", begin)
        size, times = step_size(h, method), np.atleast_1d(finite("the times t", t))
        with np.errstate(over="ignore"):
            length = np.round((np.max(times, initial=begin) - begin) / size) if times.ndim == 1 else 0.0
        if not abs(length) < 2**62:
            raise InputError(f"the last of the times t is {length:.3g} steps of h = {size:g} away: check their units")
        spec = RunSpec(model, method, consistent(model, t0=begin, params=fixed, **given), size, max(int(length), 1))
        steps, (observed, slopes) = steps_at(spec, times), _observation(model, observe)
        values = checked_data(data, (len(times), observed.size1_out(0)))
        own = model.parameters.unflatten(model.parameters.vector(fixed))
        parts = {each.name: each.shape for each in wanted(spec, names, given)}
        known: dict[str, Any] = own | given | sought
        guess = {name: finite(f"the guess of {name!r}", known.get(name), parts[name]) for name in names}
        return cls(
            model, method, steps, size, begin, times, values, deviations(sigma, values.shape), observed, slopes, dict(given),
            dict(fixed or {}), names, _column(guess.values()), parts, _limits(guess, bounds),
        )  # fmt: skip

    def named(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """The numbers that are sought, by name."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])[:-1]
        pairs = zip(self.shapes.items(), np.split(x, ends), strict=True)
        return {name: part.reshape(shape) for (name, shape), part in pairs}

    def _evaluate(self, x: np.ndarray) -> None:
        """The run for these numbers, its residuals and their derivatives, which are kept."""
        if self.last is not None and np.array_equal(self.last[0], x):
            return
        self.evaluations += 1
        sought = self.named(x)
        params = self.fixed | {name: value for name, value in sought.items() if name not in INITIAL}
        given = self.given | {name: value for name, value in sought.items() if name in INITIAL}
        state = consistent(self.system, t0=self.t0, params=params, **given)
        velocity = given.get("v0") is not None
        first, second = (given.get(name) for name in self._names(velocity))
        y, z = (np.zeros(0) if value is None else np.array(value, dtype=float) for value in (first, second))
        start = Start(self.system, state, y, z, velocity)
        spec = RunSpec(self.system, self.method, state, self.h, int(self.steps.max()))
        differentiated = Differentiated(spec, start, wanted(spec, self.names, given))
        s = forward(differentiated, progress=False)
        n, theta = self.system.state_blocks[0][1], state.theta
        states, S = s.run.states[self.steps], s.values[self.steps]
        arguments = (self.t[None], states[:, :n].T, states[:, n:].T, np.repeat(theta[:, None], len(self.t), axis=1))
        values = np.asarray(self.observed.map(len(self.t))(*arguments), dtype=float).T
        of_state, of_theta = (np.asarray(m, dtype=float) for m in self.slopes.map(len(self.t))(*arguments))
        m, count = values.shape[1], len(self.t)
        of_state, of_theta = (a.reshape(m, count, -1, order="C").swapaxes(0, 1) for a in (of_state, of_theta))
        seeds = (self.system.n_state + np.arange(len(theta))[:, None] == differentiated.columns).astype(float)
        self.effect = np.vstack([s.values[0], seeds])
        jacobian = np.einsum("tij,tjd->tid", of_state, S) + of_theta @ seeds
        self.last = x.copy(), values - self.data, jacobian, s.run

    def check_guess(self) -> None:
        """Refuse residuals of the guess that are no numbers, or whose squares are none."""
        with np.errstate(all="ignore"):
            r = self.residuals(self.guess)
            if not np.isfinite(r @ r):
                raise InputError(
                    "the sum of squares of the residuals is no finite number at the guess: check what observe= returns there, "
                    "and whether sigma has the units of the data"
                )

    def _names(self, velocity: bool) -> tuple[str, str]:
        first, *others = self.system.starts_from
        return first, "v0" if velocity else others[-1]

    def _weights(self) -> np.ndarray:
        return np.ones(self.data.shape) if self.sigma is None else 1 / self.sigma

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """Differences of model and data, in units of their deviations."""
        self._evaluate(x)
        assert self.last is not None
        return (self.last[1] * self._weights()).ravel()

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Their derivatives."""
        self._evaluate(x)
        assert self.last is not None
        return (self.last[2] * self._weights()[:, :, None]).reshape(-1, len(x))

    def found(self, result: Any, scale: np.ndarray) -> Fit:
        """The result with its covariance."""
        r, J = self.residuals(result.x), self.jacobian(result.x)
        labels = tuple(
            name + "".join(f"[{k}]" for k in place) for name, shape in self.shapes.items() for place in np.ndindex(shape)
        )
        effective = int(np.linalg.matrix_rank(self.effect * scale, rtol=UNDETERMINED))
        freedom = len(r) - effective
        if freedom < 1:
            raise InputError(f"{len(r)} data cannot determine {effective} numbers and their errors: give more data")
        _, singular, V = np.linalg.svd(J * scale, full_matrices=False)
        singular, V = singular[:effective], V[:effective]
        if singular[-1] <= UNDETERMINED * singular[0]:
            parts = [f"{share:.2g} of {label}" for share, label in zip(V[-1], labels, strict=True) if abs(share) > 0.1]
            raise InputError(f"the data do not determine all of {', '.join(labels)}: nothing changes along {', '.join(parts)}")
        variance = 1.0 if self.sigma is not None else float(r @ r) / freedom
        covariance = variance * (V.T / singular**2) @ V * np.outer(scale, scale)
        assert self.last is not None
        sigma = float(np.sqrt(variance)) if self.sigma is None else self.sigma[0]
        fit = Fit(
            self.named(result.x), self.named(np.sqrt(np.diag(covariance))), covariance, labels, sigma, self.last[1], self.t,
            self.data, self.last[3], freedom, self.sigma is None, self.evaluations, result.message,
        )  # fmt: skip
        warn_of_misfit(fit)
        return fit


def _observation(system: System, observe: Callable | None) -> tuple[ca.Function, ca.Function]:
    """What is observed in a state, (t, y, z, theta), and its derivatives with respect to the state and theta."""
    (_, n), (_, m) = system.state_blocks
    arguments = [ca.SX.sym("t"), ca.SX.sym("y", n), ca.SX.sym("z", m), system.parameters.theta]
    _, y, z, theta = arguments
    value = (y if n else z) if observe is None else state_function("observe", observe, system, scalar=False)(*arguments)
    slopes = [ca.densify(ca.jacobian(value, x)) for x in (ca.vertcat(y, z), theta)]
    return ca.Function("observed", arguments, [ca.densify(value)]), ca.Function("slopes", arguments, slopes)


def _from_start(
    system: Any, start: Any, fixed: Any, t0: Any, initial: dict[str, Any]
) -> tuple[dict[str, np.ndarray], float, dict[str, Any]]:
    """A start as parameters, its time and initial values: velocities where there are some."""
    model, state = initial_state(system, start=start, t0=t0, params=fixed, **initial)
    first, second = model.starts_from[:2]
    values = {first: state.first, second: state.v if second == "v0" else state.second}
    return model.parameters.unflatten(state.theta), state.t, {name: value for name, value in values.items() if name}


def _limits(guess: Mapping[str, np.ndarray], bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of everything that is sought."""
    found = limits(bounds, {name: value.shape for name, value in guess.items()}, "not sought")
    for name, (lower, upper) in found.items():
        if np.any(lower == upper):
            raise InputError(f"the bounds of {name!r} leave it no choice: give its value by fixed=, or as an initial value")
        if not np.all((lower <= guess[name]) & (guess[name] <= upper)):
            raise InputError(f"the guess of {name!r}, {one_line(guess[name].tolist())}, is not within its bounds")
    return _column(lower for lower, _ in found.values()), _column(upper for _, upper in found.values())


def _column(parts: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate([part.ravel() for part in parts])
