"""Which step loop runs a method: the method names it (`method.driver`), and here are the classes behind the names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert._progress import ProgressLine
from dalembert.compiler import SingularMatrix
from dalembert.contact import CollisionIntegrator
from dalembert.contact._event_program import equations_hash, event_program
from dalembert.engine._records import Recorded
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError, ModelError, StepFailed, UnsupportedSystem
from dalembert.methods import OneStepMethod
from dalembert.methods._base import refuse_varying
from dalembert.systems import MechanicalSystem, Spheres, State, System
from dalembert.systems._consistent import unpack
from dalembert.systems._states import States
from dalembert.time_stepping.stepping_methods import counted_of

if TYPE_CHECKING:
    from dalembert.engine._ensemble_run import EnsembleRun
    from dalembert.engine._run import Run


class SmoothDriver:
    """Steps that are solutions of the method's equations, one after the other."""

    has_impacts = False
    has_steppers = True
    """Whether runs consist of steppers: only those are differentiated, and make steps of any length."""

    def run_class(self) -> type[Run]:
        """The class of single runs."""
        from dalembert.engine._run import Run  # loads Numba

        return Run

    def ensemble_class(self) -> type[EnsembleRun]:
        """The class of ensembles."""
        from dalembert.engine._ensemble_run import EnsembleRun  # loads Numba

        return EnsembleRun

    def between_impacts(self, system: System, method: OneStepMethod) -> tuple[System, OneStepMethod]:
        """The system and the method of steps that meet no wall."""
        return system, method

    def events_hash(self, system: System, method: OneStepMethod) -> str:
        """A hash of the equations of impacts, if there may be any."""
        del system, method
        return ""

    def recorded(self, system: System) -> Recorded:
        """What runs record beside their states."""
        return Recorded("", system.state_blocks[0][1])

    def counted(self, system: System, method: OneStepMethod) -> tuple[str, ...]:
        """What runs count that others do not."""
        del system, method
        return ()

    def check(self, spec: RunSpec) -> None:
        """Refuse what runs of this kind do not do."""


class ImpactDriver(SmoothDriver):
    """Full steps between impacts, each examined for collisions: Algorithm 1 of Pekarek and Murphey (2014)."""

    has_impacts = True

    def run_class(self) -> type[Run]:
        from dalembert.contact._impact_run import ImpactRun  # loads Numba

        return ImpactRun

    def ensemble_class(self) -> type[EnsembleRun]:
        from dalembert.contact._impact_member import ImpactEnsembleRun  # loads Numba

        return ImpactEnsembleRun

    def between_impacts(self, system: System, method: OneStepMethod) -> tuple[System, OneStepMethod]:
        assert isinstance(system, MechanicalSystem) and isinstance(method, CollisionIntegrator)
        return system.smooth, method.full

    def events_hash(self, system: System, method: OneStepMethod) -> str:
        assert isinstance(system, MechanicalSystem) and isinstance(method, CollisionIntegrator)
        return equations_hash(system, method)

    def recorded(self, system: System) -> Recorded:
        return Recorded("impacts", system.state_blocks[0][1])

    def counted(self, system: System, method: OneStepMethod) -> tuple[str, ...]:
        assert isinstance(system, MechanicalSystem) and isinstance(method, CollisionIntegrator)
        return event_program(system, method).counted

    def check(self, spec: RunSpec) -> None:
        if spec.h < 0:
            raise InputError("collision integrators run forwards, because an impact that loses energy has no past: take h > 0")
        if spec.stage_multipliers:
            raise InputError("stage_multipliers are not stored in runs with impacts: leave the argument out")
        if spec.controls is not None:
            raise InputError("controls are not part of runs with impacts: state the force as a function of t and parameters")


class SteppingDriver(SmoothDriver):
    """Steps whose equations contain the laws of contact and friction."""

    has_steppers = False

    def run_class(self) -> type[Run]:
        from dalembert.time_stepping._sphere_run import SphereRun  # loads Numba
        from dalembert.time_stepping._stepping_run import SteppingRun

        def run_of(spec: RunSpec, room: int | None = None) -> Run:
            return (SphereRun if isinstance(spec.system, Spheres) else SteppingRun)(spec, room)

        return run_of  # type: ignore[return-value]

    def ensemble_class(self) -> type[EnsembleRun]:
        from dalembert.time_stepping._stepping_members import SteppingEnsembleRun  # loads Numba

        return SteppingEnsembleRun

    def recorded(self, system: System) -> Recorded:
        assert isinstance(system, MechanicalSystem)
        if isinstance(system, Spheres):
            return Recorded("spheres", system.dim, 3)
        return Recorded("time stepping", system.dim, system.n_tangents)

    def counted(self, system: System, method: OneStepMethod) -> tuple[str, ...]:
        return counted_of(system)

    def check(self, spec: RunSpec) -> None:
        method = spec.method
        if spec.h < 0:
            raise InputError("time stepping runs forwards, contact dissipates: take h > 0")
        if spec.stage_multipliers:
            raise UnsupportedSystem(f"{method} stores no multipliers of its stages: leave stage_multipliers out")
        if spec.newton_tolerance is not None:
            raise UnsupportedSystem(f"{method} solves its steps to round-off: leave newton_tolerance out")
        if spec.controls is not None:
            raise UnsupportedSystem(f"{method} takes no controls: state the force as a function of t and parameters")


