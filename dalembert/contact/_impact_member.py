"""Members of an ensemble that meet walls: each has a run with impacts of its own; compiled code is shared by all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dalembert.compiler import Program
from dalembert.contact import CollisionIntegrator
from dalembert.contact._event_program import event_program
from dalembert.contact._impact_run import ImpactRun
from dalembert.engine._member import MemberRun
from dalembert.engine._members_apart import BatchApart, EnsembleApart
from dalembert.engine._records import TALLIED
from dalembert.engine._spec import RunSpec
from dalembert.symbolic._lock import symbolic
from dalembert.systems import MechanicalSystem, State


@dataclass
class ImpactMember(MemberRun, ImpactRun):
    """One member; it may forget its impacts as its log fills, and keep a tally of them."""

    tallies: bool = False

    def __post_init__(self) -> None:
        self.tally = dict.fromkeys(TALLIED, 0.0) | {"last_t": np.nan}
        super().__post_init__()

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
        self.logged_before, self.event_state.at["logged"] = self.logged_before + len(impacts), 0
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


@dataclass(eq=False)
class ImpactEnsembleRun(EnsembleApart):
    """Many runs by a collision integrator. Impacts fall into different steps of different members: each is run on its own."""

    apart: ClassVar[str] = "impacts fall into different steps of different members"
    tally_impacts: bool = False
    """Whether impacts are counted instead of stored."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tallies = np.full((len(self.states), len(TALLIED)), np.nan)

    @property
    def counted(self) -> tuple[str, ...]:
        """What is counted of impacts."""
        assert isinstance(self.system, MechanicalSystem) and isinstance(self.method, CollisionIntegrator)
        return event_program(self.system, self.method).counted

    def begun(self, member: int) -> ImpactMember:
        """The run of one member."""
        with symbolic():
            return ImpactMember(self.of_member(member), watch=self.watch, tallies=self.tally_impacts, given=self.given[member])

    def keep(self, member: int, run: MemberRun, reason: str | None) -> None:
        """Keep the results of a member, and its impacts or their tally."""
        super().keep(member, run, reason)
        assert isinstance(run, ImpactMember)
        if run.tallies:
            self.tallies[member] = run.tallied()
            self.impacts[member] = self.contacts[member] = None

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

    def _batches(self, programs: list[list[Program]]) -> list[BatchApart]:
        self.given = list(zip(programs[0], self.guesses[0], self.signs, strict=True))
        return super()._batches(programs)
