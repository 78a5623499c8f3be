"""Derivatives of runs with impacts: smooth steps as in other runs, and steps with impacts piece by piece (`_impact_pieces`).

The times of impacts move with the start and the parameters, which is what "saltation" stands for: they are unknowns of the
partial steps that end on a wall, so that their derivatives follow by the implicit function theorem like all others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dalembert.contact import CollisionIntegrator
from dalembert.derivatives._impact_pieces import Moving, Pieces
from dalembert.derivatives._record import Record
from dalembert.engine._run import Run
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, StepFailed
from dalembert.methods import OneStepMethod
from dalembert.runs._drivers import driver_of, make_run
from dalembert.runs._simulate import trajectory_of
from dalembert.runs._trajectory import Trajectory
from dalembert.systems import MechanicalSystem, State
from dalembert.systems._consistent import unpack

SMOOTH = 1000
"""Steps between impacts that are recorded at a time."""


class ImpactPush:
    """Pushes derivatives of the state and seeds of parameters along a run with impacts."""

    def __init__(self, spec: RunSpec, chosen: tuple[int, ...], seeds: np.ndarray) -> None:
        system, method = spec.system, spec.method
        assert (
            isinstance(system, MechanicalSystem) and isinstance(method, CollisionIntegrator) and isinstance(spec.start, State)
        )
        self.spec, self.chosen, self.seeds = replace(spec, save_every=1), chosen, seeds
        self.start = spec.start
        self.smooth_system, self.smooth_method = driver_of(method).between_impacts(system, method)
        self.pieces = Pieces(system, method, spec.h, spec.start.theta)
        self.of_theta = np.zeros((len(spec.start.theta), seeds.shape[1]))
        self.of_theta[list(chosen)] = seeds

    def trajectory(self) -> Trajectory:
        """The run itself, with all states."""
        run = make_run(self.spec)
        reason = run.advance()
        if reason is not None:
            raise StepFailed(f"step {run.steps_done + 1} from t = {run.time:.6g} failed: {reason}")
        found = trajectory_of(self.spec, run, "done", "", None)
        if found.contacts is not None and len(found.contacts):
            raise InputError(
                f"from t = {found.contacts.begin[0]:.6g} on a wall is touched for a while: derivatives through sustained "
                "contacts are not computed; end the run before it"
            )
        assert found.impacts is not None
        if np.any(found.impacts.friction):
            raise InputError("derivatives through impacts with friction are not computed: leave friction out")
        return found

    def along(self, found: Trajectory, S: np.ndarray) -> np.ndarray:
        """The derivatives of all states: (time, variables, directions)."""
        assert found.impacts is not None
        h, t0, steps = self.spec.h, self.start.t, self.spec.steps
        owners = np.clip(np.ceil((found.impacts.t - t0) / h - 1e-9).astype(int) - 1, 0, steps - 1)
        values, k = np.zeros((steps + 1, *S.shape)), 0
        values[0] = S
        for step in [*np.unique(owners).tolist(), steps]:
            while k < step:
                last = min(step, k + SMOOTH)
                self._smooth(found.states[k], k, last, values)
                k = last
            if k < steps:
                mine = owners == step
                values[k + 1] = self._with_impacts(
                    found.states[k : k + 2], k, found.impacts.t[mine], found.impacts.which[mine], values[k]
                )
                k += 1
        return values

    def _smooth(self, packed: np.ndarray, begin: int, end: int, values: np.ndarray) -> None:
        """Steps without impacts."""
        state = unpack(self.smooth_system, self.start.t + begin * self.spec.h, packed, self.start.theta)
        run = Run(RunSpec(self.smooth_system, self.smooth_method, state, self.spec.h, end - begin))
        record, S = Record(run, self.chosen, end - begin), values[begin].copy()
        record.make(end - begin)
        record.push(S, self.seeds, values[begin:], 1, 1)

    def _with_impacts(self, packed: np.ndarray, step: int, times: np.ndarray, which: np.ndarray, S: np.ndarray) -> np.ndarray:
        h, t0 = self.spec.h, self.start.t
        point = Moving.of(t0 + step * h, packed[0], S)
        end = self.pieces.step(point, times, which, t0 + (step + 1) * h, self.of_theta)
        scale = np.max(np.abs(packed)) + 1.0
        if np.max(np.abs(end.values[1:-1] - packed[1])) > 1e-7 * scale:
            raise StepFailed(f"the step with impacts from t = {t0 + step * h:.6g} could not be made again piece by piece")
        return end.tangent[1:-1]


def impact_tangent(system: MechanicalSystem, method: OneStepMethod, state: State, h: float) -> tuple[State, np.ndarray]:
    """The state after one step of a collision integrator, and the derivative of the step map."""
    n = system.n_state
    push = ImpactPush(RunSpec(system, method, state, h, 1), (), np.zeros((0, n)))
    found = push.trajectory()
    return unpack(system, state.t + h, found.states[1], state.theta), push.along(found, np.eye(n))[1]
