"""The events of one run: the record, the tables and the memory that its driver works on, and the log of impacts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dalembert.contact._driver_with_impacts import ROOM
from dalembert.contact._event_memory import LOG_STATE, Events, entry_of_log
from dalembert.contact._event_program import EventProgram
from dalembert.contact._partial_steps import observe
from dalembert.contact._resets import collide_now, energy_of
from dalembert.engine._records import Impacts


@dataclass(eq=False)
class EventState:
    """What the driver knows at the beginning of a run, of which no wall has touched anything yet."""

    program: EventProgram
    h: float
    theta: np.ndarray
    masses: np.ndarray
    """The diagonal of the mass matrix."""
    stops_at_hit: bool
    """Whether hits are left to Python, because there is friction."""
    log: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.at, self.tables = self.program.at.copy(), self.program.tables.copy()
        self.n, self.walls = int(self.at["n"]), int(self.at["walls"])
        self.memory = np.zeros(self.program.memory_size)
        self.at["stops_at_hit"] = self.stops_at_hit
        self.memory[self.at["h"]] = self.h
        self.vector("theta", self.at["n_theta"])[:] = self.theta
        self.vector("masses", self.n)[:] = self.masses
        self.log = np.zeros((2 * ROOM, LOG_STATE + 3 * self.n))

    @property
    def shared(self) -> Events:
        """What the driver is given."""
        return Events(self.at, self.tables, self.memory, self.log)

    def vector(self, name: str, size: int) -> np.ndarray:
        """A place in memory."""
        return self.memory[self.at[name] :][:size]

    def number(self, name: str) -> float:
        """A number in memory."""
        return float(self.memory[self.at[name]])

    def marks(self, name: str) -> np.ndarray:
        """Which walls were "just_hit", or which guards are "ignored"."""
        return self.tables[self.at[name] :][: self.walls if name == "just_hit" else self.at["m"]]

    @property
    def here(self) -> np.ndarray:
        """Where the motion stands: (q, p)."""
        return self.memory[self.at["here"]["state"] :][: 2 * self.n]

    @property
    def rates(self) -> np.ndarray:
        """phi_dot of the walls there."""
        return self.memory[self.at["here"]["rate"] :][: self.walls]

    def observe(self, t: float, state: np.ndarray) -> None:
        """Let memory hold phi and phi_dot of a state, as the driver sees them."""
        self.here[:] = state
        observe(self.shared, self.at["here"], t)

    def measure(self, t: float) -> np.ndarray:
        """sqrt(grad phi^T H_pp grad phi) of the walls where the motion stands."""
        energy_of(self.shared, self.at["here"], t)
        return np.sqrt(self.vector("strength", self.walls))

    def touch(self, walls: list[int]) -> None:
        """Let the motion start on walls that were just left."""
        self.marks("just_hit")[:] = 0
        self.marks("just_hit")[walls] = 1

    def collide(self, t: float, state: np.ndarray, walls: list[int]) -> int:
        """Impacts on walls that all touch, by the rule of free motion; how that ended."""
        self.touch(walls)
        if len(self.log) - self.at["logged"] < ROOM:
            self.make_room()
        self.here[:] = state
        return int(collide_now(self.shared, t))

    def make_room(self) -> None:
        """The log is nearly full."""
        self.log = np.vstack([self.log, np.zeros_like(self.log)])

    def add(self, entries: list[np.void]) -> None:
        """Log impacts that were found elsewhere."""
        first, rows = int(self.at["logged"]), np.array(entries, dtype=entry_of_log(self.n)).view(float)
        self.log = np.vstack([self.log[:first], rows.reshape(len(entries), -1), np.zeros((2 * ROOM, self.log.shape[1]))])
        self.at["logged"] += len(entries)

    @property
    def logged(self) -> np.ndarray:
        """The entries of the log."""
        return self.log.view(entry_of_log(self.n))[: self.at["logged"], 0]

    @property
    def impacts(self) -> Impacts:
        """All impacts in the log."""
        columns = {name: self.logged[name].copy() for name in entry_of_log(self.n).names or ()}
        return Impacts(**columns | {"which": columns["which"].astype(int)})
