"""Kernels for what is observed along a run: energy, velocity, residuals and multipliers at stored states."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from dalembert.compiler._ir import Kernel, emit_module
from dalembert.compiler._jit import Code, compile_module
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


_observers: dict[str, Observer] = Recent()


@one_at_a_time
def observer(system: System) -> Observer:
    """The observing kernels of a system; compiled once for equal models."""
    if system.fingerprint not in _observers:
        _observers[system.fingerprint] = _compile(system)
    return _observers[system.fingerprint]


def _compile(system: System) -> Observer:
    n_theta = system.parameters.size
    theta, t, state = ca.SX.sym("theta", n_theta), ca.SX.sym("t"), ca.SX.sym("state", system.n_state)
    y, z = ca.vertsplit(state, [0, system.state_blocks[0][1], system.n_state])
    inputs = [(theta, 0), (t, n_theta), (state, n_theta + 1)]
    first_output = n_theta + 1 + system.n_state
    quantities = {}
    for name, function in {**OBSERVED, **LINEAR}.items():
        if function in system.function_names:
            arguments = (t, y) if function == "g" else (t, y, z)
            value = system.function(function)(*arguments, theta)
            quantities[name] = entries_of(value) if name in system.matrices else ca.vec(value)
    kernels = [Kernel(f"observe_{name}", inputs, [(ca.densify(value), first_output)]) for name, value in quantities.items()]
    sizes = {name: value.shape[0] for name, value in quantities.items()}
    work = first_output + max(sizes.values())
    assembly, used = emit_module(kernels, work)
    return Observer(compile_module(assembly, tuple(k.name for k in kernels)), sizes, n_theta, first_output, work + used)
