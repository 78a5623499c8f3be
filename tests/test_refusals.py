"""Bad input gets one clear sentence that names the fix; a step that cannot be made says why, and nothing passes silently."""

import numpy as np
import pytest
from sentences import assert_one_sentence, refused

import dalembert as da


def length(q):
    return [np.hypot(q[0], q[1]) - 1]


def pendulum(**changes):
    return da.Hamiltonian(**{"H": lambda q, p: p @ p / 2 + q[1], "dim": 2, "holonomic": length, **changes})


def simulate(system=None, method=None, **changes):
    arguments = {"q0": [0.6, -0.8], "p0": [0.8, 0.6], "h": 0.1, "steps": 5, **changes}
    return da.simulate(pendulum() if system is None else system, method or da.LobattoIIIAB(stages=3), **arguments)


def check(error, words, action, capfd):
    found = refused(error, words, action)
    assert capfd.readouterr() == ("", "")
    return found


MODELS = {
    "wrong argument name": (lambda: pendulum(H=lambda q, u: u @ u), ["'u'", "q, p", "params={...}"]),
    "velocity in a Hamiltonian": (lambda: pendulum(H=lambda q, v: v @ v), ["'v'", "t, q, p"]),
    "unknown parameter": (lambda: pendulum(H=lambda q, p, m: m * p @ p), ["'m'", "parameters: none", "params={...}"]),
    "*args": (lambda: pendulum(H=lambda *args: 0.0), ["name its arguments", "*args"]),
    "**kwargs": (lambda: pendulum(holonomic=lambda **kwargs: [0.0]), ["holonomic", "name its arguments"]),
    "no function": (lambda: pendulum(H=3.0), ["must be a function", "3.0"]),
    "no number": (lambda: pendulum(H=lambda q, p: p), ["one number", "(2,)"]),
    "nothing returned": (lambda: pendulum(H=lambda q, p: None), ["one number", "NoneType"]),
    "force of wrong shape": (lambda: pendulum(force=lambda q: [1.0]), ["force", "2 numbers", "(1,)"]),
    "force a matrix": (lambda: pendulum(force=lambda q: np.outer(q, q)), ["force", "2 numbers", "(2, 2)"]),
    "holonomic a matrix": (lambda: pendulum(holonomic=lambda q: [[q[0]], [q[1]]]), ["holonomic", "flat list", "(2, 1)"]),
    "holonomic ragged": (lambda: pendulum(holonomic=lambda q: [q[0], q]), ["holonomic", "flat list"]),
    "holonomic text": (lambda: pendulum(holonomic=lambda q: ["a"]), ["holonomic", "numbers"]),
    "holonomic empty": (lambda: pendulum(holonomic=lambda q: []), ["empty list", "leave the argument out"]),
    "dim zero": (lambda: pendulum(dim=0), ["dim", "positive integer"]),
    "dim a float": (lambda: pendulum(dim=2.0), ["dim", "positive integer", "2.0"]),
    "nonquadratic": (lambda: da.Lagrangian(lambda v: v[0] ** 4, dim=1), ["not quadratic", "da.Hamiltonian"]),
    "mass missing": (lambda: da.Lagrangian(lambda v: v[0] ** 2, dim=2), ["mass matrix", "singular", "v[i]"]),
}


@pytest.mark.parametrize("name", MODELS)
def test_model(name, capfd):
    build, words = MODELS[name]
    check(da.ModelError, words, build, capfd)


