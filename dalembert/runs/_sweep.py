"""A sweep: what the members of an ensemble have in common, how many make a part, and how a part is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from dalembert.compiler import Watch, build_watch
from dalembert.contact._records import TALLIED, columns_of
from dalembert.engine._spec import RunSpec
from dalembert.runs._drivers import driver_of
from dalembert.runs._ensemble import Reduction, ensemble_of
from dalembert.runs._ensemble_execution import run_ensemble
from dalembert.systems._states import States

GROUP = 8
"""Parts of many members have a multiple of this many, so that they fill the machine's vectors."""

FEW_PARTS, MOST_PARTS = 16, 256
COUNTS = ("newton_iterations", "factorizations", "rescued_steps")
REDUCTION = ("first", "last", "min", "max", "mean", "slope")
Members = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Times, states, parameters and multipliers, one row a member."""


def part_size(members: int) -> int:
    """How many members make a part: whoever computes them, and however many do, the numbers are the same.

    A few members, which may be long, are spread over FEW_PARTS; many fill vectors, in at most MOST_PARTS.
    """
    for size in (1, 2, 4):
        if members <= size * FEW_PARTS:
            return size
    return -(-members // (MOST_PARTS * GROUP)) * GROUP


@dataclass(frozen=True, eq=False)
class Sweep:
    """What all members of an ensemble have in common; it travels to the workers."""

    spec: RunSpec
    quantities: dict[str, ca.Function] = field(default_factory=dict)
    simd: bool | None = None
    workers: int | None = None
    counted: tuple[str, ...] = ()
    """The names under which impacts are counted instead of stored."""

    @property
    def keeps_impacts(self) -> bool:
        """Whether there may be impacts, and they are stored."""
        return driver_of(self.spec.method).has_impacts and not self.counted

    @property
    def impact_counts(self) -> tuple[str, ...]:
        """What is counted of every member's impacts."""
        return driver_of(self.spec.method).counted(self.spec.system, self.spec.method)

    @property
    def columns(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """What a part consists of: the shape of a member's row, and the type of its numbers."""
        spec = self.spec
        rows, n = spec.steps // spec.save_every + 1, spec.system.n_state
        m = spec.system.n_multipliers if spec.stage_multipliers else 0
        found: dict[str, tuple[tuple[int, ...], str]] = {"states": ((rows, n), "float64"), "last": ((n + m,), "float64")}
        found |= {"prepared": ((n,), "float64"), **({"stage": ((rows, m), "float64")} if m else {})}
        found |= {name: ((), "int64") for name in ("steps_done", *COUNTS, *self.impact_counts)}
        found |= {f"counted_{name}": ((len(TALLIED),), "float64") for name in self.counted}
        return found | {f"reduced_{name}": ((len(REDUCTION),), "float64") for name in self.quantities}

    def watch(self) -> Watch | None:
        """The kernel that follows the quantities."""
        return build_watch(self.spec.system, self.quantities) if self.quantities else None


@dataclass(frozen=True, eq=False)
class Part:
    """What became of some members: columns, events, and messages of those that failed."""

    columns: dict[str, np.ndarray]
    events: dict[str, dict[str, np.ndarray]]
    """The columns of impacts and of contacts."""
    messages: dict[int, str]
    stats: dict[str, float]
    complete: bool


def compute(sweep: Sweep, watch: Watch | None, members: Members, began: Callable[[Any], None] | None = None) -> Part:
    """Run some members to their end; `began` is shown their run before it advances."""
    spec = replace(sweep.spec, start=States(sweep.spec.system, *members))
    options: dict[str, Any] = {"workers": sweep.workers, "simd": sweep.simd, "tally_impacts": bool(sweep.counted)}
    run = run_ensemble(spec, watch=watch, progress=False, began=began, **options)
    runs = ensemble_of(run)
    columns = {"states": runs.states, "last": runs.last, "prepared": run.states.packed, "steps_done": runs.steps_done}
    columns |= {name: runs._counts[name] for name in (*COUNTS, *sweep.impact_counts)}
    columns |= {f"counted_{name}": run.tallies for name in sweep.counted}
    columns |= {} if runs.stage_multipliers is None or "stage" not in sweep.columns else {"stage": runs.stage_multipliers}
    for name, reduction in runs.reduced.items():
        assert isinstance(reduction, Reduction)
        columns[f"reduced_{name}"] = np.stack([getattr(reduction, kind) for kind in REDUCTION], axis=1)
    failed = {k: text for k, (status, text) in enumerate(zip(runs.status, runs.message, strict=True)) if status == "failed"}
    stats = {name: runs.stats[name] for name in ("build_seconds", "wall_seconds")}
    kept = {"impact": runs.impacts, "contact": runs.contacts} if sweep.keeps_impacts else {}
    events = {kind: columns_of(found, kind) for kind, found in kept.items()}
    return Part(columns, events, failed, stats, "interrupted" not in runs.status)
