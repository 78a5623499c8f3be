"""Rewriting into linear forms changes rounding, never values; and what is fixed leaves the iteration."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.compiler import reduced_step
from dalembert.compiler._linear_form import LinearForms
from dalembert.compiler._tape import read_tape


@pytest.mark.parametrize("method", [da.LobattoIIIAB(3), da.Gauss(2, projected=True)], ids=str)
@pytest.mark.parametrize("problem", ["double_pendulum", "charged_particle_on_sphere", "heavy_top", "four_bar"])
def test_residuals_keep_their_values(method, problem):
    reduced = reduced_step(getattr(da.problems, problem)().system, method)
    data = ca.vertcat(*reduced.data)
    forms = LinearForms(reduced.x, data)
    rewritten = forms.rewrite(reduced.residual)
    names = ca.vertcat(ca.SX(0, 1), *(name for name, _ in forms.once))
    values = ca.vertcat(ca.SX(0, 1), *(value for _, value in forms.once))
    assert not ca.depends_on(values, reduced.x)
    published = ca.Function("published", [reduced.x, data], [reduced.residual])
    once = ca.Function("once", [data], [values])
    new = ca.Function("new", [reduced.x, data, names], [rewritten])
    random = np.random.default_rng(3)
    for _ in range(5):
        x, d = random.uniform(0.5, 1.5, reduced.x.shape[0]), random.uniform(0.5, 1.5, data.shape[0])
        wanted = np.asarray(published(x, d))
        assert np.abs(np.asarray(new(x, d, once(d))) - wanted).max() < 1e-12 * (1 + np.abs(wanted).max())


def test_the_iteration_gets_shorter():
    reduced = reduced_step(da.problems.double_pendulum().system, da.LobattoIIIAB(3))
    data = ca.vertcat(*reduced.data)
    forms = LinearForms(reduced.x, data)
    rewritten = forms.rewrite(reduced.residual)
    names = ca.vertcat(*(name for name, _ in forms.once))
    before = ca.Function("f", [reduced.x, data], [reduced.residual], {"cse": True})
    after = ca.Function("f", [reduced.x, data, names], [rewritten], {"cse": True})
    assert len(read_tape(after).computed) < len(read_tape(before).computed)
