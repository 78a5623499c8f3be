"""Where everything lies in the block of memory on which all kernels work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """Slots of the memory block on which all kernels work (counted in doubles)."""

    n_theta: int
    n_state: int
    n_stage_multipliers: int
    n_x: int
    n_weights: int
    n_factors: int
    n_once: int = 0

    time = 0
    h = 1
    increment_size = 2
    noise = 3
    orientation = 4
    energy = 5
    theta = 6

    @property
    def state(self) -> int:
        return self.theta + self.n_theta

    @property
    def compensation(self) -> int:
        return self.state + self.n_state

    @property
    def delta(self) -> int:
        return self.compensation + self.n_state

    @property
    def stage_multipliers(self) -> int:
        return self.delta + self.n_state

    @property
    def accepted(self) -> int:
        """The stage multipliers of the last step that was accepted."""
        return self.stage_multipliers + self.n_stage_multipliers

    @property
    def x(self) -> int:
        return self.accepted + self.n_stage_multipliers

    @property
    def weights(self) -> int:
        return self.x + self.n_x

    @property
    def residual(self) -> int:
        return self.weights + self.n_weights

    @property
    def factors(self) -> int:
        return self.residual + self.n_x

    @property
    def results(self) -> tuple[int, int, int, int]:
        """Where a finished step leaves its increment, the stage multipliers, the orientation and H."""
        return self.delta, self.stage_multipliers, self.orientation, self.energy

    @property
    def once(self) -> int:
        return self.factors + self.n_factors

    @property
    def work(self) -> int:
        return self.once + self.n_once
