"""A run by time stepping: the arrays that its driver works on, and what the contacts did."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dalembert._progress import phase
from dalembert.compiler._denormals import flushed_to_zero
from dalembert.compiler._independence import combined_at, independent
from dalembert.contact._frictional import MOST, has_one_motion
from dalembert.contact._here import Here
from dalembert.engine._layout import COUNTS
from dalembert.engine._records import SteppedContacts
from dalembert.engine._run import Run
from dalembert.symbolic._lock import symbolic
from dalembert.systems import MechanicalSystem, Spheres, State
from dalembert.systems._start_checks import CONSISTENCY_TOLERANCE
from dalembert.time_stepping import _stepping_driver as driver
from dalembert.time_stepping._impulse_laws import RESTS
from dalembert.time_stepping._stepping_program import stepping_program
from dalembert.time_stepping.stepping_methods import TimeStepping, counted_of


class Tables(NamedTuple):
    """Of a `SteppingProgram`."""

    rows: np.ndarray
    columns: np.ndarray
    blocks: np.ndarray


REASONS = {
    driver.UNSOLVED: (
        "no solution of the contact laws was found, by Newton's method and by projections: reduce h, or check that the "
        "coefficients of friction are not far above 1"
    ),
    driver.TOO_MANY: "there are more contacts than equal spheres can have: make radii less different",
    driver.UNLAWFUL: (
        "a contact has a coefficient of friction below 0, or of restitution that is not between 0 and 1: check the functions "
        "and the parameters that state them"
    ),
    driver.NOT_FINITE: "its result is not finite: reduce h",
    driver.PAINLEVE: (
        "a contact slides under a load where the rigid model has no or several solutions (Painleve's paradox): "
        'da.MoreauJean(painleve="impact") takes the impact without collision and goes on'
    ),
}


@dataclass
class SteppingRun(Run):
    """The mutable side of one simulation by time stepping; what follows `_load` knows the kind of the contacts."""

    def __post_init__(self) -> None:
        spec, system, method, began = self.spec, self.spec.system, self.spec.method, time.perf_counter()
        assert isinstance(system, MechanicalSystem) and isinstance(method, TimeStepping) and isinstance(spec.start, State)
        with symbolic():
            self.system, self.start = independent(system, spec.start)
        assert isinstance(self.system, MechanicalSystem)
        self.method, self.h = method, spec.h
        self.steps, self.save_every, self.stage_multipliers = spec.steps, spec.save_every, False
        self.controls, self.clock, self.steppers = None, np.zeros(0), []
        self.counts = np.zeros(1, COUNTS)
        self.counts[0]["saved"] = 1
        self.tally, self.log = np.zeros(driver.TALLIED, dtype=np.int64), np.zeros((0, 0))
        with symbolic():
            self._load(self.system, method, self.start)
        self.rows = np.zeros((self.room or spec.steps // spec.save_every + 2, system.n_state))
        self.rows[0] = spec.start.packed
        phase("the step loop")
        self._advance_to(0)
        self.build_time = time.perf_counter() - began

    def begin(self, row: np.ndarray, compensation: np.ndarray, step: int, walls: Mapping[str, Any]) -> None:
        """Go on from a stored row and what `walls` was there; the log begins anew."""
        del compensation  # sums are not compensated
        self.rows[0] = row
        for name, value in {"steps_done": step, "saved": 1}.items():
            self.counts[0][name] = value
        self.tally[driver.LOGGED] = 0
        self._carry_on(row, walls)

    @property
    def compensation(self) -> np.ndarray:
        """Sums are not compensated."""
        return np.zeros(self.system.n_state)

    @property
    def row(self) -> np.ndarray:
        """The current state as it would be stored."""
        return self.state

    def stats(self) -> dict[str, float]:
        """What the run took, in Newton iterations of single steps or in sweeps over the contacts of all spheres."""
        solved = {} if isinstance(self.system, Spheres) else {"newton_iterations": int(self.counts[0]["iterations"])}
        counted = {name: int(count) for name, count in zip(counted_of(self.system), self.tally, strict=False)}
        return {"steps": self.steps_done, **solved, **counted, "build_seconds": self.build_time, "wall_seconds": self.wall_time}

    def rescue(self) -> str | None:
        """The driver has tried all that there is."""
        return REASONS[driver.UNSOLVED]

    def _stopped(self, status: int) -> str | None:
        if status == driver.DEPENDENT:
            with symbolic():
                return self._renew()
        if status == driver.MAY_CONTRADICT:
            with symbolic():
                return self._judge()
        if status != driver.FULL:
            return REASONS[status]
        self.log = np.vstack([self.log, np.zeros_like(self.log)])
        return None

    def _renew(self) -> str | None:
        """Combine redundant constraints anew for the pending step; the reason why not, if that cannot be."""
        own = self.memory[self.slots["theta"] :][: len(self.start.theta)]
        here = combined_at(self.system, self.time, self.state, own)
        if here is None:
            return (
                "other constraints are redundant here than at the start: reduce h, or take da.NonsmoothRattle(), which keeps "
                "the joints of closed loops together"
            )
        own[:], self.memory[self.slots["fresh"]] = here.theta, 1.0
        return None

    def _judge(self) -> str | None:
        """Whether the pending step has one motion, or is to be an impact without collision; else the reason to stop."""
        assert isinstance(self.method, TimeStepping) and isinstance(self.system, MechanicalSystem)
        slots, walls = self.slots, np.flatnonzero(self.memory[self.slots["touched"] : self.slots["push"]])
        here = Here.of(self.system, self.memory[slots["theta"] :][: len(self.start.theta)], self.time, self.state)
        one = slots["n_tangents"] == 1 and len(walls) <= MOST and has_one_motion(here, tuple(walls.tolist()), self.h)
        self.memory[slots["judged"]] = driver.ONE if one else driver.OTHERS
        return None if one or self.method.painleve == "impact" else REASONS[driver.PAINLEVE]

    def _load(self, system: MechanicalSystem, method: TimeStepping, start: State) -> None:
        program = stepping_program(system, method)
        slots = self.slots = program.slots
        self.at = np.array([tuple(slots.values())], [(name, np.int64) for name in slots])[0]
        self.memory = np.zeros(program.memory_size)
        self.memory[slots["h"]] = self.h
        self.memory[slots["theta"] :][: len(start.theta)] = start.theta
        self.memory[slots["state"] :][: len(start.packed)] = start.packed
        self.memory[slots["x"] :][: system.dim] = start.v
        here = Here.of(system, start.theta, start.t, start.packed)
        H_pp, normals = here("H_pp"), here("phi_q")
        could = here.speed * np.sqrt(np.einsum("ij,jk,ik->i", normals, H_pp, normals)) + np.abs(here("phi_t"))
        lasts = np.abs(here("phi_dot")) <= RESTS * could
        self.memory[slots["touched"] : slots["push"]] = lasts & (here("phi") <= CONSISTENCY_TOLERANCE * here("phi_rounding"))
        self.memory[slots["masses"] : slots["sums"]] = np.abs(np.diag(np.linalg.pinv(H_pp)))
        least = 1e-4 / np.max(np.abs(H_pp)) * np.max(np.abs(start.first)) / self.h
        self.memory[slots["peak"]] = max(np.max(np.abs(start.second)), least)
        self.tables = Tables(program.rows, program.columns, program.blocks)
        self.kernels = np.array([program.code.addresses[name] for name in ("residual", "entries", "finish")])
        self.log = np.zeros((1000 + system.n_unilateral, 5 + 2 * system.n_tangents))
        self.program = program  # whose machine code lives as long as it does

    @property
    def _carried(self) -> np.ndarray:
        """The slots from which, with the state, the next step follows: the unknowns, and what contacts did so far."""
        x, theta = self.slots["x"], self.slots["theta"]
        combined = np.arange(theta, theta + len(self.start.theta) if self.system.combines is not None else theta)
        return np.r_[combined, x : x + self.slots["n_x"], self.slots["sums"] : self.slots["room"]]

    @property
    def walls(self) -> dict[str, Any]:
        """What `begin` has to know beside the state."""
        return {"carried": self.memory[self._carried].tolist()}

    def _carry_on(self, row: np.ndarray, walls: Mapping[str, Any]) -> None:
        self.memory[self.slots["state"] :][: self.slots["n_state"]] = row
        self.memory[self._carried] = walls["carried"]

    @property
    def state(self) -> np.ndarray:
        """The state at the end of the last step."""
        return self.memory[self.slots["state"] :][: self.slots["n_state"]].copy()

    def _drive(self, store: np.ndarray, last_step: int, save_every: int) -> int:
        assert isinstance(self.method, TimeStepping)
        with flushed_to_zero():
            return driver.advance_stepping(
                self.at, self.kernels, self.tables, self.memory, self.counts, self.tally, store, self.log, last_step,
                save_every, self.save_every, self.steps, self.start.t, self.h,
            )  # fmt: skip

    @property
    def contacts(self) -> SteppedContacts:
        """What contacts did so far."""
        log, d = self.log[: self.tally[driver.LOGGED]], self.slots["n_tangents"]
        which, begin, end, slides, normal = log[:, :5].T.copy()
        friction, slip = log[:, 5 : 5 + d].copy(), log[:, 5 + d :].copy()
        return SteppedContacts(which.astype(int), begin, end, slides.astype(int), normal, friction, slip)