DRIVERS: dict[str, SmoothDriver] = {
    "smooth": SmoothDriver(), "impacts": ImpactDriver(), "time stepping": SteppingDriver(),
}  # fmt: skip


def driver_of(method: OneStepMethod) -> SmoothDriver:
    """The driver that a method names."""
    return DRIVERS[method.driver]


def check_differentiable(method: OneStepMethod, caller: str) -> None:
    """Refuse methods whose steps have no derivatives."""
    refuse_varying(method, caller)
    if not driver_of(method).has_steppers:
        raise UnsupportedSystem(
            f"{method} has no derivatives of its steps, which {caller} needs: take a collision integrator, da.CVA(), or a "
            "smooth method"
        )


def make_run(spec: RunSpec, room: int | None = None) -> Run:
    """A single run, in memory for all stored states or for `room` of them."""
    with _regular_start(spec.method):
        return driver_of(spec.method).run_class()(spec, room=room)


def silence(run: Run) -> None:
    """Let a run whose steps are only tried give no warnings."""
    for stepper in run.steppers:
        stepper.warned = True


def run_ensemble(
    spec: RunSpec,
    *,
    progress: bool | None = False,
    count_impacts: bool = False,
    began: Callable[[EnsembleRun], None] | None = None,
    **options: Any,
) -> EnsembleRun:
    """A run of many members from starts that are `prepared`, after it has ended or was interrupted.

    `count_impacts` counts impacts instead of storing them; `options` are those of `EnsembleRun`. `began` is shown the run
    before it advances, so that others can stop it.
    """
    driver = driver_of(spec.method)
    if driver.has_impacts:
        options["tally_impacts"] = count_impacts
    with _regular_start(spec.method):
        run = driver.ensemble_class()(spec, **options)
    if began is not None:
        began(run)
    with ProgressLine(spec.steps * len(run.states), progress) as line:
        run.advance(line.update)
    return run


@contextlib.contextmanager
def _regular_start(method: OneStepMethod) -> Iterator[None]:
    """Say what is wrong where the step equations are singular at the start of a run."""
    try:
        yield
    except SingularMatrix:
        raise ModelError(
            f"the step equations of {method} are singular at the start: H_pp and the derivatives of the constraints must have "
            "full rank there"
        ) from None


def one_step(system: System, method: OneStepMethod, state: State, h: float) -> tuple[State, list[np.ndarray]]:
    """One step of size h, which may be negative: the new state and the unknowns of each of its substeps."""
    refuse_varying(method, "a single step")
    if not driver_of(method).has_steppers:
        raise UnsupportedSystem(f"{method} makes no single steps outside of runs: take da.simulate(..., steps=1)")
    run = driver_of(method).run_class()(RunSpec(system, method, state, float(h), 1, watchful=False))
    reason = run.advance()
    if reason is not None:
        raise StepFailed(f"the step from t = {state.t:g} failed: {reason}")
    new = unpack(system, state.t + h, run.state, state.theta, state.multipliers)
    return new, [stepper.unknowns for stepper in run.steppers]


def prepared(spec: RunSpec) -> RunSpec:
    """The same run from the state before its first step, for methods whose state is not (q_0, p_0) itself."""
    system, starting, start = spec.system, spec.method.starting, spec.start
    if starting is None:
        return spec
    with _regular_start(spec.method):
        if isinstance(start, State):
            first = one_step(system, starting, start, spec.h)[0]
            return replace(spec, start=unpack(system, start.t, first.packed, start.theta, start.multipliers))
        packed = [one_step(system, starting, start[k], spec.h)[0].packed for k in range(len(start))]
    ready: States = replace(start, packed=np.array(packed))
    return replace(spec, start=replace(ready, multipliers=np.array([ready[k].multipliers for k in range(len(ready))])))
