"""The derivative of one step, and Lyapunov exponents from the derivatives of many."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert._interrupts import interruptible
from dalembert._progress import ProgressLine
from dalembert.compiler._independence import independent
from dalembert.derivatives._record import Record
from dalembert.derivatives._wanted import differentiated
from dalembert.engine._run import Run
from dalembert.engine._spec import RunSpec
from dalembert.errors import InputError
from dalembert.methods import OneStepMethod
from dalembert.methods._base import refuse_varying
from dalembert.runs._drivers import driver_of, make_run, prepared
from dalembert.runs._lengths import count
from dalembert.systems import State, System
from dalembert.systems._consistent import unpack


def tangent_map(system: System, method: OneStepMethod, state: State, h: float) -> tuple[State, np.ndarray]:
    """The state after one step without impacts, and the derivative of the step map."""
    refuse_varying(method, "the derivative of a step")
    run = Run(RunSpec(system, method, state, float(h), 1, watchful=False))
    record, tangent = Record(run, (), 1), np.eye(system.n_state)
    record.make(1)
    record.push(tangent, np.zeros((0, system.n_state)), np.zeros((0, *tangent.shape)), 0, 0)
    return unpack(system, state.t + h, run.state, state.theta, state.multipliers), tangent


def tangent_space(system: System, state: State) -> np.ndarray:
    """An orthonormal basis of the tangent space of {g = 0, g_t + g_y v = 0, k = 0}."""
    system, state = independent(system, state)
    if not system.n_multipliers:
        return np.eye(system.n_state)
    G, hidden_y, hidden_z = (system.at(name, state.values, state.theta) for name in ("G", "hidden_y", "hidden_z"))
    normals = np.block([[G, np.zeros((len(G), hidden_z.shape[1]))], [hidden_y, hidden_z]])
    return np.linalg.svd(normals)[2][len(normals) :].T


@interruptible()
def lyapunov(
    system: Any, method: Any, *, exponents: int | None = None, every: int = 10, progress: bool | None = None, **arguments: Any
) -> np.ndarray:
    """The largest Lyapunov exponents of a run, per unit of time: those of the computed steps, from their exact derivatives.

    Tangent vectors of the constraint manifold are pushed along the run and made orthonormal again after `every` steps
    (Benettin et al. 1980). All exponents are found unless `exponents` says how many; the other arguments are those of
    `da.simulate`.

    Example:
        >>> import dalembert as da
        >>> saddle = da.Hamiltonian(lambda q, p: p @ p / 2 - q @ q / 2, dim=1)
        >>> found = da.lyapunov(saddle, da.Gauss(2), q0=[0.0], p0=[0.0], h=0.1, steps=1000)
        >>> bool(abs(found - [1.0, -1.0]).max() < 1e-2)
        True

    """
    given = differentiated("lyapunov", system, method, None, arguments)
    count("steps", given.spec.steps, least=1)
    if driver_of(given.spec.method).has_impacts:
        raise InputError("da.lyapunov takes runs without impacts: leave unilateral= out, or take a smooth method")
    spec = prepared(given.spec)
    every = count("every", every, least=1)
    basis = tangent_space(spec.system, given.start.state)
    wanted = basis.shape[1] if exponents is None else count("exponents", exponents, least=1)
    if wanted > basis.shape[1]:
        raise InputError(f"the motion has {basis.shape[1]} Lyapunov exponents; got exponents={wanted}")
    S = np.array(basis[:, np.random.default_rng(1788).permutation(basis.shape[1])[:wanted]])
    run = make_run(spec)
    record, sums = Record(run, (), min(every, spec.steps)), np.zeros(wanted)
    seeds, nothing = np.zeros((0, wanted)), np.zeros((0, *S.shape))
    with ProgressLine(spec.steps, progress) as line:
        while run.steps_done < spec.steps:
            record.make(min(spec.steps, run.steps_done + record.room))
            record.push(S, seeds, nothing, 0, 0)
            S, R = np.linalg.qr(S)
            sums += np.log(np.abs(np.diag(R)))
            line.update(run.steps_done)
    return np.sort(sums / (spec.steps * abs(spec.h)))[::-1]
