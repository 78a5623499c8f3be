"""Members of an ensemble that are computed one by one, each in a run of its own; compiled code is shared by all of them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dalembert.compiler import Program
from dalembert.engine._ensemble_run import MOST_UNITS, EnsembleRun
from dalembert.engine._member import MemberRun
from dalembert.errors import InconsistentStart, InputError, StepFailed
from dalembert.systems._states import States


class BatchApart:
    """Some members of an ensemble, one after the other."""

    def __init__(self, ensemble: EnsembleApart, members: list[int]) -> None:
        self.ensemble, self.members = ensemble, members
        self._finished, self._running = 0, None  # type: tuple[int, MemberRun | None]

    @property
    def steps_done(self) -> int:
        """How many steps of all members together are done."""
        running = self._running
        return self._finished + (0 if running is None else running.steps_done)

    def prepare(self) -> None:
        """Make the first member's run, which compiles what all of them share."""
        with contextlib.suppress(InconsistentStart, StepFailed):  # of this member alone, which says so in its turn
            self._running = self.ensemble.begun(self.members[0])

    def advance(self) -> None:
        """Run all members to the end, or until the ensemble is told to stop."""
        for member in self.members:
            if self.ensemble.stop.is_set():
                return
            self._carry(member)

    def _carry(self, member: int) -> None:
        ensemble, run, reason = self.ensemble, self._running, None
        try:
            if run is None:
                run = self._running = ensemble.begun(member)
            run.watching.begin(run.spec.start.packed[None, None])
            reason = run.run_to_end(ensemble.stop, unsolved=False)
        except Exception as error:  # whatever goes wrong with one member must not stop the others
            reason = f"{type(error).__name__}: {error}"
        self._running = None
        if run is None:
            ensemble.failures[member] = str(reason)
            return
        self._finished += run.steps_done
        ensemble.keep(member, run, reason)


@dataclass(eq=False)
class EnsembleApart(EnsembleRun):
    """Many runs, of which each is run on its own; `impacts` and `contacts` are what they recorded."""

    def __post_init__(self) -> None:
        assert isinstance(self.spec.start, States)
        members = len(self.spec.start)
        self.impacts: list[Any] = [None] * members
        self.contacts: list[Any] = [None] * members
        super().__post_init__()

    apart: ClassVar[str]
    """Why members are run on their own."""

    def begun(self, member: int) -> MemberRun:
        """The run of one member."""
        raise NotImplementedError

    @property
    def counted(self) -> tuple[str, ...]:
        """What each run counts that others do not."""
        raise NotImplementedError

    def keep(self, member: int, run: MemberRun, reason: str | None) -> None:
        """Keep the results of a member, and what it recorded."""
        super().keep(member, run, reason)
        stats = run.stats()
        for name, values in self.impact_counts.items():
            values[member] = stats[name]
        self.impacts[member], self.contacts[member] = getattr(run, "impacts", None), getattr(run, "contacts", None)

    def _batches(self, programs: list[list[Program]]) -> list[BatchApart]:
        if self.simd:
            raise InputError(f"simd=True: {self.apart}, so {self.method} computes them one by one; leave simd= out")
        if self.watch is not None:
            self.watch.code(1)
        self.impact_counts = {name: np.zeros(len(self.states), dtype=np.int64) for name in self.counted}
        members = list(range(len(self.states)))
        assert self.workers is not None
        size = max(1, min(MOST_UNITS, len(members) // (16 * self.workers)))
        return [BatchApart(self, members[first : first + size]) for first in range(0, len(members), size)]
