"""Kernels for what is observed along a run: energy, velocity, residuals and multipliers at stored states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import casadi as ca

from dalembert.compiler._elimination import SingularMatrix, diagonal_order, eliminate, substitute
from dalembert.compiler._ir import Kernel, compile_kernels
from dalembert.compiler._jit import Code
from dalembert.compiler._tape import entries_of
from dalembert.symbolic._kept import Recent
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import System

LINEAR = {"multiplier_matrix": "multiplier_matrix", "multiplier_rhs": "multiplier_rhs"}
OBSERVED = {"energy": "H", "v": "v", "g": "g", "g_dot": "g_dot", "k": "k"}


@dataclass(frozen=True)
class Observer:
    """Kernels that read (theta, t, state) from the start of a block of memory and write one quantity behind them.

    Of matrices these are the entries that are not zero by structure, column by column.
    """

    code: Code
    sizes: dict[str, int]
    n_theta: int
    first_output: int
    memory_size: int


_observers: dict[tuple[str, str], Observer | None] = Recent()


@one_at_a_time
def observer(system: System) -> Observer:
    """The observing kernels of a system; compiled once for equal models."""
    if (system.fingerprint, "observed") not in _observers:
        _observers[system.fingerprint, "observed"] = _compile(system, _quantities)
    found = _observers[system.fingerprint, "observed"]
    assert found is not None
    return found


@one_at_a_time
def flow_observer(system: System) -> Observer | None:
    """A kernel "flow" with the velocities and accelerations in a state; None where multipliers need more than an elimination.

    They do where they enter nonlinearly, or where constraints are redundant, which shows in the states only.
    """
    if (system.fingerprint, "flow") not in _observers:
        solvable = system.linear_in_multipliers and not system.large
        try:
            _observers[system.fingerprint, "flow"] = _compile(system, _flow) if solvable else None
        except SingularMatrix:
            _observers[system.fingerprint, "flow"] = None
    return _observers[system.fingerprint, "flow"]


def _quantities(system: System, t: ca.SX, y: ca.SX, z: ca.SX, theta: ca.SX) -> dict[str, ca.SX]:
    """What is shown of a run."""
    found = {}
    for name, function in {**OBSERVED, **LINEAR}.items():
        if function in system.function_names:
            arguments = (t, y) if function == "g" else (t, y, z)
            value = system.function(function)(*arguments, theta)
            found[name] = entries_of(value) if name in system.matrices else ca.vec(value)
    return found


def _flow(system: System, t: ca.SX, y: ca.SX, z: ca.SX, theta: ca.SX) -> dict[str, ca.SX]:
    """y_dot and y_ddot, with the multipliers that the hidden constraints ask for."""
    multipliers = ca.SX(0, 1)
    if system.n_multipliers:
        matrix, rhs = (ca.sparsify(system.function(name)(t, y, z, theta)) for name in LINEAR)
        order = diagonal_order(matrix)
        multipliers = substitute(*eliminate(matrix, order), order, rhs)
    lam, psi = ca.vertsplit(multipliers, [0, system.n_holonomic, system.n_multipliers])
    v, a = flow(system, {"t": t, "y": y, "z": z, "lam": lam, "psi": psi}, theta)
    return {"flow": ca.vertcat(v, a)}


def flow(system: System, at: Mapping[str, ca.SX], theta: ca.SX) -> tuple[ca.SX, ca.SX]:
    """y_dot and y_ddot as expressions of t, y, z, lam, psi and the parameters."""
    v, z_dot = (system.function(name)(*(at[each] for each in system.arguments(name)), theta) for name in ("v", "z_dot"))
    return v, ca.jtimes(v, ca.vertcat(at["t"], at["y"], at["z"]), ca.vertcat(1, v, z_dot))


def _compile(system: System, quantities: Callable[..., dict[str, ca.SX]]) -> Observer:
    n_theta = system.parameters.size
    theta, t, state = ca.SX.sym("theta", n_theta), ca.SX.sym("t"), ca.SX.sym("state", system.n_state)
    inputs = [(theta, 0), (t, n_theta), (state, n_theta + 1)]
    first_output = n_theta + 1 + system.n_state
    found = quantities(system, t, *ca.vertsplit(state, [0, system.state_blocks[0][1], system.n_state]), theta)
    kernels = [Kernel(f"observe_{name}", inputs, [(ca.densify(value), first_output)]) for name, value in found.items()]
    sizes = {name: value.shape[0] for name, value in found.items()}
    work = first_output + max(sizes.values())
    code, used = compile_kernels(kernels, work)
    return Observer(code, sizes, n_theta, first_output, work + used)
