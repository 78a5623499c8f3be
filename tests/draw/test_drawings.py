"""Drawings of mechanisms: parts, sampling, and pictures that obey the constraints they show."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dalembert as da
from dalembert.draw import body, disc, mass, picture, rod, spring, trace, track, wall
from dalembert.draw._scene import project, sample, with_impacts

ZERO = np.zeros(2)


def parts_of(problem, t, q):
    return picture(problem.drawing, t, np.asarray(q), np.zeros_like(q), problem.system.params)


def velocity(problem, q, v, point, t=0.0, step=1e-6):
    """How fast a point of the picture moves when the state moves with v: a central difference."""
    q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
    ends = [point(parts_of(problem, t + sign * step, q + sign * step * v)) for sign in (1, -1)]
    return (ends[0] - ends[1]) / (2 * step)


# -- parts ---------------------------------------------------------------------------------------------------------------


def test_a_drawing_receives_what_it_names_and_nothing_else():
    parts = picture(
        lambda t, q, p, length: [rod(q, q + length * p), mass([t, t])], 3.0, ZERO + 1, ZERO + 2, {"length": 5.0, "g": 1.0}
    )
    np.testing.assert_array_equal(parts[0].points, [[1, 1], [11, 11]])
    np.testing.assert_array_equal(parts[1].points, [[3, 3]])


@pytest.mark.parametrize(
    ("drawing", "message"),
    [
        (lambda q, length: [mass(q)], "it asks for length"),
        (lambda q: mass(q), "returns a list of parts"),
        (lambda q: [np.zeros((2, 2))], "returns a list of parts"),
        (lambda q: [mass(q), mass([0, 0, 0])], "all in the plane or all in space"),
        (lambda q: [rod(q)], "at least 2 points"),
        (lambda q: [mass(q[0])], "at least 1 points of two or three coordinates"),
        (lambda q: [mass(q), [np.zeros((2, 2))]], "returns a list of parts"),
        (lambda q: [mass(q, color="bleu")], "a name such as .*; got 'bleu'"),
        (lambda q: [mass(q, color="none")], "got 'none'"),
        (lambda q: [mass(q, color="#12345")], "got '#12345'"),
        (lambda q: [mass(q, color=[1, 0, 0])], r"got \[1, 0, 0\]"),
    ],
)
def test_a_drawing_that_cannot_be_drawn_is_refused_with_the_reason(drawing, message):
    with pytest.raises(da.DalembertError, match=message):
        picture(drawing, 0.0, ZERO, ZERO, {})


def test_lists_of_parts_may_stand_in_the_list_of_a_drawing():
    parts = picture(lambda q: [rod([0, 0], q), disc(q, 0.1), ([[mass(q)]],)], 0.0, ZERO + 1, ZERO, {})
    assert [part.kind for part in parts] == ["rod", "body", "line", "mass", "trace"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [("#0072B2", "#0072b2"), ("#fa0", "#ffaa00"), ("SteelBlue", "#4682b4"), ("k", "#000000"), ("C1", "#ff7f0e")],
)
def test_colours_are_kept_in_one_form(given, kept):
    assert mass([0, 0], color=given).color == kept


def test_the_last_point_is_followed_unless_a_trace_says_otherwise():
    last = picture(lambda q: [mass(q), rod([0, 0], [1, 2])], 0, ZERO, ZERO, {})[-1]
    assert last.kind == "trace" and last.points.tolist() == [[1, 2]]
    stated = picture(lambda q: [trace([7, 7]), mass(q)], 0, ZERO, ZERO, {})
    assert [part.kind for part in stated] == ["trace", "mass"]


def test_springs_begin_and_end_where_they_are_fixed_also_without_length():
    for first, last in (([0, 0], [3, 4]), ([0, 0, 0], [0, 0, -2]), ([1, 1], [1, 1])):
        coil = spring(first, last).points
        np.testing.assert_allclose(coil[[0, -1]], [first, last], atol=1e-15)
        along = np.subtract(last, first) / max(np.linalg.norm(np.subtract(last, first)), 1e-300)
        across = (coil - first) - np.outer((coil - first) @ along, along)
        assert np.isclose(np.linalg.norm(across, axis=1).max(), 0.06)


def test_the_hatches_of_a_wall_stand_on_its_right():
    hatches = wall([0, 0], [0, 5]).points  # upwards: its right is x > 0
    assert hatches[:, 0].min() == 0 and hatches[:, 0].max() > 0


# -- scenes --------------------------------------------------------------------------------------------------------------


def oscillator(steps=40, h=0.1):
    system = da.Hamiltonian(lambda q, p: (p @ p + q @ q) / 2, dim=2)
    return da.simulate(system, da.Gauss(stages=2), q0=[1, 0], p0=[0, 1], h=h, steps=steps)


def test_stored_states_are_drawn_as_they_are_and_others_on_the_curve_between_them():
    run = oscillator()
    times = np.array([0.0, 0.35, run.t[7], run.t[-1]])
    points = sample(run, lambda q: [mass(q)], times).parts[0].points[:, 0]
    np.testing.assert_array_equal(points[[0, 2, 3]], run.q[[0, 7, -1]])
    np.testing.assert_allclose(points[1], [np.cos(0.35), np.sin(0.35)], atol=2e-6)
    assert np.max(np.abs((run.q[3] + run.q[4]) / 2 - points[1])) > 1e-3  # the chord


@pytest.mark.parametrize("method", [da.LobattoIIIAB(stages=3), da.compose(da.Rattle(), 4)])
def test_paths_of_coarse_steps_are_round(method):
    """An ellipse of 12 steps: with dense output or, where a method has none, by Hermite's cubics, nearer than its polygon."""
    system = da.Hamiltonian(lambda q, p: (p @ p + q @ q) / 2, dim=2)
    run = da.simulate(system, method, q0=[1, 0], p0=[0, 1], h=0.4, steps=12)
    scene = sample(run, lambda q: [trace(q)], run.t, smooth=True)
    path = scene.parts[0].path
    assert scene.finer > 3 and len(path) == 12 * scene.finer + 1
    np.testing.assert_array_equal(path[:: scene.finer], run.q)
    a, b = np.linalg.lstsq(run.q**2, np.ones(len(run.q)), rcond=None)[0]  # the ellipse through the states
    assert np.max(np.abs(a * path[:, 0] ** 2 + b * path[:, 1] ** 2 - 1)) < 2e-3
    assert abs(np.min(np.linalg.norm((run.q[1:] + run.q[:-1]) / 2, axis=1)) - 1) > 0.015  # the polygon


