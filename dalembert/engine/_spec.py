"""What decides the numbers of a run, passed as one value from the public functions down to the driver."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dalembert.methods import OneStepMethod, SymplecticSteps
from dalembert.systems import MechanicalSystem, State, System
from dalembert.systems._states import States


@dataclass(frozen=True, eq=False)
class Controls:
    """Parameters that change along a run: piecewise constant, each row of values holding for `hold` steps."""

    slots: np.ndarray
    """Where in theta they are."""
    values: np.ndarray
    hold: int
    ramps: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    """Which parameters of the model change linearly in between: their slopes are values, too (`systems/_ramped.py`)."""


@dataclass(frozen=True, eq=False)
class RunSpec:
    """One run, or an ensemble of runs that differ in their starts: the system, the method, and how it is stepped.

    Everything in it is checked already. What does not change the numbers (progress, threads, where results are stored) is not
    part of it.
    """

    system: System
    method: OneStepMethod
    start: State | States
    h: float
    steps: int
    save_every: int = 1
    newton_tolerance: float | None = None
    """A relative tolerance of Newton's iteration, which ends at round-off otherwise."""
    stage_multipliers: bool = False
    """Whether the method's own multipliers are stored with every state."""
    alone: bool = False
    """Whether pivots are chosen as in a new process, whatever ran in this one before: what is resumed elsewhere needs that."""

    watchful: bool = True
    """Whether solutions in doubt are followed from small h, which makes sense for steps that begin on the constraints."""

    controls: Controls | None = None

    t_end: float | None = None
    """When a run whose step sizes vary ends, if not after `steps`: then there are at most that many."""

    @property
    def in_own_time(self) -> RunSpec:
        """The same run in the time in which its steps are constant, where its method transforms time."""
        if not isinstance(self.method, SymplecticSteps):
            return self
        assert isinstance(self.system, MechanicalSystem)
        system, start = self.method.transformed(self.system), self.start
        if isinstance(start, State):
            return replace(self, system=system, method=self.method.method, start=system.state(self.system, start))
        each = [system.state(self.system, start[member]) for member in range(len(start))]
        columns = (np.array([getattr(state, name) for state in each]) for name in ("t", "packed", "theta", "multipliers"))
        return replace(self, system=system, method=self.method.method, start=States(system, *columns))

    @property
    def tolerance(self) -> float:
        """The relative tolerance of Newton's iteration; zero stands for round-off."""
        return self.newton_tolerance or 0.0

    @property
    def t0(self) -> float:
        """When the run starts, or all runs of an ensemble do."""
        return float(self.start.t if isinstance(self.start, State) else self.start.t[0])
