"""An ensemble from the table of its members."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from dalembert.draw import Drawing
from dalembert.engine._records import ImpactReduction
from dalembert.methods import OneStepMethod
from dalembert.runs._ensemble import Ensemble, Reduction
from dalembert.runs._members import Starts
from dalembert.storage._member_table import Layout, MemberTable
from dalembert.systems import System
from dalembert.systems._model import Parameters


def ensemble_of(
    layout: Layout,
    starts: Starts,
    table: MemberTable,
    system: System | None = None,
    solver: OneStepMethod | None = None,
    drawing: Drawing | None = None,
) -> Ensemble:
    """An ensemble whose members left a table; large columns stay where they are."""
    columns = table.columns
    status, message = outcomes(layout, starts.t, columns["steps_done"], table.failures)
    counts = {name: np.maximum(columns[name], 0) for name in ("steps_done", *layout.counts, *layout.impact_counts)}
    counts = {"steps": counts.pop("steps_done"), **counts}
    parameters = Parameters(layout.defaults)
    each = [parameters.unflatten(theta) for theta in starts.theta]
    prepared = columns["prepared"]
    starts = starts._replace(packed=np.where(np.isnan(prepared), starts.packed, prepared))
    reduced: dict[str, Reduction | ImpactReduction] = {
        name: Reduction(*columns[f"reduced_{name}"].T) for name in layout.quantities
    }
    reduced |= {name: ImpactReduction.of(columns[f"counted_{name}"]) for name in layout.counted}
    t, stage = layout.times(starts.t[0]), None
    if layout.stage_multipliers:
        stage = columns["stage"] if layout.stage else np.zeros((layout.members, len(t), 0))
    clock = np.asarray(columns["clock"]) if layout.clock else None
    return Ensemble(
        t=t if clock is None else clock[:, :, 0],
        states=columns["states"],
        blocks=layout.blocks,
        h=layout.h,
        method=layout.method,
        parameters={name: np.array([values[name] for values in each]) for name in layout.defaults},
        status=status,
        message=message,
        steps_done=counts["steps"],
        last=columns["last"],
        reduced=reduced,
        stats={**{name: int(values.sum()) for name, values in counts.items()}, **table.stats},
        system=system,
        solver=solver,
        starts=None if system is None else starts.states(system),
        save_every=layout.save_every,
        stage_multipliers=stage,
        _counts=counts,
        _events=functools.partial(table.event_records, layout.recorded),
        clock=clock,
        clock_names=layout.clock,
        drawing=drawing,
    )


def outcomes(
    layout: Layout, t0: np.ndarray, steps_done: np.ndarray, failures: Mapping[int, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """How each member ended, and why."""
    status, message = [], []
    for member, done in enumerate(steps_done.tolist()):
        status.append("failed" if member in failures else "done" if done == layout.steps else "interrupted")
        when = "" if layout.clock else f", at t = {t0[member] + done * layout.h:.6g}"
        interrupted = f"interrupted after {done} of {layout.steps} steps{when}"
        unfinished = interrupted if done >= 0 else "not computed yet"
        message.append(failures.get(member, "" if done == layout.steps else unfinished))
    return tuple(status), tuple(message)
