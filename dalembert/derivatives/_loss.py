"""What a gradient is taken of: a function of states at some times, and a sum over all steps, traced symbolically."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from dalembert.compiler._ir import Kernel, compile_kernels
from dalembert.derivatives._given import finite
from dalembert.engine._driver import map_kernel
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError
from dalembert.symbolic import from_column
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import MechanicalSystem, System
from dalembert.systems._model import call_model, scalar_expression
from dalembert.systems._state_function import state_function

ON_THE_GRID = 1e-9
"""How far, in steps, a time may be off the end of a step."""


def steps_at(spec: RunSpec, at: Any) -> np.ndarray:
    """The numbers of the steps that end at given times; the last one, if none are given."""
    if at is None:
        return np.array([spec.steps])
    times = np.atleast_1d(finite("times", at))
    places = (times - spec.t0) / spec.h
    steps = np.round(places)
    off = np.abs(places - steps) > ON_THE_GRID * np.maximum(1.0, np.abs(places))
    wrong = off | (steps < 0) | (steps > spec.steps)
    if times.ndim != 1 or not len(times) or np.any(wrong):
        which = f"{times[int(np.argmax(wrong))]:g}" if times.ndim == 1 and len(times) else f"an array of shape {times.shape}"
        raise InputError(
            f"times must be ends of steps, t0 + k h for k = 0, ..., {spec.steps}; {which} is none: choose h so that they are"
        )
    return steps.astype(int)


@one_at_a_time
def traced(loss: Callable, system: System, times: np.ndarray, one: bool) -> ca.Function:
    """A user's function of the states at given times (or at `one`, then without that axis), as (states, theta) -> value."""
    (first, n), (second, m) = system.state_blocks
    count, theta = len(times), system.parameters.theta
    states = ca.SX.sym("states", n + m, count)

    def shaped(rows: ca.SX) -> Any:
        return from_column(ca.vec(rows), (rows.shape[0],) if one else (count, rows.shape[0]))

    visible = {name: shaped(rows) for name, rows in ((first, states[:n, :]), (second, states[n:, :])) if name}
    visible["t"] = float(times[0]) if one else times
    if isinstance(system, MechanicalSystem):
        columns = [system.function("v")(t, states[:n, k], states[n:, k], theta) for k, t in enumerate(times)]
        visible["v"] = shaped(ca.horzcat(*columns))
    expression = scalar_expression("loss", call_model("loss", loss, visible, system.parameters))
    return ca.Function("loss", [states, theta], [ca.densify(expression)])


@dataclass(frozen=True, eq=False)
class AtTimes:
    """A function of the states after some of the steps."""

    function: ca.Function
    steps: np.ndarray

    @classmethod
    def of(cls, loss: Callable, spec: RunSpec, at: Any) -> AtTimes:
        steps = steps_at(spec, at)
        function = traced(loss, spec.system, spec.t0 + steps * spec.h, np.ndim(at) == 0)
        if spec.controls is not None and {*function.jac_sparsity(0, 1).get_triplet()[1]} & {*spec.controls.slots.tolist()}:
            raise InputError(
                "the loss depends on a control, whose value changes along the run: give that part as running=, which is summed "
                "over the steps with the control of each"
            )
        found = cls(function, steps)
        _ = found._derivatives  # made here, before threads share it
        return found

    @cached_property
    @one_at_a_time
    def _derivatives(self) -> ca.Function:
        s, p = self.function.sx_in()
        value = self.function(s, p)
        return ca.Function("gradient", [s, p], [value, *(ca.densify(ca.gradient(value, x)) for x in (s, p))])

    def value_and_gradient(self, states: np.ndarray, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The value, and its derivatives with respect to the states (one row each) and to theta."""
        result, of_states, of_theta = self._derivatives(states.T, theta)
        return float(result), np.asarray(of_states, dtype=float).T, np.asarray(of_theta, dtype=float).ravel()

    @one_at_a_time
    def second(
        self, states: np.ndarray, theta: np.ndarray, changes: np.ndarray, of_theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """How these derivatives change with the states and theta."""
        s, p = self.function.sx_in()
        ds, dp = ca.SX.sym("ds", s.shape), ca.SX.sym("dp", p.shape)
        both, along = ca.vertcat(ca.vec(s), p), ca.vertcat(ca.vec(ds), dp)
        curved = ca.jtimes(ca.gradient(self.function(s, p), both), both, along)
        found = ca.Function("second", [s, p, ds, dp], [ca.densify(curved)])(states.T, theta, changes.T, of_theta)
        parts = np.split(np.asarray(found, dtype=float).ravel(), [states.size])
        return parts[0].reshape(states.shape), parts[1]


@dataclass(frozen=True)
class Weighted:
    """A sum of states after some of the steps, times given numbers: what a covector of these states is."""

    steps: np.ndarray
    weights: np.ndarray

    def value_and_gradient(self, states: np.ndarray, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The sum, and its derivatives as those of `AtTimes`."""
        return float(np.sum(self.weights * states)), self.weights, np.zeros(len(theta))


class Running:
    """A function of t and the state that is summed over the states after all steps, compiled with its derivatives."""

    @one_at_a_time
    def __init__(self, function: Callable, system: System, chosen: Sequence[int]) -> None:
        quantity = state_function("running", function, system)
        n_theta, n = system.parameters.size, system.n_state
        t, theta, state = ca.SX.sym("t"), ca.SX.sym("theta", n_theta), ca.SX.sym("state", n)
        y, z = ca.vertsplit(state, [0, system.state_blocks[0][1], n])
        value = quantity(t, y, z, theta)
        of_theta = ca.gradient(value, theta)[list(chosen)] if len(chosen) else ca.SX(0, 1)
        outputs = ca.vertcat(value, ca.gradient(value, state), of_theta)
        self.n_theta, self.n_state, self.size = n_theta, n, outputs.shape[0]
        self.symbols, self.gradient, self.chosen = (t, theta, state), outputs[1:], list(chosen)
        self.first_output = n_theta + 1 + n
        inputs = [(theta, 0), (t, n_theta), (state, n_theta + 1)]
        kernel = Kernel("running", inputs, [(outputs, self.first_output)])
        self.code, used = compile_kernels([kernel], self.first_output + self.size)
        self.memory_size = self.first_output + self.size + used

    def along(self, t: np.ndarray, states: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values and derivatives with respect to states and parameters, one row each."""
        memory = np.zeros(self.memory_size)
        memory[: self.n_theta] = theta[: self.n_theta]
        results = np.empty((len(t), self.size))
        inputs = np.column_stack([t, states])
        map_kernel(self.code.addresses["running"], memory, inputs, self.n_theta, results, self.first_output)
        return results[:, 0], results[:, 1 : 1 + self.n_state], results[:, 1 + self.n_state :]

    @one_at_a_time
    def second(
        self, t: np.ndarray, states: np.ndarray, theta: np.ndarray, changes: np.ndarray, of_chosen: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """How the derivatives change with the states, one row each, and with the chosen parameters."""
        time, p, s = self.symbols
        both = ca.vertcat(s, p[self.chosen] if self.chosen else ca.SX(0, 1))
        along = ca.SX.sym("along", both.shape[0])
        function = ca.Function("second", [time, p, s, along], [ca.densify(ca.jtimes(self.gradient, both, along))])
        directions = np.column_stack([changes, np.tile(of_chosen, (len(t), 1))])
        values = function.map(len(t))(t[None], np.tile(theta[: self.n_theta, None], len(t)), states.T, directions.T)
        found = np.asarray(values, dtype=float).T
        return found[:, : self.n_state], found[:, self.n_state :]
