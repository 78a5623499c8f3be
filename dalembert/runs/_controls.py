"""Controls: parameters of a model that change from step to step, given as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalembert.engine._spec import Controls
from dalembert.errors import InputError
from dalembert.systems import System
from dalembert.systems._model import one_line, real_array


def parameter_slots(system: System, name: str, what: str) -> np.ndarray:
    """The positions of a parameter in theta."""
    sizes = {known: value.size for known, value in system.parameters.values.items()}
    if name not in sizes:
        known = ", ".join(sizes) or "none"
        raise InputError(f"{what} names {name!r}, which is no parameter of the model (it has: {known})")
    first = sum(size for _, size in zip(range(list(sizes).index(name)), sizes.values(), strict=False))
    return first + np.arange(sizes[name])


def given_controls(system: System, controls: Mapping[str, Any] | None, steps: int) -> Controls | None:
    """Controls as a run takes them: each parameter with one value for each step, or for each of equally many steps."""
    if controls is None:
        return None
    if not isinstance(controls, Mapping) or not controls:
        raise InputError('controls maps names of parameters to arrays with one row a step, as in controls={"u": np.zeros(100)}')
    slots, columns, counts = [], [], {}
    for name, given in controls.items():
        slots.append(parameter_slots(system, name, "controls"))
        shape = system.parameters.values[name].shape
        try:
            values = real_array(given)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"the control {name!r} must be an array of numbers; got {one_line(given)}") from None
        if values.ndim == 0 or values.shape[1:] != shape or not len(values) or steps % len(values):
            wanted = f"{('rows', *shape)}".replace("'", "")
            raise InputError(
                f"the control {name!r} must have the shape {wanted}, where rows divides the number of steps, {steps}; "
                f"got shape {values.shape}"
            )
        if not np.all(np.isfinite(values)):
            raise InputError(f"the control {name!r} must be finite")
        columns.append(values.reshape(len(values), -1))
        counts[name] = len(values)
    if len(set(counts.values())) > 1:
        raise InputError(f"controls must have equally many rows; got {counts}")
    rows = next(iter(counts.values()))
    return Controls(np.concatenate(slots), np.concatenate(columns, axis=1), steps // rows)
