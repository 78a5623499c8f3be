"""Systems and methods travel to other processes: the same symbolic graph arrives, and gives the same numbers."""

import pickle

import numpy as np
import pytest

import dalembert as da
from dalembert.cli._models import catalogue

OTHERS = {
    "ODAE": da.ODAE(
        v=lambda z: [2 * z[0], -z[1]],
        f=lambda y, z: [2 * y[0] * y[1] * z[0] * z[1] - y[0] * z[0] * z[1], z[0] - y[0] * z[1] ** 3],
        r=lambda y, z, lam: [y[1] * z[0] * lam[0] ** 2, -(y[0] ** 0.5) * z[0] * z[1] ** 2 * lam[0]],
        g=lambda y: [y[0] * y[1] ** 2 - 1],
        domain=lambda y0, lam: [1 + y0[0] + lam[0]],
        dim_y=2,
        dim_z=2,
    ),
    "IndexTwoDAE": da.IndexTwoDAE(
        parts=[lambda y, z: [y[0] * y[1] ** 2 * z[0] ** 2, y[0] ** 2 * y[1] ** 2 - 3 * y[1] ** 2 * z[0]]],
        g=lambda y: [y[0] ** 2 * y[1] - 1],
        dim_y=2,
        dim_z=1,
    ),
    "matrix parameter": da.Lagrangian(
        lambda q, v, K: v @ v / 2 - q @ K @ q / 2,
        dim=2,
        nonholonomic=lambda q, v: [v[0] - q[1] * v[1]],
        force=lambda v: -0.1 * v,
        params={"K": [[2.0, 0.5], [0.5, 1.0]]},
    ),
}


@pytest.mark.parametrize("name", [*catalogue(), *OTHERS])
def test_the_same_graph_arrives(name):
    system = OTHERS[name] if name in OTHERS else catalogue()[name]().system
    arrived = pickle.loads(pickle.dumps(system))
    assert type(arrived) is type(system) and repr(arrived) == repr(system)
    assert arrived.function_names == system.function_names
    for function in system.function_names:
        assert arrived.function(function).serialize() == system.function(function).serialize()
    vars(arrived).pop("fingerprint", None)  # what arrived must have the same of itself
    assert arrived.fingerprint == system.fingerprint
    assert {key: value.tolist() for key, value in arrived.params.items()} == {
        key: value.tolist() for key, value in system.params.items()
    }


def test_a_system_that_travelled_gives_the_same_numbers():
    problem, method = da.problems.double_pendulum(), da.LobattoIIIAB(stages=3)
    fresh = {"h": 0.1, "steps": 50, "q0": problem.q0, "p0": problem.p0}
    arrived, same_method = pickle.loads(pickle.dumps((problem.system, method)))
    assert np.array_equal(
        da.simulate(arrived, same_method, **fresh).states, da.simulate(problem.system, method, **fresh).states
    )
    assert arrived.function("g") is not problem.system.function("g")
