"""Where everything lies in the block of memory on which all kernels work."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Layout:
    """Slots of the memory block on which all kernels work (counted in doubles)."""

    n_theta: int
    n_state: int
    n_stage_multipliers: int
    n_x: int
    n_factors: int
    n_once: int = 0
    n_last: int = 0
    """Unknowns that are found by elimination at run time after the others, with so many entries of their matrix."""
    n_last_entries: int = 0
    n_turn_entries: int = 0
    """Entries of the matrix whose determinant is the orientation, where it is eliminated at run time."""
    n_metric: int = 0
    n_clock: int = 0
    """Numbers that a step of varying size carries behind the state: t, 1/h and what else decides the next size."""

    time = 0
    h = 1
    increment_size = 2
    noise = 3
    orientation = 4
    energy = 5
    correction = 6
    exact = 7
    prepared = 8
    """The step size for which what does not change while steps have one size was computed, 0 if none."""
    theta = 9

    state: int = field(init=False)
    """The state, then the clock; so are the compensation and the increment `delta` of both."""
    compensation: int = field(init=False)
    delta: int = field(init=False)
    stage_multipliers: int = field(init=False)
    accepted: int = field(init=False)
    """The stage multipliers of the last step that was accepted."""
    x: int = field(init=False)
    weights: int = field(init=False)
    residual: int = field(init=False)
    factors: int = field(init=False)
    once: int = field(init=False)
    last_entries: int = field(init=False)
    last_rhs: int = field(init=False)
    last_unknowns: int = field(init=False)
    turn_entries: int = field(init=False)
    metric: int = field(init=False)
    """Numbers that a run is given once (`compiler._metric`)."""
    last_h: int = field(init=False)
    """The size of the step before, where sizes vary."""
    taken: int = field(init=False)
    """1 if the step before was taken, 0 if it was rejected, where sizes vary."""
    t_end: int = field(init=False)
    """When the run ends, where sizes vary."""
    extrapolated: int = field(init=False)
    """What the unknowns of the last step were extrapolated to be, before that was corrected."""
    missed: int = field(init=False)
    """By how much the step before differed from that."""
    missed_more: int = field(init=False)
    """By how much more than the one before."""
    work: int = field(init=False)

    def __post_init__(self) -> None:
        sizes = {"theta": self.n_theta, "state": self.n_carried, "compensation": self.n_carried, "delta": self.n_carried}
        sizes |= {"stage_multipliers": self.n_stage_multipliers, "accepted": self.n_stage_multipliers, "x": self.n_x}
        sizes |= {"weights": self.n_x, "residual": self.n_x, "factors": self.n_factors, "once": self.n_once}
        sizes |= {"last_entries": self.n_last_entries, "last_rhs": self.n_last, "last_unknowns": self.n_last}
        sizes |= {"turn_entries": self.n_turn_entries, "metric": self.n_metric}
        sizes |= dict.fromkeys(("last_h", "taken", "t_end"), min(1, self.n_clock))
        sizes |= dict.fromkeys(("extrapolated", "missed", "missed_more"), self.n_x) | {"work": 0}
        place_in_order(self, self.theta, sizes)

    @property
    def n_carried(self) -> int:
        """How many numbers go from step to step: the state and the clock."""
        return self.n_state + self.n_clock

    @property
    def clock(self) -> int:
        """Where the clock lies."""
        return self.state + self.n_state

    @property
    def results(self) -> tuple[int, int, int, int, int]:
        """Where a finished step leaves its increment, the stage multipliers, the orientation, H and the correction."""
        return self.delta, self.stage_multipliers, self.orientation, self.energy, self.correction


def place_in_order(layout: object, first: int, sizes: Mapping[str, int]) -> None:
    """Let the attributes of a frozen layout be the places of parts that follow each other in memory, from `first` on."""
    for name, place in zip(sizes, itertools.accumulate(sizes.values(), initial=first), strict=False):
        object.__setattr__(layout, name, place)
