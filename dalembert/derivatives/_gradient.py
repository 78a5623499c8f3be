"""Gradients of a loss by the adjoint of the compiled steps: one pass backwards, whatever their number.

A run is recorded in segments. Where it takes more than one, the state at the beginning of each is kept, and the segments are
computed again, from the last to the first, when their derivatives are needed; so memory is bounded, and no step is made more
than twice. Segments begin afresh both times, so that they are the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dalembert._progress import ProgressLine
from dalembert.derivatives._loss import AtTimes, Running, Weighted
from dalembert.derivatives._record import Part, Record
from dalembert.derivatives._sensitivities import forward, segment, through_starting
from dalembert.derivatives._wanted import Differentiated, differentiated
from dalembert.errors import InputError
from dalembert.runs._arguments import count
from dalembert.runs._drivers import driver_of, make_run, prepared

SEGMENT = 3_000_000
"""Numbers of a record that are kept at a time: 24 MB."""


def gradient(
    loss: Callable | None,
    system: Any,
    method: Any,
    *,
    wrt: str | Sequence[str],
    at: Any = None,
    running: Callable | None = None,
    progress: bool | None = None,
    **arguments: Any,
) -> tuple[float, Any]:
    """The value of a loss along a run, and its exact gradient with respect to the names in `wrt`, by the adjoint method.

    `loss` is a NumPy function of the state at the end of the run, loss(q, p), and of parameters. With `at`, a list of times
    t0 + k h, its arguments have one row for each of them: loss(t, q, v, p). `running` is a function of t, q, p, v and
    parameters that is summed over the states after all steps; without a `loss` (None) it is all there is. The other arguments
    are those of `da.simulate`; initial values are treated as by `da.sensitivities`. For a parameter with `controls` the
    gradient has one row for each interval; `running` may depend on it, `loss` may not.

    The gradient is a dictionary with an array for each name, or that array if `wrt` is one name. It takes one more pass over
    the steps, or two if there are too many of them to be kept in memory. Through impacts it is computed forwards, as by
    `da.sensitivities`.

    Example:
        >>> import numpy as np, dalembert as da
        >>> spring = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 4.0})
        >>> value, slope = da.gradient(lambda q: q[0], spring, da.Gauss(3), wrt="k", q0=[1.0], p0=[0.0], h=0.01, steps=100)
        >>> bool(abs(value - np.cos(2.0)) < 1e-11), bool(abs(slope + np.sin(2.0) / 4) < 1e-11)
        (True, True)

    """
    if loss is None and running is None:
        raise InputError("give a loss, a function of the final state, or running=, a function that is summed over all states")
    given = differentiated("gradient", system, method, wrt, arguments)
    count("steps", given.spec.steps, least=1)
    if driver_of(given.spec.method).has_impacts:
        value, parts = _forwards_through_impacts(given, loss, at, running)
    else:
        value, parts = Adjoint(given, loss, at, running).value_and_gradient(progress)
    return value, parts[wrt] if isinstance(wrt, str) else parts


def _forwards_through_impacts(
    given: Differentiated, loss: Callable | None, at: Any, running: Callable | None
) -> tuple[float, dict[str, np.ndarray]]:
    """The same from the sensitivities of all states, for runs with impacts."""
    spec, theta = replace(given.spec, save_every=1), given.start.state.theta
    s = forward(replace(given, spec=spec), progress=False)
    total, values, seeds = np.zeros(len(given.columns)), [], given.seeds()
    if loss is not None:
        at_times = AtTimes.of(loss, spec, at)
        value, of_states, of_theta = at_times.value_and_gradient(s.run.states[at_times.steps], theta)
        values.append(value)
        total += np.einsum("ti,tid->d", of_states, s.values[at_times.steps]) + of_theta[list(given.chosen)] @ seeds
    if running is not None:
        along, of_states, of_chosen = Running(running, spec.system, given.chosen).along(s.run.t[1:], s.run.states[1:], theta)
        values.append(math.fsum(along))
        total += np.einsum("ti,tid->d", of_states, s.values[1:]) + of_chosen.sum(axis=0) @ seeds
    ends = np.cumsum([len(each.columns) for each in given.wanted])[:-1]
    parts = zip(given.wanted, np.split(total, ends), strict=True)
    return math.fsum(values), {each.name: part.reshape(each.shape) for each, part in parts}


class Adjoint:
    """A run and a loss, recorded and pulled back."""

    def __init__(self, given: Differentiated, loss: Callable | None, at: Any, running: Callable | None) -> None:
        self.given, spec = given, given.spec
        self.at_times: AtTimes | Weighted | None = None if loss is None else AtTimes.of(loss, spec, at)
        self.running = None if running is None else Running(running, spec.system, given.chosen)
        self.run = make_run(prepared(replace(spec, save_every=spec.steps)))
        self.record = Record(self.run, given.chosen, segment(self.run, spec.steps, SEGMENT))
        rows = 1 if spec.controls is None else len(spec.controls.values)
        self.of_parameters = np.zeros((rows, len(given.chosen)))
        self.values: list[float] = []

    def value_and_gradient(self, progress: bool | None = None) -> tuple[float, dict[str, np.ndarray]]:
        """Run forwards, then backwards."""
        steps, room = self.given.spec.steps, self.record.room
        begins = list(range(0, steps, room))
        with ProgressLine(2 * steps, progress) as line:
            kept = self._forwards(begins, line.update)
            forces, of_theta = self._loss_at_times()
            covector = np.zeros(self.run.system.n_state)
            for k in reversed(range(len(begins))):
                if k < len(begins) - 1:
                    self.run.begin(*kept[k], begins[k], {})
                    self.record.make(min(begins[k] + room, steps))
                self._pull(covector, forces)
                line.update(2 * steps - begins[k])
        covector += forces.get(0, 0.0)
        return math.fsum(self.values), self._named(covector, of_theta)

    def _forwards(self, begins: list[int], report: Callable[[int], None]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Make all steps; the last segment stays recorded. What the segments begin with is kept."""
        run, kept = self.run, []
        self.states = {0: run.state}
        for begin in begins:
            kept.append((run.row, run.compensation))
            if begin:
                run.begin(*kept[-1], begin, {})
            self.record.make(min(begin + self.record.room, self.given.spec.steps), report)
            if self.at_times is not None:
                ends = self._ends()
                inside = self.at_times.steps[(self.at_times.steps > begin) & (self.at_times.steps <= run.steps_done)]
                self.states |= {int(step): ends[step - begin - 1].copy() for step in inside}
        return kept

    def _ends(self) -> np.ndarray:
        """The states after the recorded steps."""
        count, n = self.run.steps_done - self.record.first, self.run.system.n_state
        return np.vstack([self.record.rows[1:count, :n], self.run.state])

    def _loss_at_times(self) -> tuple[dict[int, np.ndarray], np.ndarray]:
        """The derivatives of the loss, by step, and with respect to the parameters it names."""
        theta = self.given.start.state.theta
        if self.at_times is None:
            return {}, np.zeros(len(theta))
        states = np.array([self.states[int(step)] for step in self.at_times.steps])
        value, of_states, of_theta = self.at_times.value_and_gradient(states, theta)
        self.values.append(value)
        forces: dict[int, np.ndarray] = {}
        for step, row in zip(self.at_times.steps.tolist(), of_states, strict=True):
            forces[step] = forces.get(step, 0.0) + row
        return forces, of_theta

    def _pull(self, covector: np.ndarray, at_steps: dict[int, np.ndarray]) -> None:
        record, run = self.record, self.run
        ends = self._ends()
        forces = np.zeros(ends.shape)
        if self.running is not None:
            for part in record.parts:
                rows = slice(part.begin - record.first, part.end - record.first)
                t = run.start.t + np.arange(part.begin + 1, part.end + 1) * run.h
                values, forces[rows], of_chosen = self.running.along(t, ends[rows], part.thetas[0])
                self.values.append(math.fsum(values))
                self._share(part)[:] += of_chosen.sum(axis=0)
        for step, row in at_steps.items():
            if record.first < step <= run.steps_done:
                forces[step - record.first - 1] += row
        record.pull(covector, forces, self._share)

    def _share(self, part: Part) -> np.ndarray:
        """Where what a part of the run gives to the parameters is collected."""
        controls = self.given.spec.controls
        return self.of_parameters[0 if controls is None else part.begin // controls.hold]

    def _named(self, covector: np.ndarray, of_theta: np.ndarray) -> dict[str, np.ndarray]:
        """The gradient by names: what reaches the start, and what parameters do along the run and in the loss."""
        given, n = self.given, self.run.system.n_state
        start = through_starting(given.spec, given.start.derivative(given.columns), given.chosen, given.seeds())
        constant, chosen = covector @ start, {k: i for i, k in enumerate(given.chosen)}
        found: dict[str, np.ndarray] = {}
        first = 0
        for each in given.wanted:
            places = [chosen[int(k) - n] for k in each.columns if k >= n]
            if each.control:
                found[each.name] = self.of_parameters[:, places].reshape(-1, *each.shape)
                continue
            total = constant[first : first + len(each.columns)]
            first += len(each.columns)
            if places:
                total = total + self.of_parameters[:, places].sum(axis=0) + of_theta[each.columns - n]
            found[each.name] = total.reshape(each.shape)
        return found
