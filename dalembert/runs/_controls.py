"""Controls: parameters of a model that change from step to step, given as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dalembert.engine._spec import Controls
from dalembert.errors import InputError
from dalembert.systems import State, System
from dalembert.systems._consistent import unpack
from dalembert.systems._model import one_line, real_array
from dalembert.systems._ramped import ramped
from dalembert.systems._states import States


def parameter_slots(system: System, name: str, what: str) -> np.ndarray:
    """The positions of a parameter in theta."""
    sizes = {known: value.size for known, value in system.parameters.values.items()}
    if name not in sizes:
        known = ", ".join(sizes) or "none"
        raise InputError(f"{what} names {name!r}, which is no parameter of the model (it has: {known})")
    first = sum(size for _, size in zip(range(list(sizes).index(name)), sizes.values(), strict=False))
    return first + np.arange(sizes[name])


@dataclass(frozen=True, eq=False)
class PiecewiseLinear:
    """A control that is linear between given values, one row for the start and one for the end of each interval.

    Example:
        >>> import numpy as np, dalembert as da
        >>> cart = da.Lagrangian(lambda v: v @ v / 2, dim=1, force=lambda u: [u], params={"u": 0.0})
        >>> ramp = da.PiecewiseLinear([0.0, 6.0])  # u = 6 t
        >>> run = da.simulate(cart, da.Gauss(2), q0=[0], v0=[0], h=0.1, steps=10, controls={"u": ramp})
        >>> bool(abs(run.q[-1, 0] - 1) < 1e-14)
        True

    """

    values: Any


def with_ramps(system: System, start: State | States) -> State | States:
    """A start as one of the system in which some parameters change linearly."""
    hidden = np.zeros(1 + len(system.ramps))
    if isinstance(start, States):
        return replace(start, system=system, theta=np.array([np.concatenate([theta, hidden]) for theta in start.theta]))
    return unpack(system, start.t, start.packed, np.concatenate([start.theta, hidden]), start.multipliers)


def given_controls(
    system: System, controls: Mapping[str, Any] | None, steps: int, t0: float, h: float
) -> tuple[System, Controls | None]:
    """Controls as a run takes them: each parameter with one value for each step, or for each of equally many steps.

    Those that are linear in between make another system, whose steps have slopes as well.
    """
    if controls is None:
        return system, None
    if not isinstance(controls, Mapping) or not controls:
        raise InputError('controls maps names of parameters to arrays with one row a step, as in controls={"u": np.zeros(100)}')
    slots, columns, counts, linear = [], [], {}, {}
    for name, given in controls.items():
        slots.append(parameter_slots(system, name, "controls"))
        shape = system.parameters.values[name].shape
        ends = int(isinstance(given, PiecewiseLinear))
        try:
            values = real_array(given.values if ends else given)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"the control {name!r} must be an array of numbers; got {one_line(given)}") from None
        if values.ndim == 0 or values.shape[1:] != shape or len(values) <= ends or steps % (len(values) - ends):
            wanted = f"{('rows + 1' if ends else 'rows', *shape)}".replace("'", "")
            raise InputError(
                f"the control {name!r} must have the shape {wanted}, where rows divides the number of steps, {steps}; "
                f"got shape {values.shape}"
            )
        if not np.all(np.isfinite(values)):
            raise InputError(f"the control {name!r} must be finite")
        values = values.reshape(len(values), -1)
        if ends:
            linear[name] = slots[-1], np.diff(values, axis=0)
        columns.append(values[: len(values) - ends])
        counts[name] = len(columns[-1])
    if len(set(counts.values())) > 1:
        raise InputError(f"controls must have equally many rows; got {counts}")
    rows, own = next(iter(counts.values())), np.concatenate([np.zeros(0, int), *(slots for slots, _ in linear.values())])
    if linear:
        width = steps // rows * h
        slots.append(system.parameters.size + np.arange(len(own) + 1))
        columns += [change / width for _, change in linear.values()]
        columns.append((t0 + np.arange(rows) * width)[:, None])
        system = ramped(system, tuple(own.tolist()))
    return system, Controls(np.concatenate(slots), np.concatenate(columns, axis=1), steps // rows, own)
