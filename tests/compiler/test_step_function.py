"""The step as a CasADi function: the same map as the compiled one, and differentiable."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da


@pytest.mark.parametrize("method", [da.LobattoIIIAB(3), da.Rattle(), da.RadauIIA(2, projected=True)], ids=str)
def test_it_is_the_same_map_with_the_same_tangent(method):
    problem = da.problems.double_pendulum(m2=2.0)
    system, theta = problem.system, problem.system.parameters.vector()
    start = da.consistent(system, q0=problem.q0, v0=[0.1, 0.2, -0.3, 0.4])
    step = da.step_function(system, method)
    q1, p1 = (np.asarray(x).ravel() for x in step(0.0, 0.05, start.q, start.p, theta))
    one = da.verify.step(system, method, h=0.05, start=start)
    assert np.abs(q1 - one.q).max() < 1e-12
    assert np.abs(p1 - one.p).max() < 1e-12

    q, p = ca.MX.sym("q", 4), ca.MX.sym("p", 4)
    new = ca.vertcat(*step(0.0, 0.05, q, p, theta))
    tangent = ca.Function("tangent", [q, p], [ca.jacobian(new, ca.vertcat(q, p))])(start.q, start.p)
    assert np.abs(np.asarray(tangent) - da.verify.step_tangent(system, method, h=0.05, start=start)).max() < 1e-9


def test_methods_with_a_prepared_start_are_refused():
    with pytest.raises(da.InputError, match="prepares its first step"):
        da.step_function(da.problems.double_pendulum().system, da.Shake())
