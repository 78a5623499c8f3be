"""Orders of convergence, measured as slopes of global errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.errors import InputError
from dalembert.methods import OneStepMethod
from dalembert.problems import Problem
from dalembert.runs._simulate import initial_state, simulate
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import System

COMPONENTS = ("q", "p", "y", "z", "lam", "psi", "stage_lam", "stage_psi")
ROUND_OFF = 1e-12
"""Errors below this, relative to the size of the component, are taken for round-off and dropped."""


@dataclass(frozen=True, eq=False)
class OrderStudy:
    """Errors at the final time by component, the step sizes, and the fitted slopes."""

    h: np.ndarray
    errors: dict[str, np.ndarray]
    slopes: dict[str, float]
    used: dict[str, np.ndarray]
    """Which points entered the slope: the finest ones above round-off."""

    def __str__(self) -> str:
        head = "h".rjust(12) + "".join(name.rjust(12) for name in self.errors)
        rows = [f"{h:12.4e}" + "".join(f"{e[i]:12.3e}" for e in self.errors.values()) for i, h in enumerate(self.h)]
        return "\n".join([head, *rows, "slope".rjust(12) + "".join(f"{s:12.3f}" for s in self.slopes.values())])


def slope(h: Any, errors: Any, *, floor: float = 0.0, points: int = 3) -> tuple[float, np.ndarray]:
    """The least-squares slope of log(error) over log(h) through the finest `points` above `floor`, and which these are.

    Points from the first one on that does not lie above `floor`, or that does not improve on its predecessor, are dropped.

    Example:
        >>> import dalembert as da
        >>> h = [0.1, 0.05, 0.025, 0.0125]
        >>> round(da.verify.slope(h, [3 * x**4 for x in h])[0], 6)
        4.0

    """
    h, errors = np.asarray(h, dtype=float), np.asarray(errors, dtype=float)
    usable = np.ones(len(h), dtype=bool)
    for i in range(len(h)):
        if not errors[i] > floor or (i and not errors[i] < errors[i - 1]):
            usable[i:] = False
            break
    chosen = np.flatnonzero(usable)[-points:]
    used = np.isin(np.arange(len(h)), chosen)
    if len(chosen) < 2:
        return float("nan"), used
    return float(np.polyfit(np.log(h[chosen]), np.log(errors[chosen]), 1)[0]), used


Reference = Mapping[str, Any] | Callable[[float], Mapping[str, Any]] | tuple[OneStepMethod, int] | Trajectory


def order(
    system: System | Problem,
    method: OneStepMethod,
    *,
    reference: Reference,
    t1: float,
    steps: Sequence[int],
    points: int = 3,
    round_off: float = ROUND_OFF,
    **start: Any,
) -> OrderStudy:
    """Measure the order of `method` for q, p and the multipliers apart, as slopes of the errors at time t1.

    `steps` are increasing numbers of steps on [t0, t1]; `start` takes the initial values as `da.simulate` does. `reference`
    gives the right values at t1: a dictionary with some of "q" and "p" ("y" and "z"), "lam", "psi", "stage_lam" and "stage_psi"
    (to compare the method's own multipliers with), a function of time that returns one, a trajectory that ends at t1, or
    (method, steps) for a numerical reference. Errors are Euclidean norms. The slope is fitted through the finest `points` whose
    errors stand above round-off.

    Example:
        >>> import dalembert as da
        >>> study = da.verify.order(da.problems.double_pendulum(), da.Rattle(), t1=2.0, steps=[100, 200, 400],
        ...                         reference=(da.LobattoIIIAB(stages=6), 100))
        >>> {name: round(value, 1) for name, value in study.slopes.items()}
        {'q': 2.0, 'p': 2.0, 'lam': 2.0}

    """
    counts = [int(n) for n in steps]
    if len(counts) < 2 or any(b <= a for a, b in itertools.pairwise(counts)) or counts[0] < 1:
        raise InputError(f"steps must be at least two increasing numbers of steps; got {list(steps)}")
    t0 = initial_state(system, **start)[1].t
    right = _reference(system, reference, t0, t1, start)

    def final(used: OneStepMethod, n: int) -> Trajectory:
        return simulate(system, used, h=(t1 - t0) / n, steps=n, save_every=n, progress=False, stage_multipliers=wanted, **start)

    wanted = bool({"stage_lam", "stage_psi"} & set(right))
    errors: dict[str, list[float]] = {name: [] for name in COMPONENTS if name in right and np.size(right[name])}
    for n in counts:
        run = final(method, n)
        for name, values in errors.items():
            values.append(float(np.linalg.norm(getattr(run, name)[-1] - np.asarray(right[name]))))
    h = (t1 - t0) / np.array(counts)
    measured = {
        name: slope(h, values, floor=round_off * max(1.0, float(np.linalg.norm(right[name]))), points=points)
        for name, values in errors.items()
    }
    return OrderStudy(
        h,
        {name: np.array(values) for name, values in errors.items()},
        {name: value for name, (value, _) in measured.items()},
        {name: used for name, (_, used) in measured.items()},
    )


def _reference(
    system: System | Problem, reference: Reference, t0: float, t1: float, start: dict[str, Any]
) -> Mapping[str, Any]:
    if isinstance(reference, tuple):
        method, n = reference
        reference = simulate(system, method, h=(t1 - t0) / n, steps=n, save_every=n, progress=False, **start)
    if isinstance(reference, Trajectory):
        if abs(reference.t[-1] - t1) > 1e-12 * max(1.0, abs(t1)):
            raise InputError(f"the reference trajectory ends at t = {reference.t[-1]:g}, not at t1 = {t1:g}")
        names = [name for name in COMPONENTS[:6] if name in [*dict(reference.blocks), "lam", "psi"]]
        return {name: getattr(reference, name)[-1] for name in names}
    values = reference(t1) if callable(reference) else reference
    if not set(values) & set(COMPONENTS):
        raise InputError(f"the reference must give some of {', '.join(COMPONENTS)}; got {', '.join(map(str, values))}")
    return values
