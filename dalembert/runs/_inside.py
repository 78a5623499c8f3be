"""Dense output: the method's own polynomials between the stored states of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dalembert.errors import DalembertError, InputError, is_one_of
from dalembert.methods import SymplecticSteps

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Inside:
    """What `run.at(t)` returns: a method's polynomials at times t; one row a time, or vectors for a single time.

    `y` is Y and `z` is Z~, which run continuously from stored state to stored state. `Z` is the polynomial on which the stages
    lie: it jumps at the ends of a step. `lam` and `psi` interpolate the stages' multipliers and jump too.
    """

    t: np.ndarray
    y: np.ndarray
    z: np.ndarray
    Z: np.ndarray
    lam: np.ndarray
    psi: np.ndarray

    @property
    def q(self) -> np.ndarray:
        """The configuration of a mechanical system, which is y."""
        return self.y

    @property
    def p(self) -> np.ndarray:
        """The momentum of a mechanical system, which is z."""
        return self.z


def interpolated(run: Trajectory, t: Any, side: Literal["left", "right"]) -> Inside:
    """The polynomials of the steps that contain the times t, which are solved again."""
    from dalembert.engine._dense_output import DenseOutput

    if run.system is None or run.solver is None or run.start is None:
        raise DalembertError("this trajectory was loaded without its model, so its steps cannot be solved again")
    if isinstance(run.solver, SymplecticSteps):
        raise InputError(f"{run.solver} has its polynomials in another time: interpolate run.t and the stored states")
    if run.solver.serves_unilateral:
        raise InputError("dense output does not see impacts: read run.impacts, or interpolate run.t and the stored states")
    try:
        times = np.atleast_1d(np.asarray(t, dtype=float))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"run.at takes a time or an array of times; got {t!r}") from None
    steps = len(run.t) - 1
    if steps < 1 or not _every_step(run):
        raise InputError("dense output needs every step: run with save_every=1")
    if not is_one_of(side, "left", "right"):
        raise InputError(f'side is "left" or "right"; got {side!r}')
    along = np.sign(run.h)  # so that time rises
    outside = ~((along * times >= along * run.t[0]) & (along * times <= along * run.t[-1]))
    if np.any(outside):
        raise InputError(f"t = {times[outside][0]:g} is outside of the run, which goes from {run.t[0]:g} to {run.t[-1]:g}")
    step = np.clip(np.searchsorted(along * run.t, along * times, side=side) - 1, 0, steps - 1)
    dense = DenseOutput(run.system, run.solver, run.start, run.h)
    sizes = {"Y": run.blocks[0][1], "Z~": run.blocks[1][1], "Z": run.blocks[1][1]}
    sizes |= {"lam": run.system.n_holonomic, "psi": run.system.n_nonholonomic}
    found = {name: np.full((len(times), size), np.nan) for name, size in sizes.items()}
    for k in np.unique(step):
        rows = step == k
        guess = _guess(run, k)
        clock = np.zeros(len(run.solver.clock_names))  # what else it holds decides the size of the step after this one
        if run.step_sizes is not None:
            clock[:2] = run.t[k], 1 / run.step_sizes[k]
        values = dense.evaluate(run.t[k], run.states[k], times[rows], guess, clock)
        for name, value in values.items():
            found[name][rows] = value
    shaped = [found[name] if np.ndim(t) else found[name][0] for name in ("Y", "Z~", "Z", "lam", "psi")]
    return Inside(times if np.ndim(t) else times[0], *shaped)


def _every_step(run: Trajectory) -> bool:
    """Whether all states are stored."""
    steps = len(run.t) - 1
    if run.step_sizes is not None:
        return run.stats.get("steps") == steps
    return abs(run.t[-1] - run.t[0] - steps * run.h) <= 1e-9 * abs(steps * run.h)


def _guess(run: Trajectory, row: int) -> np.ndarray:
    """Multipliers near those of a stored state: the method's own where they were kept, else those of the start."""
    assert run.start is not None
    if row == 0 or run.stage_lam is None or run.stage_psi is None:
        return run.start.multipliers
    return np.concatenate([run.stage_lam[row], run.stage_psi[row]])
