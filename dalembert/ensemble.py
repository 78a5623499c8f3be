"""`simulate_many`: many trajectories of one system at once, which differ in initial values or parameters."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dalembert._events import ImpactReduction, MemberContacts, MemberImpacts, of_members
from dalembert.compiler import SingularMatrix, Watch, build_watch, reductions
from dalembert.compiler._watch import REDUCED
from dalembert.draw import Drawing
from dalembert.errors import ModelError
from dalembert.methods import OneStepMethod
from dalembert.problems._problem import Problem
from dalembert.progress import ProgressLine
from dalembert.simulation import _check_memory, _count, _positive, _steps, check_method, check_stage_multipliers, given_values
from dalembert.systems import State, System
from dalembert.systems._states import States, states_at
from dalembert.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Reduction:
    """What is left of a quantity along each member's run: arrays, one number a member, over all steps and the start."""

    first: np.ndarray
    last: np.ndarray
    min: np.ndarray
    max: np.ndarray
    mean: np.ndarray
    slope: np.ndarray
    """Of the least-squares line through the quantity against time."""

    @property
    def range(self) -> np.ndarray:
        """max - min."""
        return self.max - self.min


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Many runs of one system: the arrays of a trajectory, the member as first axis.

    `t` has one entry a stored step; `q`, `p`, `v`, `lam`, `psi`, `energy` and every array of `residuals` are (member, time,
    ...), nan after the end of a member that failed. `runs[i]` is member i as a `Trajectory`, `status` and `message` say how
    each one ended ("done", "failed", "interrupted"), `reduced` holds what `reduce=` asked for. Of a collision integrator,
    `impacts` and `contacts` are those of all members, with an array `member` beside the columns of `run.impacts`.

    Example:
        >>> import numpy as np, dalembert as da
        >>> runs = da.simulate_many(da.problems.double_pendulum(), da.LobattoIIIAB(3), params={"g": np.linspace(1, 2, 10)},
        ...                         h=0.1, steps=200, save_every=10)
        >>> len(runs), runs.q.shape, runs.energy.shape, runs[3].q.shape, set(runs.status)
        (10, (10, 21, 4), (10, 21), (21, 4), {'done'})

    """

    t: np.ndarray
    states: np.ndarray
    """All variables, (member, time, n)."""
    blocks: tuple[tuple[str, int], ...]
    h: float
    method: str
    parameters: dict[str, np.ndarray]
    """Every parameter, (member, ...)."""
    status: tuple[str, ...]
    message: tuple[str, ...]
    steps_done: np.ndarray
    """How many steps each member made."""
    last: np.ndarray
    """The last state of every member, (member, n), whether its step was stored or not."""
    reduced: dict[str, Reduction | ImpactReduction]
    stats: dict[str, float]
    system: System | None = field(repr=False)
    solver: OneStepMethod | None = field(repr=False)
    starts: States | None = field(repr=False)
    save_every: int = field(repr=False)
    stage_multipliers: np.ndarray | None = field(repr=False)
    """(lam, psi) next to the end of each stored step, (member, time, m), if they were asked for."""
    _counts: dict[str, np.ndarray] = field(repr=False)
    _events: Callable[[str], Any] | None = field(default=None, repr=False)
    """Gives the events of all members, "impact" or "contact", if they are kept."""
    drawing: Drawing | None = field(default=None, repr=False)
    """How the mechanism is drawn, where a `Problem` says so."""

    def __repr__(self) -> str:
        done = sum(status == "done" for status in self.status)
        return f"<Ensemble of {len(self)} runs, t = {self.t[0]:g} to {self.t[-1]:g}, {self.method}, {done} done>"

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[Trajectory]:
        return (self[member] for member in range(len(self)))

    def __getitem__(self, member: int) -> Trajectory:
        if not -len(self) <= member < len(self):
            raise IndexError(f"member {member} of {len(self)}")
        member %= len(self)
        return self._trajectory(member, None if self.starts is None else self.starts[member])

    def _trajectory(self, member: int, start: State | None) -> Trajectory:
        done, n = int(self.steps_done[member]), sum(size for _, size in self.blocks)
        saved = done // self.save_every + 1
        numbers, rows = np.arange(saved) * self.save_every, self.states[member, :saved]
        stage = None if self.stage_multipliers is None else self.stage_multipliers[member, :saved]
        if done % self.save_every:
            numbers, rows = np.append(numbers, done), np.vstack([rows, self.last[member, :n]])
            stage = None if stage is None else np.vstack([stage, self.last[member, n:]])
        parts: Sequence[np.ndarray | None] = (None, None)
        if stage is not None and self.system is not None:
            parts = np.split(stage, [self.system.n_holonomic], axis=1)
        return Trajectory(
            t=self.t[0] + numbers * self.h,
            states=rows,
            blocks=self.blocks,
            h=self.h,
            method=self.method,
            parameters={name: values[member] for name, values in self.parameters.items()},
            status=self.status[member],
            message=self.message[member],
            stats={name: int(values[member]) for name, values in self._counts.items()},
            fingerprint="" if self.system is None else self.system.fingerprint,
            system=self.system,
            start=start,
            solver=self.solver,
            drawing=self.drawing,
            stage_lam=parts[0],
            stage_psi=parts[1],
            impacts=None if self.impacts is None else self.impacts[member],
            contacts=None if self.contacts is None else self.contacts[member],
        )

    @functools.cached_property
    def impacts(self) -> MemberImpacts | None:
        """Impacts of all members on unilateral constraints, for runs by a collision integrator that were not reduced."""
        return None if self._events is None else self._events("impact")

    @functools.cached_property
    def contacts(self) -> MemberContacts | None:
        """Sustained contacts of all members."""
        return None if self._events is None else self._events("contact")

    def _block(self, name: str) -> np.ndarray:
        first = 0
        for block, size in self.blocks:
            if block == name:
                return self.states[:, :, first : first + size]
            first += size
        raise AttributeError(f"these runs have no {name}: their variables are {' and '.join(b for b, _ in self.blocks if b)}")

    @property
    def q(self) -> np.ndarray:
        """Configurations of a mechanical system, (member, time, n)."""
        return self._block("q")

    @property
    def p(self) -> np.ndarray:
        """Momenta of a mechanical system, (member, time, n)."""
        return self._block("p")

    @property
    def y(self) -> np.ndarray:
        """The variables y of an ODAE or of an index-2 DAE; the configurations of a mechanical system."""
        return self._block("y" if self.blocks[1][0] == "y" else self.blocks[0][0])

    @property
    def z(self) -> np.ndarray:
        """The variables z of an ODAE; the algebraic ones of an index-2 DAE; the momenta of a mechanical system."""
        return self.psi if self.blocks[1][0] == "y" else self._block(self.blocks[1][0])

    @property
    def v(self) -> np.ndarray:
        """Velocities, (member, time, n)."""
        return self._gather("v")

    @property
    def energy(self) -> np.ndarray:
        """The Hamiltonian along the runs, (member, time)."""
        return self._gather("energy")

    @property
    def lam(self) -> np.ndarray:
        """Multipliers of the holonomic constraints, (member, time, m)."""
        return self._gather("lam")

    @property
    def psi(self) -> np.ndarray:
        """Multipliers of the nonholonomic constraints, (member, time, m)."""
        return self._gather("psi")

    @property
    def residuals(self) -> dict[str, np.ndarray]:
        """How well the constraints hold, as `Trajectory.residuals` with the member first."""
        each = [run.residuals for run in self._each()]
        return {name: self._padded([residuals[name] for residuals in each]) for name in each[0]}

    def _gather(self, name: str) -> np.ndarray:
        return self._padded([getattr(run, name) for run in self._each()])

    def _each(self) -> Iterator[Trajectory]:
        """The members, without their starts, which take a millisecond each, where nothing depends on them."""
        needed = self.system is not None and not self.system.linear_in_multipliers
        return iter(self) if needed else (self._trajectory(member, None) for member in range(len(self)))

    def _padded(self, values: list[np.ndarray]) -> np.ndarray:
        """One array of the stored steps of all members, nan where a member has none."""
        result = np.full((len(self), len(self.t), *values[0].shape[1:]), np.nan)
        for member, rows in enumerate(values):
            stored = self.steps_done[member] // self.save_every + 1
            result[member, :stored] = rows[:stored]
        return result


def simulate_many(
    system: System | Problem,
    method: OneStepMethod,
    *,
    q0: Any = None,
    v0: Any = None,
    p0: Any = None,
    y0: Any = None,
    z0: Any = None,
    lam0: Any = None,
    psi0: Any = None,
    start: State | Sequence[State] | None = None,
    h: float | None = None,
    steps: int | None = None,
    t1: float | None = None,
    t0: float | None = None,
    save_every: int | None = None,
    params: Mapping[str, Any] | None = None,
    reduce: Sequence[str] | Mapping[str, Any] = (),
    save_to: str | os.PathLike[str] | None = None,
    executor: Any = None,
    workers: int | None = None,
    simd: bool | None = None,
    progress: bool | None = None,
    newton_tolerance: float | None = None,
    stage_multipliers: bool = False,
) -> Ensemble:
    """Integrate many trajectories of `system`, the members, which differ in initial values or parameters.

    Arguments are those of `da.simulate`; any initial value and any parameter may have a leading axis, one row a member (`start`
    may be a list of states), and what has none is the same for all. All members share compiled programs, and `workers` threads
    (by default as many as the machine has cores) carry them through their steps without Python's lock. A member that fails does
    not stop the others: `status` and `message` say what became of each. Ctrl-C returns what was computed.

    `simd` chooses whether members are computed side by side in vectors of the machine, by default where it is faster. With
    `simd=False` every member is bit for bit what `da.simulate` gives; with vectors it is the same to round-off. Collision
    integrators carry members one by one, their impacts being in different steps.

    `reduce` names what is followed at every step without being stored: "energy", "residuals", or {name: function of the state}.
    `runs.reduced[name]` then has the `first`, `last`, `min`, `max`, `range`, `mean` and `slope` of every member, and, unless
    `save_every` is given, only the first and the last state are stored, so that memory does not grow with the length. "impacts"
    are counted instead of stored: how many, their impulses, energies and the time of the last (`ImpactReduction`).

    `executor` is a `concurrent.futures` executor or a Dask `Client`, whose workers then compute parts of the ensemble, each in
    `workers` threads (by default one); parts of lost workers are computed again. `save_to="sweep.zarr"` writes the parts into
    one Zarr store as they become ready, and `da.resume` computes those that are missing.

    Example:
        >>> import numpy as np, dalembert as da
        >>> angle = np.linspace(0.1, 1.5, 100)
        >>> q0 = np.stack([np.sin(angle), -np.cos(angle)], axis=1)
        >>> runs = da.simulate_many(da.problems.pendulum(), da.LobattoIIIAB(3), q0=q0, p0=[0, 0], h=0.1, steps=1000,
        ...                         reduce={"energy": "energy", "height": lambda q: q[1]})
        >>> runs.q.shape, bool(runs.reduced["energy"].range.max() < 1e-5)
        ((100, 2, 2), True)

    """
    if isinstance(system, Problem):
        h = system.h if h is None else h
        steps = system.steps if steps is None and t1 is None else steps
    drawing = system.drawing if isinstance(system, Problem) else None
    initial = {"q0": q0, "v0": v0, "p0": p0, "y0": y0, "z0": z0, "lam0": lam0, "psi0": psi0}
    model, states = initial_states(system, start=start, t0=t0, params=params, **initial)
    check_method(method, model, "simulate_many")
    h = _positive("h", h)
    steps = _steps(steps, t1, float(states.t[0]), h)
    quantities, counted = reductions(reduce, model)
    if save_every is None:
        save_every = max(steps, 1) if quantities or counted else 1
    save_every = _count("save_every", save_every, least=1)
    workers = None if workers is None else _count("workers", workers, least=1)
    if save_to is None:
        _check_memory(len(states) * (steps // save_every + 1) * 8 * model.n_state)
    if newton_tolerance is not None:
        newton_tolerance = _positive("newton_tolerance", newton_tolerance)
    check_stage_multipliers(method, stage_multipliers)
    if executor is not None or save_to is not None:
        from dalembert.cluster import Sweep, run_sweep

        stage_multipliers = bool(stage_multipliers) or not model.linear_in_multipliers
        workers = workers or (None if executor is None else 1)
        options = (newton_tolerance, stage_multipliers, simd, workers, counted)
        sweep = Sweep(model, method, h, steps, save_every, quantities, *options)
        return replace(run_sweep(sweep, states, executor, save_to, progress), drawing=drawing)
    watch = build_watch(model, quantities) if quantities else None
    run = run_ensemble(
        model, method, states, h, steps, save_every, watch, workers, simd, progress, newton_tolerance, stage_multipliers,
        tally_impacts=bool(counted),
    )  # fmt: skip
    return replace(_ensemble(run, h, counted), drawing=drawing)


def initial_states(
    system: System | Problem, *, start: State | Sequence[State] | None, t0: float | None, params: Any, **initial: Any
) -> tuple[System, States]:
    """The system and the members' initial states; a problem brings what is not given."""
    model, t0, given = given_values(system, start is not None, t0, initial)
    return model, states_at(model, t0=0.0 if t0 is None else t0, params=params, start=start, **given)


