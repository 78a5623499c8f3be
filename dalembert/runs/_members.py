"""Members of an ensemble: the rows that they start from, how they are computed, and the table of what they leave behind."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert._progress import preparing
from dalembert.compiler import Watch, build_watch
from dalembert.compiler._watch import REDUCED
from dalembert.engine._records import columns_of
from dalembert.engine._spec import RunSpec
from dalembert.runs._arguments import Policy
from dalembert.runs._drivers import driver_of, prepared, run_ensemble
from dalembert.runs._model_identity import plain
from dalembert.storage._member_table import Layout, MemberTable
from dalembert.systems import System
from dalembert.systems._states import States

if TYPE_CHECKING:
    from dalembert.engine._ensemble_run import EnsembleRun


GROUP = 8
"""Parts of many members have a multiple of this many, so that they fill the machine's vectors."""

FEW_PARTS, MOST_PARTS = 16, 256


class Starts(NamedTuple):
    """Times, states, parameters and multipliers with which members start, one row a member."""

    t: np.ndarray
    packed: np.ndarray
    theta: np.ndarray
    multipliers: np.ndarray

    @staticmethod
    def of(spec: RunSpec) -> Starts:
        """Those of all members."""
        assert isinstance(spec.start, States)
        return Starts(spec.start.t, spec.start.packed, spec.start.theta, spec.start.multipliers)

    def rows(self, chosen: slice) -> Starts:
        """Those of some members."""
        return Starts(*(column[chosen] for column in self))

    def states(self, system: System) -> States:
        """The states of a system."""
        return States(system, *self)


def part_size(members: int) -> int:
    """How many members make a part: whoever computes them, and however many do, the numbers are the same.

    A few members, which may be long, are spread over FEW_PARTS; many fill vectors, in at most MOST_PARTS.
    """
    for size in (1, 2, 4):
        if members <= size * FEW_PARTS:
            return size
    return -(-members // (MOST_PARTS * GROUP)) * GROUP


def layout_of(spec: RunSpec, policy: Policy) -> Layout:
    """The columns of the table that an ensemble has."""
    assert isinstance(spec.start, States)
    system, driver = spec.system, driver_of(spec.method)
    recorded = driver.recorded(system)
    return Layout(
        members=len(spec.start),
        part=part_size(len(spec.start)),
        h=spec.h,
        steps=spec.steps,
        save_every=spec.save_every,
        blocks=system.state_blocks,
        method=str(spec.method),
        defaults=plain(system.params),
        quantities=tuple(policy.quantities),
        counted=policy.counted,
        impact_counts=driver.counted(system, spec.method),
        records="" if policy.counted else recorded.name,
        directions=recorded.directions,
        stage_multipliers=spec.stage_multipliers,
        stage=system.n_multipliers if spec.stage_multipliers else 0,
        clock=spec.method.clock_names,
    )


@dataclass(frozen=True, eq=False)
class MembersJob:
    """Computes any members of an ensemble; it travels to workers, without the starts of the members."""

    spec: RunSpec
    policy: Policy

    @staticmethod
    def of(spec: RunSpec, policy: Policy) -> MembersJob:
        """The job for an ensemble."""
        no_members = Starts.of(spec).rows(slice(0)).states(spec.system)
        shown = policy.progress if policy.executor is None else False  # many processes would write over each other
        policy = replace(policy, executor=None, save_to=None, drawing=None, progress=shown)
        return MembersJob(replace(spec, start=no_members), policy)

    def __str__(self) -> str:
        return str(self.spec.method)

    @functools.cached_property
    def watch(self) -> Watch | None:
        """The kernel that follows quantities, compiled once."""
        return build_watch(self.spec.system, self.policy.quantities) if self.policy.quantities else None

    def __call__(
        self, starts: Starts, progress: bool | None = False, began: Callable[[EnsembleRun], None] | None = None
    ) -> MemberTable:
        """Run members to their end; `began` is shown their run before it advances."""
        policy = self.policy
        with preparing(policy.progress):
            spec = prepared(replace(self.spec, start=starts.states(self.spec.system)))
            options: dict[str, Any] = {"watch": self.watch, "workers": policy.workers, "simd": policy.simd}
            run = run_ensemble(spec, progress=progress, count_impacts=bool(policy.counted), began=began, **options)
        return table_of(run, layout_of(spec, policy))


def table_of(run: EnsembleRun, layout: Layout) -> MemberTable:
    """What the engine's run left behind; large arrays are not copied."""
    n, h, carried, failures = layout.n_state, layout.h, layout.n_state + len(layout.clock), {}
    rows, last, begins = run.rows, run.stored(run.last), run.stored(run.states.packed)[:, :n]
    for member, done in enumerate(run.steps_done.tolist()):
        rows[member, done // run.save_every + 1 :] = np.nan
        if member in run.failures:
            t = last[member, n] if layout.clock else run.states.t[member] + done * h
            failures[member] = f"step {done + 1} from t = {t:.6g} failed: {run.failures[member]}"
    rows = run.stored(rows)
    columns = {
        "states": rows[:, :, :n],
        **({"clock": rows[:, :, n:carried]} if layout.clock else {}),
        **({"stage": rows[:, :, carried:]} if layout.stage else {}),
        "last": last,
        "prepared": begins,
        "steps_done": run.steps_done,
        **{name: values for name, values in run.counts.items() if name in layout.counts},
        **run.impact_counts,
        **{f"counted_{name}": run.tallies for name in layout.counted},
        **_reductions(run, h),
    }
    events: dict[str, np.ndarray] = {}
    for kind in layout.recorded.kinds:
        events |= columns_of(layout.recorded.of_members(kind, getattr(run, f"{kind}s")), kind)
    stats: dict[str, Any] = {"lanes": run.lanes, "workers": run.workers, "build_seconds": run.build_time}
    stats |= {"wall_seconds": run.wall_time, "cpu_seconds": run.cpu_time}
    return MemberTable(columns, [events] if events else [], failures, stats)


def _reductions(run: EnsembleRun, h: float) -> dict[str, np.ndarray]:
    """The accumulators of the watch as columns of reductions, nan for members that never began.

    The slope is comoment / (h sum (k - mean of k)^2).
    """
    if run.watch is None:
        return {}
    count, began = run.steps_done + 1.0, run.watched[:, run.watch.count] > 0
    spread = count * (count**2 - 1) / 12
    result = {}
    for k, name in enumerate(run.watch.quantities):
        slot = run.watch.reduced + k * len(REDUCED)
        *kept, comoment = np.where(began[:, None], run.watched[:, slot : slot + len(REDUCED)], np.nan).T
        with np.errstate(invalid="ignore"):
            result[f"reduced_{name}"] = np.stack([*kept, comoment / (h * spread)], axis=1)
    return result
