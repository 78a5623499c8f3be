"""The system and the state that a run starts from: of a problem, of a mechanism, or as the user gave them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalembert.errors import InconsistentStart, InputError, UnsupportedSystem
from dalembert.mechanisms import Mechanism
from dalembert.runs._problem import Problem
from dalembert.systems import State, System, state_at
from dalembert.systems._consistent import unpack, with_parameters
from dalembert.systems._model import checked_mapping, shape_of
from dalembert.systems._start_checks import check_domain, check_start


def given_values(
    system: System | Problem | Mechanism,
    started: bool,
    t0: float | None,
    initial: Mapping[str, Any],
    params: Mapping[str, Any] | None,
) -> tuple[System, float | None, dict[str, Any]]:
    """The system, the time and the initial values that were given, or that a problem brings."""
    given = {name: value for name, value in initial.items() if value is not None}
    if isinstance(system, Problem):
        if not started and not {"q0", "y0"} & set(given):
            t0 = system.t0 if t0 is None else t0
            motion = {} if {"v0", "p0", "z0"} & set(given) else {"v0": system.v0, "p0": system.p0, "z0": system.z0}
            given = {"q0": system.q0, "y0": system.y0, "lam0": system.lam0, **motion, **given}
            given = {name: value for name, value in given.items() if value is not None}
        system = system.system
    if isinstance(system, Mechanism):
        if not started and not given:
            given = _assembled_pose(system, 0.0 if t0 is None else t0, params)
        system = system.system()
    if not isinstance(system, System):
        raise UnsupportedSystem(
            "the first argument is a da.Hamiltonian, a da.Lagrangian, a da.ODAE, a da.Mechanism or a problem of da.problems; "
            f"got {type(system).__name__}"
        )
    if started and given:
        raise InputError(f"give either start= or the initial values {' and '.join(given)}, not both")
    return system, t0, given


def _assembled_pose(m: Mechanism, t0: float, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The initial values of a mechanism that was given none: those of its first member, if parameters have one row a member.

    Velocities are given rather than momenta, which each member has by its own masses.
    """
    declared = m.system().parameters.values
    one = {
        name: value[0] if name in declared and len(shape_of(value)) == declared[name].ndim + 1 and len(value) else value
        for name, value in checked_mapping(params).items()
    }
    state = m.start(t0=t0, params=one)
    return {"q0": state.q, **({"v0": state.v} if np.any(state.v) else {"p0": state.p})}


def initial_state(
    system: System | Problem | Mechanism,
    *,
    start: State | None = None,
    t0: float | None = None,
    params: Mapping[str, Any] | None = None,
    check: bool = True,
    **initial: Any,
) -> tuple[System, State]:
    """The system and the state in which a run starts, from a problem, from initial values or from `start`."""
    maker = "m.start" if isinstance(system, Mechanism) else "da.consistent"
    system, t0, given = given_values(system, start is not None, t0, initial, params)
    if start is None:
        return system, state_at(system, t0=0.0 if t0 is None else t0, params=params, **given)
    if not isinstance(start, State):
        raise InputError(f"start is a state that {maker} returned; got {type(start).__name__}")
    if t0 is not None and t0 != start.t:
        raise InputError(
            f"start= brings its own time, t = {start.t:g}: leave t0 out, or make the state with {maker}(..., t0=...)"
        )
    if start.fingerprint != system.fingerprint:
        given_to = f"{maker}(...)" if maker == "m.start" else f"{maker}(system, ...)"
        raise InputError(f"start= belongs to another model: make the state with {given_to} for this one")
    theta = system.parameters.vector(params, base=start.theta)
    packed = with_parameters(system, start, theta)
    if check:
        try:
            check_start(system, start.t, start.first, packed[len(start.first) :], theta)
        except InconsistentStart as error:
            if np.array_equal(theta, start.theta):
                raise
            violated, kept = str(error).partition(":")[0], "q and v" if start.keeps_velocity else system.state_blocks[1][0]
            advice = f"start= was made with other parameters and keeps its {kept}: make it with {maker}(..., params=...)"
            raise InconsistentStart(f"{violated}: {advice}") from None
    state = unpack(system, start.t, packed, theta, start.multipliers)
    if check:
        check_domain(system, state)
    return system, state