TWINS = pendulum(holonomic=lambda q: [*length(q), 2 * (q[0] ** 2 + q[1] ** 2 - 1.01)])
ROOT = pendulum(H=lambda q, p: p @ p / 2 + np.sqrt(q[1]))
POLE = pendulum(H=lambda q, p: p @ p / 2 + 1 / (q[0] - 0.6))
MANY = da.Hamiltonian(lambda q, p: p @ p / 2 + np.sqrt(q[0]), dim=30)
RANK_ONE = da.Lagrangian(lambda v: (v[0] + v[1]) ** 2 / 2, dim=2)
MASSLESS = da.Lagrangian(lambda v, m: m * v @ v / 2, dim=2, params={"m": 0.0})
STARTS = {
    "g": (da.InconsistentStart, {"q0": [0.7, -0.8]}, ["holonomic constraint g[0]", "by 0.063", "da.consistent"]),
    "g_dot": (da.InconsistentStart, {"p0": [0.8, 0.7]}, ["hidden constraint", "[0]", "by -0.08", "da.consistent"]),
    "g, by a trifle": (da.InconsistentStart, {"q0": [0.6, -0.8 - 1e-10]}, ["g[0]", "da.consistent"]),
    "contradicting constraints": (da.InconsistentStart, {"system": TWINS}, ["holonomic[0] and holonomic[1]", "contradict"]),
    "nan": (da.InputError, {"system": ROOT}, ["the Hamiltonian is nan", "q = [ 0.6 -0.8]", "check the model"]),
    "inf": (da.InputError, {"system": POLE}, ["the Hamiltonian is infinite", "check the model"]),
    "nan in thirty": (da.InputError, {"system": MANY, "q0": -np.ones(30), "p0": np.ones(30)}, ["nan", "..."]),
    "singular mass": (da.ModelError, {"system": RANK_ONE}, ["mass matrix", "singular", "quadratically"]),
    "zero mass": (da.ModelError, {"system": MASSLESS}, ["mass matrix", "singular"]),
    "q0 too long": (da.InputError, {"q0": [1, 0, 0]}, ["q0", "(2,)", "(3,)"]),
    "q0 a number": (da.InputError, {"q0": 1.0}, ["q0", "(2,)", "()"]),
    "q0 a column": (da.InputError, {"q0": [[0.6], [-0.8]]}, ["q0", "(2,)", "(2, 1)"]),
    "p0 too short": (da.InputError, {"p0": [1.0]}, ["p0", "(2,)", "(1,)"]),
    "q0 numbers as text": (da.InputError, {"q0": ["0", "1"]}, ["q0", "2 real numbers", "['0', '1']"]),
    "q0 text": (da.InputError, {"q0": "ab"}, ["q0", "2 real numbers", "'ab'"]),
    "q0 nan": (da.InputError, {"q0": [np.nan, 0]}, ["q0", "finite", "nan"]),
    "p0 inf": (da.InputError, {"p0": [np.inf, 0]}, ["p0", "finite", "inf"]),
    "no q0": (da.InputError, {"q0": None}, ["q0", "da.consistent"]),
    "no p0": (da.InputError, {"p0": None}, ["v0", "p0"]),
    "v0 and p0": (da.InputError, {"v0": [0.8, 0.6]}, ["v0", "p0", "not both"]),
    "start and q0": (da.InputError, {"start": da.consistent(pendulum(), q0=[1, 0], p0=[0, 1])}, ["start", "not both"]),
    "t0 nan": (da.InputError, {"t0": np.nan}, ["t0", "finite"]),
    "unknown parameter": (da.ModelError, {"params": {"g": 1.0}}, ["'g'", "it has: none"]),
    "params no mapping": (da.ModelError, {"params": [1.0]}, ["params", "list"]),
    "system a function": (da.UnsupportedSystem, {"system": length}, ["da.Hamiltonian", "function"]),
}


@pytest.mark.parametrize("name", STARTS)
def test_start(name, capfd):
    error, changes, words = STARTS[name]
    check(error, words, lambda: simulate(**changes), capfd)


