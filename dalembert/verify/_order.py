"""Orders of convergence, measured as slopes of global errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dalembert._fits import OrderStudy, slope
from dalembert.errors import InputError
from dalembert.methods import OneStepMethod
from dalembert.methods._base import refuse_varying
from dalembert.runs._problem import Problem
from dalembert.runs._simulate import simulate
from dalembert.runs._starts import initial_state
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import System

COMPONENTS = ("q", "p", "y", "z", "lam", "psi", "stage_lam", "stage_psi")
ROUND_OFF = 1e-12
"""Errors below this, relative to the size of the component, are taken for round-off and dropped."""


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
    refuse_varying(method, "da.verify.order")
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
    h = abs(t1 - t0) / np.array(counts)
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
