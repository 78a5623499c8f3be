"""A run of many spheres by time stepping: bodies as arrays of vectors, and what their contacts did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dalembert._warnings import warn
from dalembert.engine._records import SphereContacts
from dalembert.errors import ContactWarning, InconsistentStart, UnsupportedSystem
from dalembert.systems import Spheres, State
from dalembert.time_stepping import _sphere_driver as driver
from dalembert.time_stepping._stepping_driver import LOGGED
from dalembert.time_stepping._stepping_run import SteppingRun
from dalembert.time_stepping.stepping_methods import MoreauJean


class Bodies(NamedTuple):
    """What the driver knows of the bodies, one row each; `turned` are angles, `moved` sweeps after which velocities changed."""

    x: np.ndarray
    turned: np.ndarray
    v: np.ndarray
    w: np.ndarray
    middle: np.ndarray
    old: np.ndarray
    radii: np.ndarray
    masses: np.ndarray
    inertias: np.ndarray
    moved: np.ndarray


class Found(NamedTuple):
    """The contacts of a step: P_N and P_F are the columns of `impulses`; those of body b begin at `first[b]`."""

    pairs: np.ndarray
    normals: np.ndarray
    impulses: np.ndarray
    bounce: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, count: int, bodies: int) -> Found:
        """Room for so many contacts."""
        columns = (np.zeros((count, 2), dtype=np.int64), np.zeros((count, 3)), np.zeros((count, 4)), np.zeros(count))
        return cls(*columns, np.zeros(bodies + 1, dtype=np.int64))


class SphereRun(SteppingRun):
    """The mutable side of one simulation of `da.Spheres`."""

    def _load(self, system: Spheres, method: MoreauJean, start: State) -> None:  # type: ignore[override]
        if not isinstance(method, MoreauJean) or method.theta != 0.5:
            raise UnsupportedSystem(f"da.Spheres take da.MoreauJean() with theta = 1/2; got {method}")
        n, axes = len(system.radii), 2 if system.space == 2 else 3
        parts = [block.reshape(n, -1) for block in (start.first, start.v)]
        vectors = [np.zeros((n, 3)) for _ in range(4)]
        for k, part in enumerate(parts):
            vectors[2 * k][:, :axes] = part[:, :axes]
            vectors[2 * k + 1][:, 3 - (part.shape[1] - axes) :] = part[:, axes:]
        room = (np.zeros((n, 3)), np.zeros((n, 6)))
        self.bodies = Bodies._make([*vectors, *room, system.radii, system.masses, system.inertias, np.zeros(n, dtype=np.int64)])
        numbers = (self.h, 2.01 * system.radii.max(), system.mu, system.e, *system.gravity)
        self.laws = np.array([*numbers, 0.0, 0.0, 0.0, system.space])
        sizes = (1 << (2 * n).bit_length(), n, (n, 3))  # the first body of each cell, the next one in it, and cells of bodies
        self.table = tuple(np.zeros(size, dtype=np.int64) for size in sizes)
        most = (len(system.planes) + 3) * n if system.space == 2 else (len(system.planes) + 6) * n
        self.found, self.before = Found.of(2 * most, n), Found.of(2 * most, n)
        self.log = np.zeros((4 * most, 8))
        refuse_overlap(system, start.first)

    @property
    def walls(self) -> dict[str, Any]:
        """Velocities, which momenta give but for rounding, and the impulses that the next step begins with."""
        before, count = self.before, self.before.first[-1]
        parts = {"first": before.first, "pairs": before.pairs[:count], "impulses": before.impulses[:count]}
        return {name: part.tolist() for name, part in {"v": self.bodies.v, "w": self.bodies.w, **parts}.items()}

    def _carry_on(self, row: np.ndarray, walls: Mapping[str, Any]) -> None:
        system, bodies, count = self.system, self.bodies, walls["first"][-1]
        assert isinstance(system, Spheres)
        q, axes = row[: len(row) // 2].reshape(len(bodies.x), -1), system.space
        bodies.x[:, :axes], bodies.turned[:, axes - q.shape[1] :] = q[:, :axes], q[:, axes:]  # angles come last
        bodies.v[:], bodies.w[:] = walls["v"], walls["w"]
        self.before.first[:] = walls["first"]
        self.before.pairs[:count] = np.reshape(walls["pairs"], (count, 2))
        self.before.impulses[:count] = np.reshape(walls["impulses"], (count, 4))

    def _drive(self, store: np.ndarray, last_step: int, save_every: int) -> int:
        assert isinstance(self.system, Spheres)
        return driver.advance_spheres(
            self.bodies, self.system.planes, self.table, self.found, self.before, self.counts, self.tally, self.laws, store,
            self.log, last_step, save_every, self.save_every, self.steps, self.start.t,
        )  # fmt: skip

    @property
    def state(self) -> np.ndarray:
        """The state at the end of the last step."""
        row = np.zeros(self.system.n_state)
        driver.save(self.bodies, int(self.laws[-1]), row)
        return row

    def advance(self, report: Callable[[int], None] | None = None, last_step: int | None = None) -> str | None:
        """`Run.advance`, and, once a run is over, a warning where sweeps did not solve all steps."""
        before, reason = self.steps_done, super().advance(report, last_step)
        if self.tally[driver.LEFT] and (reason is not None or before < self.steps <= self.steps_done):
            warn(
                f"{self.tally[driver.LEFT]} of {self.steps_done} steps ended after {driver.SWEEPS} sweeps over all contacts "
                "without being solved to round-off: their impulses are approximate",
                ContactWarning,
            )
        return reason

    @property
    def contacts(self) -> SphereContacts:  # type: ignore[override]
        """The contacts of the steps that end in stored states."""
        rows = self.log[: self.tally[LOGGED]].copy()
        which, other = rows[:, :2].astype(int).T
        return SphereContacts(which, rows[:, 2], rows[:, 3], np.zeros(len(rows), dtype=int), other, rows[:, 4], rows[:, 5:])


def refuse_overlap(system: Spheres, q: np.ndarray, whose: str = "") -> None:
    """Refuse starts in which bodies overlap by more than a millionth of the smallest radius."""
    from scipy.spatial import cKDTree

    r, space = system.radii, system.space
    x = q.reshape(len(r), -1)[:, :space]
    pairs = cKDTree(x).query_pairs(2 * r.max(), output_type="ndarray")
    gaps = np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1) - r[pairs].sum(axis=1)
    below = x @ system.planes[:, :space].T - system.planes[:, 3] - r[:, None]
    least = min([0.0, *gaps, *below.ravel()])
    if least < -1e-6 * r.min():
        raise InconsistentStart(
            f"{whose}bodies overlap each other or planes by up to {-least:.3g} at the start: move them apart"
        )
