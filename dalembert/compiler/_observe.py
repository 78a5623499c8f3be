"""Kernels for what is observed along a run: energy, velocity, residuals and multipliers at stored states."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from dalembert.compiler._ir import Kernel, emit_module
from dalembert.compiler._jit import Code, compile_module
from dalembert.systems import MechanicalSystem


@dataclass(frozen=True)
class Observer:
    """Kernels that read (theta, t, q, p) from the start of a block of memory and write one quantity behind them."""

    code: Code
    sizes: dict[str, int]
    n_theta: int
    first_output: int
    memory_size: int


_observers: dict[str, Observer] = {}


def observer(system: MechanicalSystem) -> Observer:
    """The observing kernels of a system; compiled once for equal models."""
    if system.fingerprint not in _observers:
        _observers[system.fingerprint] = _compile(system)
    return _observers[system.fingerprint]


def _compile(system: MechanicalSystem) -> Observer:
    n, n_theta = system.dim, system.parameters.size
    theta, t, q, p = ca.SX.sym("theta", n_theta), ca.SX.sym("t"), ca.SX.sym("q", n), ca.SX.sym("p", n)
    inputs = [(theta, 0), (t, n_theta), (q, n_theta + 1), (p, n_theta + 1 + n)]
    first_output = n_theta + 1 + 2 * n
    quantities = {
        "energy": system.function("H")(t, q, p, theta),
        "v": system.function("H_p")(t, q, p, theta),
        "g": system.function("g")(t, q, theta),
        "g_dot": system.function("g_dot")(t, q, p, theta),
        "multiplier_matrix": ca.vec(system.function("multiplier_matrix")(t, q, p, theta).T),
        "multiplier_rhs": system.function("multiplier_rhs")(t, q, p, theta),
    }
    kernels = [Kernel(f"observe_{name}", inputs, [(ca.densify(value), first_output)]) for name, value in quantities.items()]
    sizes = {name: value.shape[0] for name, value in quantities.items()}
    work = first_output + max(sizes.values())
    assembly, used = emit_module(kernels, work)
    return Observer(compile_module(assembly, tuple(k.name for k in kernels)), sizes, n_theta, first_output, work + used)