def run_ensemble(
    system: System,
    method: OneStepMethod,
    states: States,
    h: float | np.ndarray,
    steps: int,
    save_every: int,
    watch: Watch | None = None,
    workers: int | None = None,
    simd: bool | None = None,
    progress: bool | None = None,
    newton_tolerance: float | None = None,
    stage_multipliers: bool = False,
    typical_h: float | None = None,
    tally_impacts: bool = False,
) -> Any:
    """The engine's run, after it has ended or was interrupted; programs are made for a `typical_h`, by default the first."""
    from dalembert.engine._ensemble import EnsembleRun, prepared  # loads Numba

    sizes = np.broadcast_to(np.asarray(h, dtype=float), len(states)).copy()
    stage_multipliers = bool(stage_multipliers) or not system.linear_in_multipliers
    try:
        states = prepared(system, method, states, sizes)
        run = EnsembleRun(
            system, method, states, sizes, steps, save_every, newton_tolerance, stage_multipliers, watch, simd, workers,
            float(sizes[0]) if typical_h is None else typical_h, tally_impacts,
        )  # fmt: skip
    except SingularMatrix:
        raise ModelError(
            f"the step equations of {method} are singular at the start: H_pp and the derivatives of the constraints must have "
            "full rank there"
        ) from None
    line = ProgressLine(steps * len(states), progress)
    try:
        run.advance(line.update)
    finally:
        line.close()
    return run


