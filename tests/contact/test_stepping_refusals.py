"""What time stepping does not do is refused by name, and what its runs have is kept when they are saved."""

import numpy as np
import pytest

import dalembert as da

METHODS = [da.MoreauJean(), da.NonsmoothRattle()]
both = pytest.mark.parametrize("method", METHODS, ids=["MoreauJean", "NonsmoothRattle"])
G = 9.81


def test_what_time_stepping_cannot_do_is_refused():
    ball = da.Lagrangian(lambda q, v: v @ v / 2, 2, unilateral=lambda q: q[1], friction=0.3)
    start = {"q0": [0, 1], "v0": [0, 0], "steps": 2}
    with pytest.raises(da.InputError, match="forwards"):
        da.simulate(ball, da.MoreauJean(), h=-0.1, **start)
    with pytest.raises(da.InputError, match="theta"):
        da.MoreauJean(theta=0.2)
    with pytest.raises(da.InputError, match="painleve"):
        da.NonsmoothRattle(painleve="ignore")
    with pytest.raises(da.UnsupportedSystem, match="no unilateral constraints"):
        da.simulate(da.problems.pendulum(), da.NonsmoothRattle())
    with pytest.raises(da.InputError, match="forwards"):
        da.simulate_many(ball, da.NonsmoothRattle(), q0=[[0, 1], [0, 2]], v0=[0, 0], h=-0.1, steps=2)
    with pytest.raises(da.DalembertError, match="dense output"):
        da.simulate(ball, da.NonsmoothRattle(), h=0.1, **start).at(0.15)


BALL = {"dim": 2, "unilateral": lambda q: q[1], "friction": 0.3, "force": lambda u: [u, 0.0], "params": {"u": 0.0}}


@pytest.mark.parametrize("spheres", [False, True], ids=["walls", "spheres"])
def test_what_a_run_by_time_stepping_does_not_have_is_refused_by_name(tmp_path, spheres):
    """Nothing is left on disk, nothing is ignored, and no force is made up."""
    ball = da.Lagrangian(lambda q, v: 0.1 * v @ v - 0.2 * G * q[1], **BALL)
    start = {"q0": [0, 0], "v0": [1, 0], "h": 0.01}
    if spheres:
        ball = da.Spheres([0.01], masses=[0.2], gravity=(0, -G), planes=[((0, 1), 0.0)], friction=0.3)
        start = {"q0": [0, 0.01, 0], "v0": [1, 0, 0], "h": 0.01}
    method, options = da.MoreauJean(), {**start, "steps": 4}
    with pytest.raises(da.UnsupportedSystem, match="whole steps only"):
        da.poincare(ball, method, **options, section=lambda q: q[0])
    with pytest.raises(da.InputError, match="one by one; leave simd= out"):
        da.simulate_many(ball, method, **options | {"q0": [start["q0"]] * 2}, simd=True)
    for more in ({}, {"save_to": tmp_path / "run.zarr"}):
        with pytest.raises(da.UnsupportedSystem, match="newton_tolerance"):
            da.simulate(ball, method, **options, newton_tolerance=1e-3, **more)
        with pytest.raises(da.UnsupportedSystem, match="multipliers of its stages"):
            da.simulate_many(ball, method, **options, stage_multipliers=True, **more)
    assert not list(tmp_path.iterdir())
    if not spheres:
        with pytest.raises(da.UnsupportedSystem, match="takes no controls"):
            da.simulate(ball, method, **options, controls={"u": np.ones(4)})
    run = da.simulate(ball, method, **options)
    with pytest.raises(da.DalembertError, match=r"run\.contacts\.normal"):
        run.contact_forces  # noqa: B018
    # what the message points to: mu m g and m g
    np.testing.assert_allclose(run.contacts.normal / (run.contacts.end - run.contacts.begin), 0.2 * G, rtol=1e-9)


