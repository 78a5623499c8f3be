"""The solution of a method's step equations that begins at h = 0, followed in tiny strides.

Slow, dense and independent of the drivers, it works on the equations as the method states them, before anything is eliminated
or compiled.
"""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np

import dalembert as da

CORRECTION, SHORTEST = 0.02, 1e-6
"""How far a solution may be from its extrapolation, relative to the velocities of its stages; the shortest stride."""


class Equations:
    """Step equations of one method on one system, as functions of numbers."""

    def __init__(self, system: da.systems.System, method: da.OneStepMethod) -> None:
        equations = method.step_equations(system)
        step = equations.step
        data = [step.time_symbol, step.h_symbol, step.theta, equations.state]
        self.residual = ca.Function(
            "residual", [equations.x, *data], [equations.residual, ca.jacobian(equations.residual, equations.x)]
        )
        self.increment = ca.Function("increment", [equations.x, *data], [equations.increment])
        self.blocks = step.unknowns
        self.power = np.concatenate([np.full(b.symbols.shape[0], 0 if b.per_h else 1) for b in self.blocks])

    def first(self, state: da.State, h: float) -> np.ndarray:
        """The unknowns for h -> 0, those that vanish with h divided by it and multiplied by the full step."""
        zero = np.zeros(len(state.second))
        rates = {"q": state.v, "y": state.v, "p": zero, "z": zero, "lam": state.lam, "psi": state.psi}
        parts = []
        for block in self.blocks:
            if block.kind == "carried":
                parts.append(np.zeros(block.symbols.shape[0]))
            elif block.kind == "impulse":
                parts.append(h * np.tile(rates[block.of], len(block.nodes)))
            else:
                parts.append(np.outer(block.nodes, rates[block.of]).ravel() * (1.0 if block.per_h else h))
        return np.concatenate(parts)

    def solve(self, u: np.ndarray, eta: float, data: tuple) -> np.ndarray | None:
        """Newton's method from u; None if it does not converge within a few iterations."""
        t, h, theta, state = data
        x, previous = u * eta**self.power, np.inf
        for _ in range(10):
            residual, jacobian = (np.array(value, dtype=float) for value in self.residual(x, t, eta * h, theta, state))
            if not (np.all(np.isfinite(residual)) and np.all(np.isfinite(jacobian))):
                return None
            try:
                dx = np.linalg.solve(jacobian, residual.ravel())
            except np.linalg.LinAlgError:
                return None
            x, size = x - dx, np.linalg.norm(dx) / np.linalg.norm(x)
            if size <= 1e-9 or (size <= 1e-6 and size >= previous / 2):  # rounding errors of V are those of q, divided by h
                return x / eta**self.power
            previous = size
        return None


@functools.cache
def equations_of(system: da.systems.System, method: da.OneStepMethod) -> Equations:
    return Equations(system, method)


def continued_step(system: da.systems.System, method: da.OneStepMethod, state: da.State, h: float) -> np.ndarray | None:
    """The state after one step, as one vector; None where the solution that begins at h = 0 ends before h."""
    equations, data = equations_of(system, method), (state.t, h, state.theta, state.packed)
    eta = 2.0**-10
    now = equations.solve(equations.first(state, h), eta, data)
    if now is None:
        return None
    before, last, stride = now, eta / 2, eta
    before = equations.solve(now, last, data)
    if before is None:
        return None
    while eta < 1.0:
        target = min(1.0, eta + stride)
        guess = now + (now - before) * (target - eta) / (eta - last)
        found = equations.solve(guess, target, data)
        moved = np.inf if found is None else np.linalg.norm((found - guess)[equations.power == 0])
        if found is not None and moved <= CORRECTION * np.linalg.norm(found[equations.power == 0]):
            before, last, now, eta, stride = now, eta, found, target, min(2 * (target - eta), 1 / 16)
        else:
            stride /= 2
            if stride < SHORTEST:
                return None
    return state.packed + np.asarray(equations.increment(now, *data), dtype=float).ravel()