GRIDS = {
    "h zero": ({"h": 0}, ["h must be a positive number", "0"]),
    "h nan": ({"h": np.nan}, ["h must be a positive number", "nan"]),
    "h infinite": ({"h": np.inf}, ["h must be a positive number", "inf"]),
    "h missing": ({"h": None}, ["give h=", "rtol="]),
    "h text": ({"h": "small"}, ["h must be a positive number", "small"]),
    "h a number as text": ({"h": "1e-3"}, ["h must be a positive number", "'1e-3'"]),
    "steps and t1": ({"t1": 1.0}, ["steps", "t1", "not both"]),
    "neither steps nor t1": ({"steps": None}, ["steps", "t1"]),
    "t1 not a multiple of h": ({"steps": None, "t1": 1.04}, ["t1 - t0 = 1.04", "h = 0.1", "use h = 0.104"]),
    "t1 before t0": ({"steps": None, "t1": -1.0}, ["t1", "after t0 = 0"]),
    "t1 nan": ({"steps": None, "t1": np.nan}, ["t1", "finite"]),
    "t1 text": ({"steps": None, "t1": "late"}, ["t1", "late"]),
    "negative steps": ({"steps": -1}, ["steps", ">= 0", "-1"]),
    "steps true": ({"steps": True}, ["steps", "integer", "True"]),
    "save_every true": ({"save_every": np.True_}, ["save_every", "integer", "True"]),
    "fractional steps": ({"steps": 2.5}, ["steps", "integer", "2.5"]),
    "save_every zero": ({"save_every": 0}, ["save_every", ">= 1", "0"]),
    "save_every fractional": ({"save_every": 1.5}, ["save_every", "integer"]),
    "more steps than memory": ({"steps": 10**14}, ["save_every"]),
    "tolerance negative": ({"newton_tolerance": -1e-9}, ["newton_tolerance", "positive"]),
    "on_failure misspelt": ({"on_failure": "rais"}, ["on_failure", '"raise" or "return"', "'rais'"]),
    "method a class": ({"method": da.LobattoIIIAB}, ["a method", "write da.LobattoIIIAB()"]),
    "method a string": ({"method": "rattle"}, ["a method, such as da.LobattoIIIAB(stages=3)", "'rattle'"]),
}


@pytest.mark.parametrize("name", GRIDS)
def test_grid_and_method(name, capfd):
    changes, words = GRIDS[name]
    check(da.InputError, words, lambda: simulate(**changes), capfd)


@pytest.mark.parametrize("stages", [1, 0, -2, 2.0, "3", None, True])
def test_number_of_stages(stages, capfd):
    check(da.InputError, ["stages", ">= 2", repr(stages)], lambda: da.LobattoIIIAB(stages=stages), capfd)


# -- steps that cannot be made ---------------------------------------------------------------------------------------

FALLING = da.Hamiltonian(lambda q, p: p @ p / 2 + q[0] + 1e-3 * np.sqrt(q[0]), dim=1)
DYING_FORCE = da.Hamiltonian(lambda q, p: p @ p / 2, dim=1, force=lambda t: [np.sqrt(1 - t)])
SHRINKING = pendulum(holonomic=lambda t, q: [np.hypot(q[0], q[1]) - np.sqrt(1 - t)])
DOMAINS = {
    "potential": (FALLING, {"q0": [1.0], "p0": [0.0]}, np.sqrt(2.0)),
    "force": (DYING_FORCE, {"q0": [1.0], "p0": [0.0]}, 1.0),
    "constraint": (SHRINKING, {"start": da.consistent(SHRINKING, q0=[0.6, -0.8], p0=[0, 0])}, 1.0),
}


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("name", DOMAINS)
def test_model_that_leaves_its_domain(name, stages, capfd):
    """The square root's argument turns negative at a known time: the run ends there, with everything before it."""
    system, start, end = DOMAINS[name]
    arguments = {**start, "h": 0.03, "steps": 100}
    method = da.LobattoIIIAB(stages=stages)
    failed = check(da.StepFailed, ["left its domain", ".run"], lambda: da.simulate(system, method, **arguments), capfd)
    returned = da.simulate(system, method, **arguments, on_failure="return", save_every=7)
    assert returned.status == "failed"
    assert returned.message in str(failed)
    for run in (failed.run, returned):
        assert all(np.all(np.isfinite(x)) for x in (run.t, run.q, run.p))
        assert end - 0.1 < run.t[-1] < end + 0.03
    np.testing.assert_array_equal(failed.run.q[-1], returned.q[-1])


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("h", [0.1, 0.03, 0.01, 0.003])
def test_constraints_that_lose_independence(h, stages):
    """At the cusp of y^2 = x^3 no momentum says how the motion goes on: every run must stop there."""
    curve = da.Hamiltonian(lambda q, p: p @ p / 2, dim=2, holonomic=lambda q: [q[1] ** 2 - q[0] ** 3])
    for speed in np.random.default_rng(20).uniform(0.8, 1.6, 12):
        run = da.simulate(curve, da.LobattoIIIAB(stages=stages), q0=[1, 1], p0=[-2 * speed, -3 * speed], h=h,
                          steps=round(6 / h), on_failure="return")  # fmt: skip
        assert run.status == "failed", f"speed {speed}: passed in silence"
        assert "lose independence" in run.message or "reduce h" in run.message, f"speed {speed}: {run.message}"
        assert np.all(run.q[:, 1] > -1e-9), f"speed {speed}: went through the singular configuration"
        assert np.max(np.abs(run.residuals["g"])) < 1e-13