@both
def test_time_stepping_has_no_derivatives(method):
    ball = da.Lagrangian(lambda q, v: 0.1 * v @ v - 0.2 * G * q[1], **BALL)
    start = {"q0": [0, 0], "v0": [1, 0]}
    run, wrt = {**start, "h": 0.01, "steps": 2}, {"wrt": "u"}
    calls = {
        "gradient": lambda: da.gradient(lambda q: q[0], ball, method, **wrt, **run),
        "sensitivities": lambda: da.sensitivities(ball, method, **wrt, **run),
        "lyapunov": lambda: da.lyapunov(ball, method, **run),
        "fit": lambda: da.fit(ball, method, t=[0.01], data=[[0.0, 0.0]], params="u", h=0.01, **start),
        "optimal": lambda: da.OptimalControl(ball, method, controls="u", cost=lambda u: u**2, h=0.01, steps=2).solve(**start),
    }
    for call in calls.values():
        with pytest.raises(da.UnsupportedSystem, match="no derivatives of its steps"):
            call()
    with pytest.raises(da.UnsupportedSystem, match="single steps"):
        da.verify.step(ball, method, h=0.01, **start)


def test_a_bridge_refuses_time_stepping():
    torch = pytest.importorskip("torch")
    ball = da.Lagrangian(lambda q, v: 0.1 * v @ v - 0.2 * G * q[1], **BALL)
    states = da.to_torch(ball, da.MoreauJean(), wrt="u", q0=[0, 0], v0=[1, 0], h=0.01, steps=2)
    with pytest.raises(da.UnsupportedSystem, match="no derivatives of its steps"):
        states(torch.tensor(0.0, dtype=torch.float64))


def test_saved_runs_keep_impulses_slip_and_controls(tmp_path):
    ball = da.Lagrangian(lambda q, v: 0.1 * v @ v - 0.2 * G * q[1], **BALL)
    spheres = da.Spheres([0.01] * 2, masses=[0.2] * 2, gravity=(0, -G), planes=[((0, 1), 0.0)], friction=0.3)
    walled = da.simulate(ball, da.NonsmoothRattle(), q0=[0, 0], v0=[1, 0], h=0.01, steps=4)
    heap = da.simulate(spheres, da.MoreauJean(), q0=[0, 0.01, 0, 0.02, 0.01, 0], v0=[1, 0, 0, -1, 0, 0], h=0.001, steps=4)
    for run, columns in ((walled, ("normal", "friction", "slip")), (heap, ("normal", "friction", "other"))):
        again = da.load(run.save(tmp_path / "run.npz"))
        assert len(again.contacts) and type(again.contacts) is type(run.contacts)
        np.testing.assert_array_equal(again.q, run.q)
        for name in ("which", "begin", "end", "slides", *columns):
            np.testing.assert_array_equal(getattr(again.contacts, name), getattr(run.contacts, name))
    free = da.Lagrangian(lambda q, v: 0.1 * v @ v, 2, force=lambda u: [u, 0.0], params={"u": 0.0})
    run = da.simulate(free, da.Rattle(), q0=[0, 0], v0=[0, 0], h=0.1, steps=4, controls={"u": [1.0, 2.0]})
    again = da.load(run.save(tmp_path / "controlled.npz"))
    np.testing.assert_array_equal(again.controls.values, [[1.0], [2.0]])
    assert again.controls.hold == 2


@pytest.mark.parametrize("method", [*METHODS, da.CVA()], ids=["MoreauJean", "NonsmoothRattle", "CVA"])
def test_coefficients_that_are_none_stop_a_run(method):
    """Functions and parameters may give any number, also later on; what has no meaning is named instead of computed."""
    block = da.Lagrangian(
        lambda q, v: 0.1 * v @ v - 0.2 * G * q[1], 2, unilateral=lambda q: q[1],
        friction=lambda q, mu, slope: mu - slope * q[0], restitution=lambda e: e, params={"mu": 0.3, "e": 0.5, "slope": 0.0},
    )  # fmt: skip
    slides = {"q0": [0, 0], "v0": [1, 0], "h": 0.01, "steps": 40}
    assert da.simulate(block, method, **slides).status == "done"
    with pytest.raises(da.StepFailed, match=r"coefficient of friction"):
        da.simulate(block, method, **slides, params={"mu": -0.3})
    for e in (-0.5, 1.5):
        with pytest.raises(da.StepFailed, match=r"restitution .* between 0 and 1"):
            da.simulate(block, method, **slides | {"q0": [0, 0.1]}, params={"e": e})
    if method in METHODS:  # mu < 0 from x = 0.1 on, which it reaches with speed to spare
        with pytest.raises(da.StepFailed, match="coefficient of friction") as stopped:
            da.simulate(block, method, **slides, params={"slope": 3.0})
        assert 0.09 < stopped.value.run.q[-1, 0] < 0.11
