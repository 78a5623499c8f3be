"""Gradients of a loss by the adjoint of the compiled steps: one pass backwards, whatever their number.

A run is recorded in segments. Where it takes more than one, the state at the beginning of each is kept, and the segments are
computed again, from the last to the first, when their derivatives are needed; so memory is bounded, and no step is made more
than twice. Segments begin afresh both times, so that they are the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dalembert._interrupts import interruptible
from dalembert._progress import ProgressLine, busy
from dalembert.derivatives._loss import AtTimes, Running, Weighted
from dalembert.derivatives._record import Part, Record
from dalembert.derivatives._sensitivities import ALL_STATES, segment, through_starting
from dalembert.derivatives._through_impacts import ImpactSteps
from dalembert.derivatives._wanted import Differentiated, differentiated
from dalembert.errors import InputError
from dalembert.runs._drivers import driver_of, make_run, prepared
from dalembert.runs._lengths import check_memory, count

SEGMENT = 3_000_000
"""Numbers of a record that are kept at a time: 24 MB."""


@interruptible()
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

    `loss` is a NumPy function of the state at the end of the run, loss(t, q, v, p), of which it names what it needs, and of
    parameters. With `at`, a list of times t0 + k h, its arguments have one row for each of them. `running` is a function of t,
    q, p, v and parameters that is summed over the states after all steps; without a `loss` (None) it is all there is. The other
    arguments are those of `da.simulate`; initial values are treated as by `da.sensitivities`. For a parameter with `controls`
    the gradient has one row for each interval; `running` may depend on it, `loss` may not.

    The gradient is a dictionary with an array for each name, or that array if `wrt` is one name. It takes one more pass over
    the steps, or two if there are too many of them to be kept in memory; impacts and contacts are passed as by
    `da.sensitivities`. For many runs there is `da.gradient_many`.

    Example:
        >>> import numpy as np, dalembert as da
        >>> spring = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 4.0})
        >>> value, slope = da.gradient(lambda q: q[0], spring, da.Gauss(3), wrt="k", q0=[1.0], p0=[0.0], h=0.01, steps=100)
        >>> bool(abs(value - np.cos(2.0)) < 1e-11), bool(abs(slope + np.sin(2.0) / 4) < 1e-11)
        (True, True)

    """
    given = differentiated("gradient", system, method, wrt, arguments)
    value, parts = value_and_gradient(given, Losses.of(given, loss, at, running), progress)
    return value, parts[wrt] if isinstance(wrt, str) else parts


@dataclass(frozen=True)
class Losses:
    """What a gradient is taken of."""

    at_times: AtTimes | Weighted | None
    running: Running | None = None

    @classmethod
    def of(cls, given: Differentiated, loss: Callable | None, at: Any, running: Callable | None) -> Losses:
        """From what a user gives."""
        if loss is None and running is None:
            raise InputError(
                "give a loss, a function of the final state, or running=, a function that is summed over all states"
            )
        count("steps", given.spec.steps, least=1)
        return cls(
            None if loss is None else AtTimes.of(loss, given.spec, at),
            None if running is None else Running(running, given.spec.system, given.chosen),
        )


def value_and_gradient(
    given: Differentiated, losses: Losses, progress: bool | None = None
) -> tuple[float, dict[str, np.ndarray]]:
    """The loss of a run, and its gradient by names."""
    if driver_of(given.spec.method).has_impacts:
        return _through_impacts(given, losses, progress)
    return Adjoint(given, losses).value_and_gradient(progress)


def _through_impacts(given: Differentiated, losses: Losses, progress: bool | None) -> tuple[float, dict[str, np.ndarray]]:
    """The same for runs with impacts and contacts, all of whose states are kept."""
    theta, steps = given.start.state.theta, ImpactSteps(given.spec, given.chosen)
    check_memory(16 * given.spec.steps * steps.n, *ALL_STATES)
    with busy("making the run with impacts", progress):
        run = steps.run
    values, share, of_theta = list[float](), np.zeros(len(given.chosen)), np.zeros(len(theta))
    forces = np.zeros(run.states.shape)
    if losses.running is not None:
        along, forces[1:], of_chosen = losses.running.along(run.t[1:], run.states[1:], theta)
        values.append(math.fsum(along))
        share += of_chosen.sum(axis=0)
    if losses.at_times is not None:
        at = losses.at_times.steps
        value, of_states, of_theta = losses.at_times.value_and_gradient(run.states[at], theta)
        values.append(value)
        np.add.at(forces, at, of_states)
    with ProgressLine(given.spec.steps, progress) as line:
        covector = steps.pull(forces, share, line.update)
    start = steps.start_from(given.start).derivative(given.columns)
    return math.fsum(values), named(given, covector @ start, share[None], of_theta)