def outcomes(run: Any, h: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """How each member ended, and why."""
    status, message = [], []
    for member, done in enumerate(run.steps_done.tolist()):
        now = run.states.t[member] + done * h
        if member in run.failures:
            status.append("failed")
            message.append(f"step {done + 1} from t = {now:.6g} failed: {run.failures[member]}")
        elif done < run.steps:
            status.append("interrupted")
            message.append(f"interrupted after {done} of {run.steps} steps, at t = {now:.6g}")
        else:
            status.append("done")
            message.append("")
    return tuple(status), tuple(message)


def _ensemble(run: Any, h: float, counted: Sequence[str] = ()) -> Ensemble:
    n = run.system.n_state
    status, message = outcomes(run, h)
    for member, done in enumerate(run.steps_done.tolist()):
        run.rows[member, done // run.save_every + 1 :] = np.nan
    names = list(run.system.parameters.values)
    each = [run.system.parameters.unflatten(theta) for theta in run.states.theta]
    counts = {
        "steps": run.steps_done,
        "newton_iterations": run.iterations,
        "factorizations": run.factorizations,
        "rescued_steps": run.rescued,
        **run.impact_counts,
    }
    stats: dict[str, float] = {name: int(values.sum()) for name, values in counts.items()}
    stats |= {"lanes": run.lanes, "workers": run.workers, "build_seconds": run.build_time}
    stats |= {"wall_seconds": run.wall_time, "cpu_seconds": run.cpu_time}
    return Ensemble(
        t=run.states.t[0] + np.arange(run.rows.shape[1]) * run.save_every * h,
        states=run.rows[:, :, :n],
        blocks=run.system.state_blocks,
        h=h,
        method=str(run.method),
        parameters={name: np.array([values[name] for values in each]) for name in names},
        status=status,
        message=message,
        steps_done=run.steps_done,
        last=run.last,
        reduced=({} if run.watch is None else _reduced(run, h)) | {name: ImpactReduction.of(run.tallies) for name in counted},
        stats=stats,
        system=run.system,
        solver=run.method,
        starts=run.states,
        save_every=run.save_every,
        stage_multipliers=run.rows[:, :, n:] if run.stage_multipliers else None,
        _counts=counts,
        _events=functools.partial(_events, run.system.dim, run.impacts, run.contacts) if run.keeps_impacts else None,
    )


def _events(dim: int, impacts: Sequence[Any], contacts: Sequence[Any], kind: str) -> Any:
    return of_members(kind, dim, impacts if kind == "impact" else contacts)


def _reduced(run: Any, h: float) -> dict[str, Reduction | ImpactReduction]:
    """The accumulators of the watch as numbers, nan for members that never began.

    The slope is comoment / (h sum (k - mean of k)^2).
    """
    count, began = run.steps_done + 1.0, run.watched[:, run.watch.count] > 0
    spread = count * (count**2 - 1) / 12
    result: dict[str, Reduction | ImpactReduction] = {}
    for k, name in enumerate(run.watch.quantities):
        slot = run.watch.reduced + k * len(REDUCED)
        kept = np.where(began[:, None], run.watched[:, slot : slot + len(REDUCED)], np.nan)
        first, last, least, most, mean, comoment = kept.T
        with np.errstate(invalid="ignore"):
            result[name] = Reduction(first, last, least, most, mean, comoment / (h * spread))
    return result
