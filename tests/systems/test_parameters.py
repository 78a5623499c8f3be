"""Parameters: scalars and arrays, overrides at run time, refusals; and the fingerprint that tells models apart."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dalembert as da

K = np.array([[2.0, -1.0], [-1.0, 3.0]])


def oscillators(**params):
    return da.Hamiltonian(
        lambda q, p, masses, K, gravity: p @ (p / masses) / 2 + q @ K @ q / 2 + gravity * q[1],
        dim=2,
        params={"masses": [1.0, 2.0], "K": K, "gravity": 9.81, **params},
    )


def energy(q, p, masses=(1.0, 2.0), K=K, gravity=9.81):
    q, p = np.array(q), np.array(p)
    return p @ (p / np.array(masses)) / 2 + q @ np.array(K) @ q / 2 + gravity * q[1]


STATE = ([0.3, -0.4], [1.0, 2.0])


def test_defaults_are_kept_in_their_shapes():
    params = oscillators().params
    assert {name: value.shape for name, value in params.items()} == {"masses": (2,), "K": (2, 2), "gravity": ()}
    np.testing.assert_array_equal(params["K"], K)


OVERRIDES = [{}, {"gravity": 1.5}, {"masses": [3.0, 4.0]}, {"K": [[1.0, 0.25], [0.5, 2.0]], "gravity": 0}]


@pytest.mark.parametrize("changes", OVERRIDES, ids=str)
def test_overrides_reach_the_model(changes):
    run = da.simulate(oscillators(), da.Rattle(), q0=STATE[0], p0=STATE[1], h=0.01, steps=1, params=changes)
    assert run.energy[0] == pytest.approx(energy(*STATE, **changes), rel=1e-14)
    for name, value in changes.items():
        np.testing.assert_array_equal(run.parameters[name], value)


@pytest.mark.parametrize("changes", OVERRIDES, ids=str)
def test_overriding_is_the_same_as_declaring(changes):
    overridden = da.simulate(oscillators(), da.Rattle(), q0=STATE[0], p0=STATE[1], h=0.01, steps=20, params=changes)
    declared = da.simulate(oscillators(**changes), da.Rattle(), q0=STATE[0], p0=STATE[1], h=0.01, steps=20)
    np.testing.assert_array_equal(overridden.q, declared.q)
    np.testing.assert_array_equal(overridden.p, declared.p)


def test_defaults_do_not_follow_the_users_array():
    mine = np.array([1.0, 2.0])
    system = oscillators(masses=mine)
    mine[0] = 100.0
    np.testing.assert_array_equal(system.params["masses"], [1.0, 2.0])


def test_consistent_uses_the_given_parameters_and_hands_them_on():
    rod = da.Hamiltonian(
        lambda q, p: p @ p / 2, dim=2, holonomic=lambda q, length: [np.hypot(q[0], q[1]) - length], params={"length": 1.0}
    )
    state = da.consistent(rod, q0=[3.0, 4.0], v0=[0, 0], params={"length": 10.0})
    np.testing.assert_allclose(state.q, [6.0, 8.0], rtol=1e-15)
    run = da.simulate(rod, da.Rattle(), start=state, h=0.1, steps=2)
    assert run.parameters["length"] == 10.0


REFUSED = {
    "unknown name": ({"graviti": 1.0}, ["no parameter 'graviti'", "masses, K, gravity", "params={...}"]),
    "wrong shape": ({"masses": [1.0, 2.0, 3.0]}, ["'masses'", "(2,)", "(3,)"]),
    "number for an array": ({"masses": 1.0}, ["'masses'", "(2,)", "()"]),
    "array for a number": ({"gravity": [1.0]}, ["'gravity'", "(1,)"]),
    "nan": ({"gravity": np.nan}, ["'gravity'", "finite"]),
    "text": ({"gravity": "strong"}, ["'gravity'", "number", "strong"]),
    "not a mapping": ([1.0], ["params", "list"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_overrides(name):
    params, words = REFUSED[name]
    with pytest.raises(da.ModelError) as caught:
        da.simulate(oscillators(), da.Rattle(), q0=STATE[0], p0=STATE[1], h=0.01, steps=1, params=params)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


DECLARATIONS = {
    "taken": ({"q": 1.0}, ["'q'", "rename"]),
    "not an identifier": ({"my mass": 1.0}, ["identifiers", "my mass"]),
    "not a string": ({3: 1.0}, ["identifiers", "3"]),
    "infinite": ({"m": np.inf}, ["'m'", "finite"]),
    "ragged": ({"m": [[1.0], [1.0, 2.0]]}, ["'m'", "array of numbers"]),
    "not a mapping": (3.0, ["params", "float"]),
}


@pytest.mark.parametrize("name", DECLARATIONS)
def test_wrong_declarations(name):
    params, words = DECLARATIONS[name]
    with pytest.raises(da.ModelError) as caught:
        da.Hamiltonian(lambda q, p: p @ p, dim=1, params=params)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


# -- fingerprints ----------------------------------------------------------------------------------------------------


def pendulum(power=2, gravity=9.81, force=None, length=1.0, form=da.Hamiltonian, names=("m", "k")):
    m, k = names
    kinetic = "p @ p" if form is da.Hamiltonian else "v @ v"
    source = f"lambda q, {kinetic[0]}, {m}, {k}: {m} * ({kinetic}) / 2 + {k} * q[0] ** {power} + {gravity!r} * q[1]"
    return form(
        eval(source, {"np": np}),
        dim=2,
        holonomic=lambda q: [np.hypot(q[0], q[1]) - length],
        force=force,
        params={m: 1.0, k: 2.0},
    )


SAME = {
    "written again": lambda: pendulum(),
    "other defaults": lambda: da.Hamiltonian(
        lambda k, m, p, q: m * (p @ p) / 2 + k * q[0] ** 2 + 9.81 * q[1],
        dim=2,
        holonomic=lambda q: [np.hypot(*q) - 1.0],
        params={"m": 7.0, "k": 8.0},
    ),
}
DIFFERENT = {
    "plain": lambda: pendulum(),
    "power": lambda: pendulum(power=3),
    "constant, by one bit": lambda: pendulum(gravity=np.nextafter(9.81, 10).item()),
    "force": lambda: pendulum(force=lambda v: -v),
    "other force": lambda: pendulum(force=lambda v: -2 * v),
    "constraint": lambda: pendulum(length=2.0),
    "names": lambda: pendulum(names=("mass", "k")),
    "swapped names": lambda: pendulum(names=("k", "m")),
    "Lagrangian": lambda: pendulum(form=da.Lagrangian),
}


@pytest.mark.parametrize("name", SAME)
def test_equal_models_have_equal_fingerprints(name):
    assert SAME[name]().fingerprint == pendulum().fingerprint


def test_different_models_have_different_fingerprints():
    fingerprints = {name: build().fingerprint for name, build in DIFFERENT.items()}
    assert len(set(fingerprints.values())) == len(fingerprints)


def test_fingerprint_is_the_same_in_another_process():
    """A stored run is recognised tomorrow: no memory address, hash seed or symbol counter may enter."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import casadi as ca; ca.SX.sym('noise', 7)\n"
        "from test_parameters import pendulum; pendulum(power=5); print(pendulum().fingerprint)"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent)]
    environment = {**os.environ, "PYTHONPATH": str(Path(da.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == pendulum().fingerprint


def test_equal_models_share_one_program():
    from dalembert.compiler import reduced_step

    method = da.LobattoIIIAB(stages=3)
    assert reduced_step(pendulum(), method) is reduced_step(SAME["other defaults"](), method)
    assert reduced_step(pendulum(), method) is not reduced_step(pendulum(power=3), method)


def test_description():
    assert repr(oscillators()) == "<Hamiltonian of 2 coordinates, params masses, K, gravity>"
    assert repr(pendulum(form=da.Lagrangian)) == "<Lagrangian of 2 coordinates, 1 holonomic constraint, params m, k>"
