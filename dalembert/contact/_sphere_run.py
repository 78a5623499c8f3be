"""A run of many spheres by time stepping: bodies as arrays of vectors, and what their contacts did."""

from __future__ import annotations

import time
import warnings
from typing import NamedTuple

import numpy as np

from dalembert.contact import _sphere_driver as driver
from dalembert.contact._records import SphereContacts
from dalembert.contact._stepping_run import SteppingRun
from dalembert.contact.time_stepping import MoreauJean
from dalembert.errors import ContactWarning, InconsistentStart, UnsupportedSystem
from dalembert.systems import Spheres, State


class Bodies(NamedTuple):
    """What the driver knows of the bodies, one row each; `turned` are the angles."""

    x: np.ndarray
    turned: np.ndarray
    v: np.ndarray
    w: np.ndarray
    middle: np.ndarray
    old: np.ndarray
    radii: np.ndarray
    masses: np.ndarray
    inertias: np.ndarray


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
        self.bodies = Bodies._make([*vectors, *room, system.radii, system.masses, system.inertias])
        self.laws = np.array([self.h, 2.01 * system.radii.max(), system.mu, system.e, *system.gravity, 0.0, 0.0, 0.0])
        self.table = (np.zeros(2 * n + 1, dtype=np.int64), np.zeros(n, dtype=np.int64))
        most = (len(system.planes) + 3) * n if system.space == 2 else (len(system.planes) + 6) * n
        self.found, self.before = Found.of(2 * most, n), Found.of(2 * most, n)
        self.sphere_counts = np.zeros(5, dtype=np.int64)
        self.noted: list[np.ndarray] = []
        self._refuse_overlap(system)

    def _refuse_overlap(self, system: Spheres) -> None:
        """Refuse starts in which bodies overlap by more than a millionth of the smallest radius."""
        from scipy.spatial import cKDTree

        x, r = self.bodies.x, system.radii
        pairs = cKDTree(x).query_pairs(2 * r.max(), output_type="ndarray")
        gaps = np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1) - r[pairs].sum(axis=1)
        below = x @ system.planes[:, :3].T - system.planes[:, 3] - r[:, None]
        least = min([0.0, *gaps, *below.ravel()])
        if least < -1e-6 * r.min():
            raise InconsistentStart(f"bodies overlap each other or planes by up to {-least:.3g} at the start: move them apart")

    def _drive(self, last_step: int) -> int:
        counts, began = self.sphere_counts, time.perf_counter()
        status, room = driver.DONE, np.zeros((1, 4, len(self.bodies.x), 3))
        while status == driver.DONE and self.counts[3] < last_step and time.perf_counter() < began + 0.2:
            counts[3] = 0
            until = min(last_step, (counts[2] // self.save_every + 1) * self.save_every)
            status = driver.advance_spheres(
                self.bodies, self.spec.system.planes, self.table, self.found, self.before, counts, self.laws, room,  # type: ignore
                until, self.save_every,
            )  # fmt: skip
            self.counts[0], self.counts[1], self.counts[3] = counts[0], counts[1], counts[2]
            if counts[3] or counts[2] == self.spec.steps:
                self._note(int(counts[4]))
            if counts[3]:
                self.rows[self.counts[4]] = self.state
                self.counts[4] += 1
        return status

    def _note(self, count: int) -> None:
        """Keep the contacts of the last step."""
        acting = np.flatnonzero(self.found.impulses[:count, 0] > 0)
        t = np.full(len(acting), self.time)
        columns = (self.found.pairs[acting][:, ::-1], t - self.h, t, self.found.impulses[acting])
        self.noted.append(np.column_stack(columns))

    @property
    def state(self) -> np.ndarray:
        """The state at the end of the last step."""
        system, bodies = self.spec.system, self.bodies
        assert isinstance(system, Spheres)
        axes = system.space
        q, v = (
            np.column_stack([x[:, :axes], y[:, 2 if axes == 2 else 0 :]]) for x, y in ((bodies.x, bodies.turned), bodies[2:4])
        )
        masses = np.column_stack([np.tile(m[:, None], k) for m, k in ((system.masses, axes), (system.inertias, 2 * axes - 3))])
        return np.concatenate([q.ravel(), (masses * v).ravel()])

    def advance(self, report=None, last_step=None) -> str | None:  # type: ignore[no-untyped-def]
        """`SteppingRun.advance`, and a warning where sweeps did not solve all steps."""
        reason = super().advance(report, last_step)
        if self.sphere_counts[1]:
            warnings.warn(
                f"{self.sphere_counts[1]} of {self.steps_done} steps ended after {driver.SWEEPS} sweeps over all contacts "
                "without being solved to round-off: their impulses are approximate",
                ContactWarning,
                stacklevel=2,
            )
        return reason

    def stats(self) -> dict[str, float]:
        """What the run took; a sweep solves every contact once."""
        counted = {"sweeps": int(self.counts[0]), "unsolved_steps": int(self.counts[1])}
        return {"steps": self.steps_done, **counted, "build_seconds": self.build_time, "wall_seconds": self.wall_time}

    @property
    def contacts(self) -> SphereContacts:  # type: ignore[override]
        """The contacts of the steps that end in stored states."""
        rows = np.vstack([np.zeros((0, 8)), *self.noted])
        which, other = rows[:, :2].astype(int).T
        none = np.zeros(len(rows), dtype=int)
        return SphereContacts(which, rows[:, 2], rows[:, 3], none, other, rows[:, 4], rows[:, 5:])
