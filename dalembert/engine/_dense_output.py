"""Dense output: the polynomials of a method inside its steps, which are solved again from the stored states."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from dalembert.compiler import ReducedStep, first_guess, reduced_step
from dalembert.compiler._independence import combined_at
from dalembert.engine import _driver as driver
from dalembert.engine._run import Run
from dalembert.engine._spec import RunSpec
from dalembert.errors import StepFailed, UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.systems import State, System
from dalembert.systems._consistent import unpack
from dalembert.systems._newton import newton
from dalembert.systems._redundant import combination_matrices


class DenseOutput:
    """Evaluates the polynomials Y, Z, Z~, lam and psi of a method with step size h on a system."""

    def __init__(self, system: System, method: OneStepMethod, start: State, h: float) -> None:
        if method.substeps != ((method, 1.0),) or not reduced_step(system, method).equations.step.polynomials:
            raise UnsupportedSystem(
                f"{method} is not a collocation method with dense output here: use da.LobattoIIIAB, da.GaussLobattoSPARK or "
                "da.GaussLobattoEMPRK, da.RadauIIA without nonholonomic constraints, or interpolate run.t and the stored states"
            )
        self.run = Run(RunSpec(system, method, start, h, 1))
        self.system, self.start = self.run.system, self.run.start
        self.reduced = self.run.steppers[0].program.reduced
        self.polynomials = self.reduced.equations.step.polynomials
        self.node_values = _node_values(self.reduced)

    def evaluate(
        self, t: float, state: np.ndarray, times: np.ndarray, guess: np.ndarray, clock: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The polynomials of the step from `state` at t, at times inside of it; where its size varies, the clock says which."""
        here = self._state(t, state, guess)
        unknowns, h = self._solve(here, clock)
        tau = (times - t) / h
        parts = iter(self.node_values(unknowns, t, h, here.theta, state))
        values = {}
        for name, polynomials in self.polynomials.items():
            total: np.ndarray | float = 0.0
            for polynomial in polynomials:
                rows = next(parts)
                if polynomial.start is None:
                    total = total + lagrange(polynomial.nodes, tau) @ rows
                else:
                    total = total + next(parts).ravel() + h * (lagrange_integrals(polynomial.nodes, tau) @ rows)
            values[name] = np.asarray(total)
        if self.system.combines is not None:
            for name, C in zip(("lam", "psi"), combination_matrices(self.system, here.theta), strict=True):
                values |= {name: values[name] @ C} if name in values else {}
        if "momentum" in self.system.function_names:
            for name in ("Z", "Z~"):
                values[name] = np.array(
                    [self._from_momentum(*x, here) for x in zip(times, values["Y"], values[name], strict=True)]
                )
        return values

    def _state(self, t: float, state: np.ndarray, guess: np.ndarray) -> State:
        """A stored state, with combinations of redundant constraints chosen for it."""
        if self.system.combines is None:
            return unpack(self.system, t, state, self.start.theta, guess)
        here = combined_at(self.system, t, state, self.start.theta)
        if here is None:
            raise StepFailed(f"other constraints are redundant at t = {t:g} than at the start of the run")
        return here

    def _solve(self, here: State, clock: np.ndarray) -> tuple[np.ndarray, float]:
        """The unknowns of the step from a state, and its size."""
        run = self.run
        stepper = run.steppers[0]
        stepper.start = here
        stepper.set_parameters(here.theta)
        stepper.memory[stepper.slots("state")] = here.packed
        stepper.memory[stepper.slots("compensation")], stepper.memory[stepper.slots("clock")] = 0.0, clock
        size = 1 / clock[1] if len(clock) else run.h
        stepper.memory[stepper.slots("x")] = first_guess(self.reduced, self.system, here, size)
        for name, value in {"steps_done": 0, "saved": 1, "mode": driver.GUESS_READY, "age": -1}.items():
            run.counts[0][name] = value
        run.start = here
        reason = run.advance()
        if reason is None and stepper.program.reduced is not self.reduced:
            reason = "other redundant constraints have to be combined there"
        if reason is not None:
            raise StepFailed(f"the step from t = {here.t:g} could not be solved again: {reason}")
        return run.steppers[0].unknowns, float(run.steppers[0].memory[stepper.program.layout.h])

    def _from_momentum(self, t: float, y: np.ndarray, p: np.ndarray, here: State) -> np.ndarray:
        """z with p(t, y, z) = p."""
        symbol = ca.SX.sym("z", len(here.second))
        momentum = self.system.function("momentum")(t, y, symbol, here.theta)
        equations = ca.Function("momentum", [symbol], [momentum - p, ca.jacobian(momentum, symbol)])
        z = newton(lambda x: tuple(np.asarray(value, dtype=float) for value in equations(x)), here.second)
        if z is None:
            raise StepFailed(f"no z with this momentum p(t, y, z) was found at t = {t:g}")
        return z


def _node_values(reduced: ReducedStep) -> Callable[..., list[np.ndarray]]:
    """All values at nodes, and the start of integrated polynomials, in the order in which they are declared."""
    outputs = []
    for polynomials in reduced.equations.step.polynomials.values():
        for polynomial in polynomials:
            outputs += [polynomial.values] if polynomial.start is None else [polynomial.values, polynomial.start]
    return reduced.numbers(outputs)


def lagrange(nodes: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """The Lagrange polynomials of the nodes at tau, one column a node."""
    columns = [
        np.prod([(tau - other) / (node - other) for k, other in enumerate(nodes) if k != j], axis=0) * np.ones_like(tau)
        for j, node in enumerate(nodes)
    ]
    return np.stack(columns, axis=-1)


def lagrange_integrals(nodes: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Their integrals from 0 to tau, by a Gauss quadrature that is exact for them."""
    points, weights = np.polynomial.legendre.leggauss(len(nodes) // 2 + 1)
    return sum(w / 2 * tau[:, None] * lagrange(nodes, tau * (x + 1) / 2) for x, w in zip(points, weights, strict=True))