def test_arguments_of_the_wrong_kind_are_named():
    pendulum, method = da.problems.pendulum(), da.GaussLobattoSPARK(2)
    with pytest.raises(da.DalembertError, match="save_to is the name of a store"):
        da.simulate(pendulum, method, h=0.1, steps=1, save_to=3)
    with pytest.raises(da.DalembertError, match="reduce is a list of names"):
        da.simulate_many(pendulum, method, h=0.1, steps=1, reduce=3)
    with pytest.raises(da.DalembertError, match="reduce is a list of names"):
        da.simulate_many(pendulum, method, h=0.1, steps=1, reduce=np.zeros((2, 2)))
    run = da.simulate(pendulum, method, h=0.1, steps=2)
    with pytest.raises(da.DalembertError, match=r"run\.at takes a time"):
        run.at("a")
    for value in ([1j, 0.0], np.array([1.0 + 1e-3j, 0.0])):
        with pytest.raises(da.DalembertError, match="q0 must be 2 real numbers"):
            da.simulate(pendulum, method, q0=value, p0=[0.0, 0.0], h=0.1, steps=1)
        with pytest.raises(da.DalembertError, match="q0 must be an array of real numbers"):
            da.simulate_many(pendulum, method, q0=value, p0=[0.0, 0.0], h=0.1, steps=1)


def run_one(**changes):
    return da.simulate(pendulum(params={"m": 1.0}), da.Rattle(), **START | changes)


def run_many(**changes):
    start = {"q0": [[0.6, -0.8], [0.8, 0.6]], "p0": [[0.8, 0.6], [0.0, 0.0]]}
    return da.simulate_many(pendulum(params={"m": 1.0}), da.Rattle(), **START | start | changes)


def run_section(**changes):
    return da.poincare(pendulum(params={"m": 1.0}), da.Rattle(), section=lambda q: q[0], **START | changes)


START = {"q0": [0.6, -0.8], "p0": [0.8, 0.6], "h": 0.1, "steps": 5}
HUGE = 10**400
EVERYWHERE = {
    "params a list": {"params": [1]},
    "start a number": {"start": 1.0, "q0": None, "p0": None},
    "h huge": {"h": HUGE},
    "steps huge": {"steps": HUGE},
    "t0 huge": {"t0": HUGE},
    "t1 huge": {"steps": None, "t1": HUGE},
    "q0 huge": {"q0": [HUGE, 0]},
    "q0 complex": {"q0": [0.6 + 1j, -0.8]},
    "q0 text": {"q0": ["0.6", "-0.8"]},
    "parameter huge": {"params": {"m": HUGE}},
    "t0 text": {"t0": "1"},
}
BUT_FOR_SECTIONS = {
    "tolerance too large": {"newton_tolerance": 1e308},
    "tolerance huge": {"newton_tolerance": HUGE},
    "save_every huge": {"save_every": HUGE},
    "save_to a number": {"save_to": 2},
    "save_to too long": {"save_to": "x" * 300},
    "save_to with a null": {"save_to": "a\0b"},
}


@pytest.mark.parametrize("name", EVERYWHERE | BUT_FOR_SECTIONS)
def test_every_way_to_run_refuses_what_it_cannot_use(name, capfd):
    for run in (run_one, run_many, run_section)[: 3 if name in EVERYWHERE else 2]:
        with pytest.raises(da.DalembertError) as caught:
            run(**(EVERYWHERE | BUT_FOR_SECTIONS)[name])
        assert_one_sentence(str(caught.value))
    assert capfd.readouterr() == ("", "")