def test_what_stands_still_is_kept_once():
    scene = sample(oscillator(), lambda q: [track([0, 0], [1, 1]), mass(q)], np.linspace(0, 4, 30))
    assert [len(part.points) for part in scene.parts] == [1, 30, 30]


def test_a_drawing_whose_parts_change_is_refused():
    with pytest.raises(da.ModelError, match="same parts"):
        sample(oscillator(), lambda t, q: [mass(q)] * (1 + (t > 1)), np.linspace(0, 4, 30))


def test_parameters_of_the_run_reach_its_drawing():
    problem = da.problems.double_pendulum_in_angles()
    run = da.simulate(problem, da.LobattoIIIAB(stages=2), params={"l2": 3.0}, steps=5)
    rods = sample(run, run.drawing, run.t).parts[0].points
    np.testing.assert_allclose(np.linalg.norm(np.diff(rods, axis=1), axis=2), np.tile([1.0, 3.0], (6, 1)), atol=1e-14)


def test_a_drawing_may_ask_for_velocities(tmp_path):
    system = da.Lagrangian(lambda q, v, m: m * (v @ v) / 2 - (q @ q) / 2, dim=2, params={"m": 4.0})
    run = da.simulate(system, da.LobattoIIIC(3), q0=[1, 0], v0=[0, 1], h=0.1, steps=20)  # it has no dense output
    arrow = lambda q, v: [rod(q, q + v)]  # noqa: E731
    rods = sample(run, arrow, np.array([0.0, 0.25, 2.0])).parts[0].points
    tips = rods[:, 1] - rods[:, 0]
    np.testing.assert_allclose(tips[[0, 2]], run.p[[0, -1]] / 4.0, atol=1e-15)
    np.testing.assert_allclose(tips[1], (run.p[2] + run.p[3]) / 8.0, atol=1e-15)
    run.save(tmp_path / "run.npz")
    with pytest.raises(da.InputError, match="loaded without its model"):
        sample(da.Trajectory.load(tmp_path / "run.npz"), arrow, run.t)
    growth = da.problems.index_two_growth()
    with pytest.raises(da.ModelError, match="only mechanical systems have velocities"):
        sample(da.simulate(growth, da.SRK("gauss", 2), steps=3), lambda v: [mass(v)], np.zeros(1))


