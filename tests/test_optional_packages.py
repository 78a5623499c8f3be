"""What is optional and not installed is asked for by name, in one sentence."""

import sys

import pytest

import dalembert as da


@pytest.fixture(scope="module")
def run():
    return da.simulate(da.problems.pendulum(), da.Rattle(), steps=3)


def stored(run, path):
    return da.simulate(da.problems.pendulum(), da.Rattle(), steps=3, save_to=path / "run.zarr")


def explored(run, path):
    return da.explore("pendulum", browser=False)


def reduced(run, path):
    problem = da.problems.simple_pendulum()
    start = {name: getattr(problem, name) for name in ("q0", "v0", "p0") if getattr(problem, name) is not None}
    return da.reduce_index(problem).simulate(t1=1.0, solver="IDA", **start)


ASKED = {
    "zarr": stored,
    "xarray": lambda run, path: run.to_xarray(),
    "pandas": lambda run, path: run.to_dataframe(),
    "mujoco": lambda run, path: da.from_mjcf("<mujoco/>"),
    "sympy": lambda run, path: da.from_sympy(None, []),
    "uvicorn": explored,
    "sksundae.ida": reduced,
    "jax": lambda run, path: da.to_jax(da.problems.pendulum(), da.Rattle(), wrt="m", h=0.1, steps=2),
    "torch": lambda run, path: da.to_torch(da.problems.pendulum(), da.Rattle(), wrt="m", h=0.1, steps=2),
}


@pytest.mark.parametrize("package", ASKED)
def test_a_package_that_is_missing_is_named_with_how_to_install_it(package, run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(da.DalembertError, match="pip install") as caught:
        ASKED[package](run, tmp_path)
    assert "\n" not in str(caught.value) and list(tmp_path.iterdir()) == []
