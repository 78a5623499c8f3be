"""Long kernels that steps seldom call are compiled quickly, and compute the same."""

import numpy as np
import pytest

import dalembert as da
from dalembert.compiler import _program, _step_kernels


def circle(q, p):
    return p @ p / 2 + 0.7182 * q[1]


def last_state():
    system = da.Hamiltonian(circle, dim=2, holonomic=lambda q: [q @ q - 1])
    return da.simulate(system, da.LobattoIIIAB(4), q0=[1, 0], p0=[0, 0.3], h=0.05, steps=40, progress=False).q[-1]


@pytest.mark.parametrize("length, expected", [(10, {"factor", "finish"}), (10**6, set())])
def test_straight_line_kernels_that_are_called_once_a_step_are_compiled_quickly_if_long(monkeypatch, length, expected):
    right, compile_kernels, quick = last_state(), _step_kernels.compile_kernels, []

    def watched(kernels, work, **options):
        quick.append(set(options["quick"]) & {"factor", "iterate", "weigh", "predict", "finish"})
        return compile_kernels(kernels, work, **options)

    monkeypatch.setattr(_program, "_programs", {})
    monkeypatch.setattr(_step_kernels, "LONG", length)
    monkeypatch.setattr(_step_kernels, "compile_kernels", watched)
    np.testing.assert_allclose(last_state(), right, rtol=0, atol=1e-14)
    assert quick and all(each == expected for each in quick)
