"""What a run or a sweep on disk remembers of its model and its method, and whether others are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from dalembert._version import __version__
from dalembert.compiler._program import reduced_step
from dalembert.errors import InputError
from dalembert.methods import OneStepMethod, SymplecticSteps
from dalembert.runs._drivers import driver_of
from dalembert.systems import MechanicalSystem, Spheres, System


def identity(system: System, method: OneStepMethod) -> dict[str, Any]:
    """What a store remembers."""
    return {
        "method": str(method),
        "equations": equations_hash(system, method),
        "fingerprint": system.fingerprint,
        "defaults": plain(system.params),
        "dalembert": __version__,
        "casadi": ca.CasadiMeta.version(),
    }


def check_model(path: Path, header: Mapping[str, Any], system: System) -> None:
    """Refuse another model than that of a store, or other values of its parameters."""
    if not isinstance(system, System):
        raise InputError(f"give the system of the run in {path}; got {type(system).__name__}")
    defaults = header["defaults"]
    if system.fingerprint != header["fingerprint"]:
        versions = f" (or was made with CasADi {header['casadi']}, and this is {ca.CasadiMeta.version()})"
        other = "" if header["casadi"] == ca.CasadiMeta.version() else versions
        raise InputError(
            f"the run in {path} belongs to another model{other}: give the system that it was started with, "
            f"whose parameters are {', '.join(defaults) or 'none'}"
        )
    for name, value in plain(system.params).items():
        if value != defaults[name]:
            raise InputError(
                f"the model's parameter {name} is {value}, and was {defaults[name]} when the run in {path} began: "
                "set it back, or begin a new run"
            )


def check_same_method(path: Path, header: Mapping[str, Any], system: System, method: OneStepMethod) -> None:
    """Refuse another method than that of a store."""
    if not isinstance(method, OneStepMethod):
        raise InputError(f"the third argument of resume is the method of the run, {header['method']}; got {method!r}")
    if str(method) != header["method"]:
        raise InputError(f"{path} was computed by {header['method']}, not by {method}: give that method")
    method.check(system)
    if equations_hash(system, method) != header["equations"]:
        raise InputError(
            f"{method} writes other step equations here than in {path}, which was made by dalembert {header['dalembert']}: "
            "give the same coefficients and functions, and the same version of dalembert"
        )


def equations_hash(system: System, method: OneStepMethod) -> str:
    """A hash of the step equations: the same for equal coefficients and functions, whatever their names."""
    digest = hashlib.sha256()
    driver = driver_of(method)
    digest.update(driver.events_hash(system, method).encode())
    system, method = driver.between_impacts(system, method)
    if isinstance(method, SymplecticSteps):
        assert isinstance(system, MechanicalSystem)
        system, method = method.transformed(system), method.method
    digest.update(str(method).encode() if isinstance(system, Spheres) else b"")  # whose steps the driver itself states
    for substep, fraction in () if isinstance(system, Spheres) else method.substeps:
        equations = reduced_step(system, substep).equations
        step = equations.step
        data = [equations.x, step.time_symbol, step.h_symbol, equations.state, step.theta]
        digest.update(f"{fraction.hex()} ".encode())
        digest.update(ca.Function("step", data, [equations.residual, equations.increment]).serialize().encode())
        if step.clock is not None:
            clock = step.clock
            left = [clock.begin, clock.change, clock.taken, *([] if clock.following is None else [clock.following])]
            digest.update(ca.Function("clock", [*data, clock.values, clock.delta, clock.end], left).serialize().encode())
    return digest.hexdigest()


def plain(values: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Arrays as numbers and lists, for JSON."""
    return {name: value.tolist() for name, value in values.items()}
