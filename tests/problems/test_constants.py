"""Constants of the catalogue: whatever a problem is given, it is made, or refused with a sentence."""

import inspect

import numpy as np
import pytest

import dalembert as da

NAMES = da.problems.__all__[1:]


@pytest.mark.parametrize("name", NAMES)
def test_constants_that_make_no_sense_are_refused(name):
    build = getattr(da.problems, name)
    for constant in inspect.signature(build).parameters:
        for value in (float("nan"), "a", 10**400, [1, 2, 3], -1, 0, None):
            try:
                problem = build(**{constant: value})
            except da.DalembertError as error:
                assert "\n" not in str(error) and len(str(error)) < 500
            else:
                start = [x for x in (problem.q0, problem.v0, problem.p0, problem.y0, problem.z0) if x is not None]
                assert all(np.all(np.isfinite(x)) for x in start) and np.isfinite(problem.h)


def test_masses_are_positive_wherever_they_are_given():
    problem = da.problems.double_pendulum()
    with pytest.raises(da.DalembertError, match="m2 of double_pendulum must be positive; got -1"):
        da.problems.double_pendulum(m2=-1)
    with pytest.raises(da.DalembertError, match="m2 of double_pendulum must be positive"):
        da.simulate(problem, da.Rattle(), params={"m2": -1}, steps=5)
    with pytest.raises(da.DalembertError, match="member 1: m2 of double_pendulum must be positive"):
        da.simulate_many(problem, da.Rattle(), params={"m2": [1.0, -1.0]}, steps=5)
    with pytest.raises(da.InputError, match="has no constant 'm3'"):
        da.problems.double_pendulum(m3=1)