def named(
    given: Differentiated, of_start: np.ndarray, of_parameters: np.ndarray, of_theta: np.ndarray
) -> dict[str, np.ndarray]:
    """A gradient by names: what reaches the start, and what parameters do along the run and in the loss."""
    found: dict[str, np.ndarray] = {}
    first, n = 0, given.spec.system.n_state
    for each in given.wanted:
        places, slopes = given.places(each)
        if each.control:
            values = of_parameters[:, places]
            if slopes:  # u + (t - begin) (u_1 - u) / width in each interval
                assert given.spec.controls is not None
                of_ends = of_parameters[:, slopes] / (given.spec.controls.hold * given.spec.h)
                nothing = np.zeros((1, len(places)))
                values = np.vstack([values - of_ends, nothing]) + np.vstack([nothing, of_ends])
            found[each.name] = values.reshape(given.shape(each))
            continue
        total = of_start[first : first + len(each.columns)]
        first += len(each.columns)
        if places:
            total = total + of_parameters[:, places].sum(axis=0) + of_theta[each.columns - n]
        found[each.name] = total.reshape(each.shape)
    return found


class Adjoint:
    """A run and a loss, recorded and pulled back."""

    def __init__(self, given: Differentiated, losses: Losses) -> None:
        self.given, self.at_times, self.running, spec = given, losses.at_times, losses.running, given.spec
        self.run = make_run(prepared(replace(spec, save_every=spec.steps)))
        self.record = Record(self.run, given.chosen, segment(self.run, spec.steps, SEGMENT))
        rows = 1 if spec.controls is None else len(spec.controls.values)
        self.of_parameters = np.zeros((rows, len(given.chosen)))
        self.values: list[float] = []

    def value_and_gradient(self, progress: bool | None = None) -> tuple[float, dict[str, np.ndarray]]:
        """Run forwards, then backwards."""
        given, self.covector = self.given, np.zeros(self.run.system.n_state)
        self._sweep(progress)
        self.covector += self.forces.get(0, 0.0)
        start = through_starting(given.spec, given.start.derivative(given.columns), given.chosen, given.seeds())
        return math.fsum(self.values), named(given, self.covector @ start, self.of_parameters, self.of_theta)

    def _sweep(self, progress: bool | None) -> None:
        """Make all steps, then pull through them, from the last segment to the first; these are made again, but the last."""
        run, steps, room = self.run, self.given.spec.steps, self.record.room
        begins = list(range(0, steps, room))
        kept, self.states = [], {0: run.state}
        with ProgressLine(2 * steps, progress) as line:
            for begin in begins:
                kept.append((run.row, run.compensation))
                if begin:
                    run.begin(*kept[-1], begin, {})
                self.record.make(min(begin + room, steps), line.update)
                self._collect(begin)
            self._loss_at_times()
            for k in reversed(range(len(begins))):
                if k < len(begins) - 1:
                    run.begin(*kept[k], begins[k], {})
                    self.record.make(min(begins[k] + room, steps))
                self._pull(k)
                line.update(2 * steps - begins[k])

    def _inside(self) -> list[int]:
        """The recorded steps after which the loss looks at the state."""
        steps = [] if self.at_times is None else self.at_times.steps.tolist()
        return [step for step in steps if self.record.first < step <= self.run.steps_done]

    def _collect(self, begin: int) -> None:
        """Keep what the loss needs of the recorded segment."""
        inside = self._inside()
        if inside:
            ends = self._ends()
            self.states |= {step: ends[step - begin - 1].copy() for step in inside}

    def _ends(self) -> np.ndarray:
        """The states after the recorded steps."""
        count, n = self.run.steps_done - self.record.first, self.run.system.n_state
        return np.vstack([self.record.rows[1:count, :n], self.run.state])

    def _loss_at_times(self) -> None:
        """The derivatives of the loss, by step, and with respect to the parameters it names."""
        theta, self.forces = self.given.start.state.theta, dict[int, Any]()
        self.of_theta = np.zeros(len(theta))
        if self.at_times is None:
            return
        states = np.array([self.states[step] for step in self.at_times.steps.tolist()])
        value, of_states, self.of_theta = self.at_times.value_and_gradient(states, theta)
        self.values.append(value)
        for step, row in zip(self.at_times.steps.tolist(), of_states, strict=True):
            self.forces[step] = self.forces.get(step, 0.0) + row

    def _pull(self, segment: int) -> None:
        """Pull through the recorded segment."""
        del segment
        ends = self._ends()
        forces = np.zeros(ends.shape)
        if self.running is not None:
            for part, rows, t in self._parts():
                values, forces[rows], of_chosen = self.running.along(t, ends[rows], part.thetas[0])
                self.values.append(math.fsum(values))
                self._share(part)[:] += of_chosen.sum(axis=0)
        for step in set(self._inside()):
            forces[step - self.record.first - 1] += self.forces[step]
        self.record.pull(self.covector, forces, self._share)

    def _parts(self) -> Iterator[tuple[Part, slice, np.ndarray]]:
        """The recorded parts, their rows in the record, and the times after their steps."""
        for part in self.record.parts:
            rows = slice(part.begin - self.record.first, part.end - self.record.first)
            yield part, rows, self.run.start.t + np.arange(part.begin + 1, part.end + 1) * self.run.h

    def _row(self, part: Part) -> int:
        """The interval of controls that a part of the run lies in."""
        controls = self.given.spec.controls
        return 0 if controls is None else part.begin // controls.hold

    def _share(self, part: Part) -> np.ndarray:
        """Where what a part of the run gives to the parameters is collected."""
        return self.of_parameters[self._row(part)]
