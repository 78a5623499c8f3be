"""Hessian-vector products: the derivative of a gradient in one direction, by the adjoint of the steps and its derivative.

A direction of initial values and parameters is pushed along the run; then the covector of the adjoint and its change in that
direction are pulled back together (`_second_order`). It costs a few gradients, whatever the number of parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dalembert._interrupts import interruptible
from dalembert.derivatives._given import finite
from dalembert.derivatives._gradient import Adjoint, Losses, named
from dalembert.derivatives._loss import AtTimes
from dalembert.derivatives._record import Part, Record
from dalembert.derivatives._second_order import Doubled, pull_twice
from dalembert.derivatives._wanted import Differentiated, differentiated
from dalembert.engine._run import Run
from dalembert.errors import InputError
from dalembert.runs._drivers import driver_of
from dalembert.systems._model import one_line


@interruptible()
def hessian_product(
    loss: Callable | None,
    system: Any,
    method: Any,
    *,
    wrt: str | Sequence[str],
    direction: Any,
    at: Any = None,
    running: Callable | None = None,
    progress: bool | None = None,
    **arguments: Any,
) -> tuple[float, Any, Any]:
    """The value of a loss along a run, its gradient, and its Hessian times a `direction`, all of them exact.

    The arguments are those of `da.gradient`. `direction` maps names in `wrt` to arrays of their shapes, those that are left out
    being zero, or it is one array if `wrt` is one name. This is what optimisers of Newton's type ask for, such as
    `scipy.optimize.minimize` with `hessp`. Runs with impacts have no second derivatives here.

    Example:
        >>> import numpy as np, dalembert as da
        >>> spring = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 4.0})
        >>> given = dict(q0=[1.0], p0=[0.0], h=0.01, steps=100)
        >>> _, slope, curvature = da.hessian_product(lambda q: q[0], spring, da.Gauss(3), wrt="k", direction=1.0, **given)
        >>> bool(abs(curvature - (np.sin(2.0) / 32 - np.cos(2.0) / 16)) < 1e-11)  # q(1) = cos(sqrt(k))
        True

    """
    given = differentiated("hessian_product", system, method, wrt, arguments)
    if driver_of(given.spec.method).has_impacts:
        raise InputError("second derivatives through impacts are not computed: leave unilateral= out, or take da.gradient")
    along = _direction(given, {wrt: direction} if isinstance(wrt, str) and not isinstance(direction, Mapping) else direction)
    value, slope, product = SecondAdjoint(given, Losses.of(given, loss, at, running), along).products(progress)
    return (value, slope[wrt], product[wrt]) if isinstance(wrt, str) else (value, slope, product)


def _direction(given: Differentiated, direction: Any) -> dict[str, np.ndarray]:
    """A direction by names, controls with one row for each interval."""
    shapes = {each.name: given.shape(each) for each in given.wanted}
    if not isinstance(direction, Mapping) or not set(direction) <= set(shapes):
        raise InputError(f"direction maps names out of {', '.join(shapes)} to arrays; got {one_line(direction)}")
    for name, value in direction.items():
        shape = finite(f"the direction of {name!r}", value).shape
        if shape != shapes[name]:
            raise InputError(f"the direction of {name!r} must have the shape {shapes[name]}; got shape {shape}")
    return {name: finite(f"the direction of {name!r}", direction.get(name, 0.0), shape) for name, shape in shapes.items()}


class SecondAdjoint(Adjoint):
    """A run and a loss, recorded and pulled back together with their changes in a direction."""

    def __init__(self, given: Differentiated, losses: Losses, direction: dict[str, np.ndarray]) -> None:
        super().__init__(given, losses)
        n, controls = self.run.system.n_state, given.spec.controls
        self.along, self.seeds = np.zeros(n + len(given.start.state.theta)), np.zeros(self.of_parameters.shape)
        self.controlled = np.zeros(len(given.chosen), bool)
        for each in given.wanted:
            (places, slopes), parameters = given.places(each), each.columns >= n
            if each.control:
                assert controls is not None
                values = direction[each.name].reshape(-1, len(places))
                self.seeds[:, places] = values[: len(self.seeds)]
                if slopes:
                    self.seeds[:, slopes] = np.diff(values, axis=0) / (controls.hold * given.spec.h)
                self.controlled[[*places, *slopes]] = True
            else:
                self.along[each.columns] = direction[each.name].ravel()
                self.seeds[:, places] = direction[each.name].ravel()[parameters]
        self.of_parameters = np.zeros((2, *self.of_parameters.shape))
        self.pair, self.changes, self.kept = np.zeros((2, n)), dict[int, np.ndarray](), list[np.ndarray]()

    def products(self, progress: bool | None) -> tuple[float, dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The value, the gradient and its change."""
        given = self.given
        columns = np.flatnonzero(self.along)
        before = given.start.derivative(columns) @ self.along[columns]
        starting, tangents = self._starting(), before[None]
        if starting is not None:
            tangents = self._tangents(starting, before, lambda _: np.where(self.controlled, 0.0, self.seeds[0]))
        self.change = self.changes[0] = tangents[-1]
        self._sweep(progress)
        self.pair += self.forces.get(0, 0.0)
        if starting is not None:
            shares = np.zeros((2, len(given.chosen)))
            seeds = np.where(self.controlled, 0.0, self.seeds[0])
            nothing = np.zeros((2, 1, self.pair.shape[1]))
            pull_twice(starting, Doubled(self.pair, nothing, tangents, lambda _: seeds, lambda _: shares))
            self.of_parameters[:, 0] += np.where(self.controlled, 0.0, shares)
        of_data = given.start.pull_twice(self.pair, self.along)[:, given.columns]
        first, second = (
            named(given, *parts) for parts in zip(of_data, self.of_parameters, (self.of_theta, self.of_theta_2), strict=True)
        )
        return math.fsum(self.values), first, second

    def _starting(self) -> Record | None:
        """The step that prepares the first one, for methods that have it."""
        spec = self.given.spec
        if spec.method.starting is None:
            return None
        run = Run(replace(spec, method=spec.method.starting, steps=1, save_every=1, controls=None, watchful=False))
        record = Record(run, self.given.chosen, 1)
        record.make(1)
        return record

    def _seeds(self, part: Part) -> np.ndarray:
        return self.seeds[self._row(part)]

    def _tangents(self, record: Record, change: np.ndarray, seeds: Callable[[Part], np.ndarray]) -> np.ndarray:
        """The change of the state before all recorded steps, and after the last."""
        parts, S, n_saved = record.parts, change[:, None].copy(), 1
        saved = np.zeros((1 + parts[-1].end - parts[0].begin, *S.shape))
        saved[0] = S
        for part in parts:
            record.parts = [part]
            n_saved = record.push(S, seeds(part)[:, None], saved, 1, n_saved)
        record.parts = parts
        return saved[:, :, 0]

    def _collect(self, begin: int) -> None:
        super()._collect(begin)
        self.kept.append(self.change)
        tangents = self._tangents(self.record, self.change, self._seeds)
        self.changes |= {step: tangents[step - begin] for step in self._inside()}
        self.change = tangents[-1]

    def _loss_at_times(self) -> None:
        super()._loss_at_times()
        theta, self.of_theta_2 = self.given.start.state.theta, np.zeros(len(self.of_theta))
        firsts, self.forces = self.forces, {}
        if not isinstance(self.at_times, AtTimes):
            return
        steps, n = self.at_times.steps.tolist(), self.pair.shape[1]
        states, changes = (np.array([known[step] for step in steps]) for known in (self.states, self.changes))
        seconds, self.of_theta_2 = self.at_times.second(states, theta, changes, self.along[n:])
        for step, row in zip(steps, seconds, strict=True):
            before = self.forces.get(step, np.array([firsts[step], np.zeros(n)]))
            self.forces[step] = before + np.array([np.zeros(n), row])

    def _pull(self, segment: int) -> None:
        ends, tangents = self._ends(), self._tangents(self.record, self.kept[segment], self._seeds)
        forces = np.zeros((2, *ends.shape))
        if self.running is not None:
            for part, rows, t in self._parts():
                values, forces[0, rows], of_chosen = self.running.along(t, ends[rows], part.thetas[0])
                given = (t, ends[rows], part.thetas[0], tangents[1:][rows], self._seeds(part))
                forces[1, rows], of_chosen_2 = self.running.second(*given)
                self.values.append(math.fsum(values))
                self._share(part)[:] += [of_chosen.sum(axis=0), of_chosen_2.sum(axis=0)]
        for step in set(self._inside()):
            forces[:, step - self.record.first - 1] += self.forces[step]
        pull_twice(self.record, Doubled(self.pair, forces, tangents[:-1], self._seeds, self._share))

    def _share(self, part: Part) -> np.ndarray:
        return self.of_parameters[:, self._row(part)]
