"""Mechanisms as engineers state them, in their units and with their numbers in `params`: as fast and as right as textbooks'."""

from __future__ import annotations

import ctypes

import casadi as ca
import numpy as np
import pytest
from four_bar import linkage, start

import dalembert as da
from dalembert.compiler import build_program, first_guess
from dalembert.engine._stepper import write_start
from dalembert.systems import state_at

METHODS = (
    *(da.LobattoIIIAB(s) for s in (2, 3, 4, 5)),
    da.Rattle(),
    *(da.GaussLobattoSPARK(s) for s in (1, 2, 3)),
    *(da.RadauIIA(s, projected=True) for s in (2, 3)),
    *(da.Gauss(s, projected=True) for s in (2, 3)),
    *(da.LobattoIIIC(s, projected=True) for s in (2, 3)),
    *(da.LobattoGalerkin(s) for s in (2, 3)),
    da.UnderlyingODE(da.tableaux.gauss(2)),
    da.Variational("SVA"),
    da.Variational("midpoint"),
    da.SymplecticEuler(),
)
SOME = (da.LobattoIIIAB(3), da.Rattle(), da.GaussLobattoSPARK(2), da.RadauIIA(2, projected=True))


@pytest.mark.parametrize("method", SOME, ids=str)
def test_kernels_compute_what_their_graphs_say(method):
    """Merging common subexpressions must not change values: (x / a) * a, with a's that become one, once did."""
    system, h = linkage(), 2e-3
    state = state_at(system, **start(rate=2.0))
    program = build_program(system, method, state, h)
    memory = np.zeros(program.memory_size)
    write_start(memory, program.layout, h, state.theta, state.packed, first_guess(program.reduced, system, state, h))
    for kernel in program.kernels[1:]:  # in the order of a first step
        inputs = np.concatenate([memory[slot : slot + symbols.shape[0]] for symbols, slot in kernel.inputs])
        results = ca.vertcat(ca.SX(0, 1), *(ca.densify(value) for value, _ in kernel.outputs))
        graph = ca.Function("graph", [ca.vertcat(*(symbols for symbols, _ in kernel.inputs))], [results])
        wanted = np.asarray(graph(inputs)).ravel()
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(program.code.addresses[kernel.name])(memory.ctypes.data)
        computed = np.concatenate([memory[slot : slot + value.shape[0]] for value, slot in kernel.outputs])
        np.testing.assert_allclose(computed, wanted, rtol=1e-9, atol=1e-12 * np.abs(wanted).max(), err_msg=kernel.name)


@pytest.mark.parametrize("h", [2e-2, 2e-3, 2e-4, 2e-5])
@pytest.mark.parametrize("method", SOME, ids=str)
def test_no_step_of_a_four_bar_is_made_in_python(method, h):
    run = da.simulate(linkage(), method, **start(), h=h, steps=100)
    assert run.stats["rescued_steps"] == 0