def test_a_view_keeps_lengths_and_depth_together():
    points = np.random.default_rng(1).normal(size=(20, 3))
    seen, near = project(points, azimuth=0.7, elevation=-0.4)  # a rotation
    np.testing.assert_allclose((seen**2).sum(axis=1) + near**2, (points**2).sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(project(np.array([0.0, 0, 1]), 0.3, np.pi / 2)[1], 1.0)  # from above, up is near


def test_the_picture_follows_what_travels_far_and_only_that():
    car, pendulum = (
        da.simulate(problem, da.GaussLobattoSPARK(stages=2), t1=40.0).animate(speed=2).scene
        for problem in (da.problems.car_with_trailer(), da.problems.pendulum())
    )
    assert car.follows and not pendulum.follows
    assert len(pendulum.centres) == 1 and len(car.centres) == len(car.t)
    for scene in (car, pendulum):  # nothing of the mechanism is outside of the picture
        for part in scene.parts:
            if part.kind != "trace":
                assert np.all(np.abs(part.points - scene.centres[:, None]) <= scene.half + 1e-12)


# -- pictures obey the constraints ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rolling_disk", "vertical_disk"])
def test_the_point_of_a_drawn_disk_that_touches_the_ground_is_at_rest(name):
    problem = getattr(da.problems, name)()
    R, phi, rolling = problem.system.params["R"], 0.8, 1.7
    along = [R * rolling * np.cos(phi), R * rolling * np.sin(phi)]
    if name == "rolling_disk":
        q, v = [0.3, -0.2, 0.4, phi, np.pi], [*along, 0.5, -0.7, rolling]
    else:
        q, v = [0.3, -0.2, phi, np.pi], [*along, -0.7, rolling]

    def mark(parts):
        return next(part.points[1] for part in parts if part.kind == "line")

    np.testing.assert_allclose(mark(parts_of(problem, 0.0, q)), [0.3, -0.2, 0.0], atol=1e-14)
    np.testing.assert_allclose(velocity(problem, q, v, mark), 0.0, atol=1e-8)


@pytest.mark.parametrize("name", ["ball_on_turntable", "ball_in_bowl"])
def test_the_point_of_a_drawn_ball_that_touches_its_support_moves_with_it(name):
    problem = getattr(da.problems, name)()
    q, v = problem.q0, problem.v0
    x = q[:2] if name == "ball_on_turntable" else q[:3]
    contact = np.array([0.0, 0.0, -1.0]) if len(x) == 2 else x / np.linalg.norm(x)
    middle, points = centre(parts_of(problem, 0.0, q)), marks(parts_of(problem, 0.0, q))
    v_c, rates = velocity(problem, q, v, centre), velocity(problem, q, v, marks)
    W = np.linalg.lstsq(points - middle, rates - v_c, rcond=None)[0].T  # the rates are v_c + W (point - centre), ...
    np.testing.assert_allclose(W + W.T, 0.0, atol=1e-7)  # ... those of a rigid body
    support = [0.0, 0.0, 0.0] if len(x) == 3 else problem.system.params["Omega"] * np.array([-x[1], x[0], 0.0])
    np.testing.assert_allclose(v_c + W @ (problem.system.params["r"] * contact), support, atol=1e-7)


def marks(parts):
    return np.vstack([part.points for part in parts if part.kind == "line"])


def centre(parts):
    return next(part.points[0] for part in parts if part.kind == "mass" and part.radius)


def test_the_drawn_belt_runs_equally_fast_over_both_pulleys():
    problem = da.problems.continuously_variable_transmission(shift=0.7)
    run = da.simulate(problem, da.GaussLobattoSPARK(stages=2), steps=100)
    for row in (0, 30, 77):
        pulleys = [part.points for part in parts_of(problem, 0.0, run.q[row]) if part.kind == "body"]
        radii = [np.linalg.norm(rim - rim.mean(axis=0), axis=1) for rim in pulleys]
        assert all(np.ptp(radius) < 1e-12 for radius in radii)
        speeds = [radius[0] * rate for radius, rate in zip(radii, run.v[row, :2], strict=True)]
        assert speeds[0] == pytest.approx(speeds[1], rel=1e-12) and abs(speeds[0]) > 1e-3
    belt = next(part.points for part in parts_of(problem, 0.0, run.q[30]) if part.kind == "line" and len(part.points) > 20)
    corners = np.diff(belt, axis=0) / np.linalg.norm(np.diff(belt, axis=0), axis=1)[:, None]
    assert np.min(np.sum(corners[1:] * corners[:-1], axis=1)) > 0.98  # it leaves the pulleys along their tangents


@pytest.mark.parametrize(("name", "down"), [("skate", [1, 0, 1, 0]), ("knife_edge", [1, 0, 0])])
def test_down_the_slope_is_down_in_the_picture(name, down):
    problem = getattr(da.problems, name)()
    before, after = (parts_of(problem, 0.0, problem.q0 + way * np.array(down, dtype=float)) for way in (0.0, 2.0))
    for first, last in zip(before, after, strict=True):
        np.testing.assert_allclose(last.points - first.points, np.tile([0.0, -2.0], (len(first.points), 1)), atol=1e-15)


def test_the_brick_of_the_rigid_body_has_its_inertia():
    problem = da.problems.rigid_body(I1=0.7, I2=0.8, I3=1.1)
    faces = [part.points for part in parts_of(problem, 0.0, problem.q0) if part.kind == "body"]
    edges = np.ptp(np.vstack(faces), axis=0)
    moments = np.array([edges[1] ** 2 + edges[2] ** 2, edges[0] ** 2 + edges[2] ** 2, edges[0] ** 2 + edges[1] ** 2])
    np.testing.assert_allclose(moments / moments[0], np.array([0.7, 0.8, 1.1]) / 0.7, rtol=1e-12)


def test_a_disc_turns_with_its_mark():
    rim, mark = disc([1, 2], 0.5, across=[0, 1], up=[-1, 0])
    np.testing.assert_allclose(mark.points, [[1, 2], [1, 2.5]])
    np.testing.assert_allclose(np.linalg.norm(rim.points - [1, 2], axis=1), 0.5)
    assert body(*rim.points).kind == "body"


# -- runs know their drawing ---------------------------------------------------------------------------------------------


def test_runs_of_a_problem_bring_its_drawing_also_those_that_failed(tmp_path):
    problem = da.problems.mass_on_surface()
    run = da.simulate(problem, da.SymplecticEuler(), steps=200, on_failure="return")
    assert run.status == "failed" and run.drawing is problem.drawing
    with pytest.raises(da.StepFailed) as caught:
        da.simulate(problem, da.SymplecticEuler(), steps=200)
    assert caught.value.run.drawing is problem.drawing


def test_runs_on_disk_and_members_of_ensembles_bring_it_too(tmp_path):
    problem = da.problems.pendulum()
    stored = da.simulate(problem, da.Rattle(), steps=10, save_to=tmp_path / "run.zarr")
    again = da.resume(tmp_path / "run.zarr", problem, da.Rattle(), steps=20)
    members = da.simulate_many(problem, da.Rattle(), steps=10, params={"g": [1.0, 2.0]})
    for run in (stored, again, members[1]):
        run.animate(tmp_path / "run.html")
        assert (tmp_path / "run.html").stat().st_size > 1000


def test_a_run_that_does_not_say_how_it_is_drawn_names_the_fix(tmp_path):
    run = oscillator()
    with pytest.raises(da.InputError, match="give draw="):
        run.animate(tmp_path / "x.gif")
    problem = da.problems.pendulum()
    stored = da.simulate(problem, da.Rattle(), steps=40).save(tmp_path / "run.npz")
    with pytest.raises(da.InputError, match="give draw="):
        da.load(stored).animate()
    assert da.load(stored).animate(draw=problem.drawing).scene.dim == 2
    assert dataclasses.replace(run, drawing=lambda q: [mass(q)]).animate().duration > 4


def test_paths_have_their_corners_where_impacts_are():
    problem = da.problems.circular_billiard()
    run = da.simulate(problem, da.CVA(), h=0.3, steps=40)
    times = with_impacts(run, run.t)
    assert len(times) == len(run.t) + len(run.impacts)
    trace = sample(run, problem.drawing, times).parts[-1]
    distance = np.linalg.norm(trace.points[:, 0], axis=1)
    assert np.sum(np.abs(distance - 1.0) < 1e-12) == len(run.impacts)  # each impact is on the wall
    assert np.all(
        np.linalg.norm(sample(run, problem.drawing, np.linspace(0, 12, 997)).parts[-1].points[:, 0], axis=1) < 1 + 1e-12
    )
