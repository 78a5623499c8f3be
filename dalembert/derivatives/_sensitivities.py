"""Forward sensitivities: how the states along a run depend on initial values and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dalembert._interrupts import interruptible
from dalembert._progress import ProgressLine, busy
from dalembert.derivatives._record import Record
from dalembert.derivatives._through_impacts import ImpactSteps
from dalembert.derivatives._wanted import Differentiated, Wanted, differentiated
from dalembert.engine._run import Run
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError
from dalembert.runs._drivers import driver_of, make_run, prepared
from dalembert.runs._lengths import check_memory
from dalembert.runs._simulate import trajectory_of
from dalembert.runs._trajectory import Trajectory

ALL_STATES = ("all states of a run with impacts and their derivatives", "take fewer steps, or larger ones")
"""What derivatives through impacts keep, whatever save_every is."""
SEGMENT = 2**17
"""Numbers of a record that is pushed through while it is still in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Sensitivities:
    """Derivatives of all stored states of `run`.

    `result["m"]` has the shape (time, variables of the state, *shape of m); `result.of("q", "m")` is the part of q alone.
    """

    run: Trajectory
    wanted: tuple[Wanted, ...] = field(repr=False)
    values: np.ndarray = field(repr=False)
    """(time, variables of the state, directions)."""

    def __getitem__(self, name: str) -> np.ndarray:
        first = 0
        for each in self.wanted:
            if each.name == name:
                part = self.values[:, :, first : first + len(each.columns)]
                return part.reshape(*part.shape[:2], *each.shape)
            first += len(each.columns)
        raise InputError(f"the run was not differentiated with respect to {name!r}, only to {[w.name for w in self.wanted]}")

    def of(self, block: str, name: str) -> np.ndarray:
        """The derivatives of one block of the state, "q" or "p", say."""
        first = 0
        for known, size in self.run.blocks:
            if known == block:
                return self[name][:, first : first + size]
            first += size
        raise InputError(f"a state has the blocks {[known for known, _ in self.run.blocks]}; got {block!r}")


@interruptible()
def sensitivities(
    system: Any, method: Any, *, wrt: str | Sequence[str], progress: bool | None = None, **arguments: Any
) -> Sensitivities:
    """A run like that of `da.simulate`, and the exact derivatives of its states with respect to the names in `wrt`.

    `wrt` names initial values (q0, v0 or p0; y0, z0) and parameters; the other arguments are those of `da.simulate`. The
    derivatives are those of the computed solution, from the step equations by the implicit function theorem, in compiled
    code and for all directions at once. Directions of initial values that leave the constraints are projected as by
    `da.consistent`, and parameters of the constraints move the start in the same way.

    Example:
        >>> import numpy as np, dalembert as da
        >>> spring = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 4.0})
        >>> s = da.sensitivities(spring, da.Gauss(3), wrt=("q0", "k"), q0=[1.0], p0=[0.0], h=0.01, steps=100)
        >>> bool(abs(s.of("q", "q0")[-1, 0, 0] - np.cos(2.0)) < 1e-11)
        True
        >>> bool(abs(s.of("q", "k")[-1, 0] + np.sin(2.0) / 4) < 1e-11)
        True

    """
    given = differentiated("sensitivities", system, method, wrt, arguments)
    if len(given.constant) < len(given.wanted):
        raise InputError("sensitivities to controls have a direction for each interval: take da.gradient, which has one pass")
    return forward(given, progress)


def forward(given: Differentiated, progress: bool | None = None) -> Sensitivities:
    """Run, and push derivatives along."""
    spec, seeds = given.spec, given.seeds()
    if driver_of(spec.method).has_impacts:
        return _forward_through_impacts(given, seeds, progress)
    S = given.start.derivative(given.columns)
    check_memory(8 * (spec.steps // spec.save_every) * spec.system.n_state * (1 + len(given.columns)))
    S = through_starting(spec, S, given.chosen, seeds)
    run = make_run(prepared(spec))
    saved = np.zeros((spec.steps // spec.save_every + 2, *S.shape))
    saved[0] = S
    count = 1
    with ProgressLine(spec.steps, progress) as line:
        record = Record(run, given.chosen, segment(run, spec.steps))
        while run.steps_done < spec.steps:
            record.make(min(spec.steps, run.steps_done + record.room), line.update)
            count = record.push(S, seeds, saved, spec.save_every, count)
    if spec.steps % spec.save_every:
        saved[count] = S
        count += 1
    return Sensitivities(trajectory_of(spec, run, "done", "", given.drawing), given.wanted, saved[:count])


def _forward_through_impacts(given: Differentiated, seeds: np.ndarray, progress: bool | None) -> Sensitivities:
    steps, last = ImpactSteps(given.spec, given.chosen), given.spec.steps
    check_memory(8 * last * steps.n * (1 + len(given.columns)), *ALL_STATES)
    with busy("making the run with impacts", progress):
        S = steps.start_from(given.start).derivative(given.columns)
    with ProgressLine(last, progress) as line:
        values = steps.push(S, seeds, line.update)
    rows, run = np.unique([*range(0, last + 1, given.spec.save_every), last]), steps.run
    thinned = replace(run, t=run.t[rows], states=run.states[rows], drawing=given.drawing)
    return Sensitivities(thinned, given.wanted, values[rows])


def segment(run: Run, steps: int, numbers: int = SEGMENT) -> int:
    """How many steps are recorded at a time."""
    return int(np.clip(numbers // Record.width(run), 1, max(1, steps)))


def through_starting(spec: RunSpec, S: np.ndarray, chosen: tuple[int, ...], seeds: np.ndarray) -> np.ndarray:
    """Derivatives of the state before the first step, for methods whose state is not (q_0, p_0) itself."""
    if spec.method.starting is None:
        return np.ascontiguousarray(S)
    run = Run(replace(spec, method=spec.method.starting, steps=1, save_every=1, controls=None, watchful=False))
    record, moved = Record(run, chosen, 1), np.array(S)
    record.make(1)
    record.push(moved, seeds, np.zeros((0, *S.shape)), 0, 0)
    return moved
