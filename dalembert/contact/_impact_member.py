"""Members of an ensemble that meet walls: each has a run with impacts of its own; compiled code is shared by all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dalembert.compiler import Program
from dalembert.contact import CollisionIntegrator
from dalembert.contact import _plan as at
from dalembert.contact._event_program import event_program
from dalembert.contact._impact_run import ImpactRun
from dalembert.contact._records import TALLIED, Contacts, Impacts
from dalembert.engine._ensemble_run import MOST_UNITS, EnsembleRun
from dalembert.engine._member import MemberRun
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError
from dalembert.symbolic._lock import symbolic
from dalembert.systems import MechanicalSystem, State
from dalembert.systems._states import States


@dataclass
class ImpactMember(MemberRun, ImpactRun):
    """One member; it may forget its impacts as its log fills, and keep a tally of them."""

    tallies: bool = False

    def __post_init__(self) -> None:
        self.tally = dict.fromkeys(TALLIED, 0.0) | {"last_t": np.nan}
        super().__post_init__()
        if self.watch is not None:
            self.watching.begin(self.start.packed[None, None])

    def record(self, state: np.ndarray) -> None:
        """One more step, made in contact, which the watch sees as it sees the others."""
        super().record(state)
        self.show(state[None])

    def _make_room(self) -> None:
        if self.tallies:
            self._count()
        else:
            super()._make_room()

    def _count(self, last: bool = False) -> None:
        """Move the impacts of the log, and the contacts that are over, to the tally."""
        tally, impacts, over = self.tally, self.impacts, []
        jumps = impacts.energy_after - impacts.energy_before
        for name, values in (("impulse", impacts.impulse), ("energy_change", jumps), ("total_jump", np.abs(jumps))):
            tally[name] += float(values.sum())
        if len(impacts):
            tally["count"] += len(impacts)
            tally["largest_jump"] = max(tally["largest_jump"], float(np.abs(jumps).max()))
            tally["last_t"] = float(impacts.t[-1])
        self.logged_before, self.plan[at.LOGGED] = self.logged_before + len(impacts), 0
        for note in self.held:
            if last or abs(note[2] - self.time) >= 1e-6 * self.h:
                over.append(note)
        self.held = [held for held in self.held if held not in over]
        tally["contacts"] += len(over)
        tally["contact_time"] += sum(end - begin for _, begin, end, _ in over)

    def tallied(self) -> np.ndarray:
        """The tally of all impacts and contacts, in the order of TALLIED."""
        self._count(last=True)
        return np.array([self.tally[name] for name in TALLIED])


class ImpactBatch:
    """Some members of an ensemble, one after the other."""

    def __init__(self, ensemble: ImpactEnsembleRun, members: list[int]) -> None:
        self.ensemble, self.members = ensemble, members
        self._finished, self._running = 0, None  # type: tuple[int, ImpactMember | None]

    @property
    def steps_done(self) -> int:
        """How many steps of all members together are done."""
        running = self._running
        return self._finished + (0 if running is None else running.steps_done)

    def prepare(self) -> None:
        """Make the first member's run, which compiles what all of them share."""
        self._running = self._begun(self.members[0])

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
                run = self._running = self._begun(member)
            reason = run.run_to_end(ensemble.stop, unsolved=False)
        except Exception as error:  # whatever goes wrong with one member must not stop the others
            reason = f"{type(error).__name__}: {error}"
        self._running = None
        if run is None:
            ensemble.failures[member] = str(reason)
            return
        self._finished += run.steps_done
        stats = run.stats()
        for name, values in ensemble.impact_counts.items():
            values[member] = stats[name]
        ensemble.keep(member, run, reason)
        if run.tallies:
            ensemble.tallies[member] = run.tallied()
        else:
            ensemble.impacts[member], ensemble.contacts[member] = run.impacts, run.contacts

    def _begun(self, member: int) -> ImpactMember:
        ensemble = self.ensemble
        with symbolic:
            return ImpactMember(
                ensemble.of_member(member), watch=ensemble.watch, tallies=ensemble.tally_impacts, given=ensemble.given[member]
            )


@dataclass(eq=False)
class ImpactEnsembleRun(EnsembleRun):
    """Many runs by a collision integrator. Impacts fall into different steps of different members: each is run on its own."""

    tally_impacts: bool = False
    """Whether impacts are counted instead of stored."""

    def __post_init__(self) -> None:
        assert isinstance(self.spec.start, States)
        members = len(self.spec.start)
        self.keeps_impacts = not self.tally_impacts
        self.impacts: list[Impacts | None] = [None] * members
        self.contacts: list[Contacts | None] = [None] * members
        super().__post_init__()
        self.tallies = np.full((members, len(TALLIED)), np.nan)

    def of_member(self, member: int) -> RunSpec:
        """The run of one member, whose state knows only what a run needs: what more a state knows takes a millisecond."""
        states, system = self.states, self.system
        (first, n), (second, _) = system.state_blocks
        (y, z), none = np.split(states.packed[member], [n]), np.zeros(0)
        lam, psi = np.split(states.multipliers[member], [system.n_holonomic])
        start = State(
            float(states.t[member]), y, z, none, lam, psi, {}, states.theta[member], (first, second), system.fingerprint
        )
        return replace(self.spec, start=start, h=float(self.h[member]))

    def _programs(self) -> list[list[Program]]:
        """Programs of the full steps, between impacts."""
        system, method = self.system, self.method
        assert isinstance(system, MechanicalSystem) and isinstance(method, CollisionIntegrator)
        return self._smooth_programs(system.smooth, method.full, replace(self.states, system=system.smooth))

    def _batches(self, programs: list[list[Program]]) -> list[ImpactBatch]:
        if self.simd:
            raise InputError(
                f"simd=True: impacts fall into different steps of different members, so {self.method} computes them "
                "one by one; leave simd= out"
            )
        if self.watch is not None:
            self.watch.code(1)
        assert isinstance(self.system, MechanicalSystem) and isinstance(self.method, CollisionIntegrator)
        self.given = list(zip(programs[0], self.guesses[0], self.signs, strict=True))
        counted = event_program(self.system, self.method).counted
        self.impact_counts = {name: np.zeros(len(self.states), dtype=np.int64) for name in counted}
        members = list(range(len(self.states)))
        assert self.workers is not None
        size = max(1, min(MOST_UNITS, len(members) // (16 * self.workers)))
        return [ImpactBatch(self, members[first : first + size]) for first in range(0, len(members), size)]
