"""Circles look round, titles say what was changed, coordinates have their names, and the whole run is in sight."""

import pickle

import numpy as np
import pytest

import dalembert as da


def test_titles_know_the_constants_that_a_problem_was_made_with():
    problem = da.problems.double_pendulum(m2=3, l1=1.0)  # l1 is what it usually is
    run = da.simulate(problem, da.Rattle(), steps=5)
    for figure in (run.plot(), da.plot.overview(run, problem=problem)):
        assert figure._suptitle.get_text().startswith(f"{problem.title}   ·   m2 = 3.   ·   Rattle")
    changed = da.simulate(problem, da.Rattle(), steps=5, params={"m2": 4.0})
    assert "m2 = 4." in changed.plot()._suptitle.get_text()
    assert "=" not in da.simulate(da.problems.pendulum(), da.Rattle(), steps=5).plot()._suptitle.get_text().partition("h =")[0]


def test_a_problem_leaves_the_system_that_it_is_given_as_it_is():
    system = da.Hamiltonian(lambda q, p: p @ p / 2 + q @ q / 2, dim=2)
    both = [
        da.problems.Problem("oscillator", "an oscillator", "", system, q0=np.array([1.0, 0]), p0=np.zeros(2), labels=labels)
        for labels in (("x", "y"), ("u", "w"))
    ]
    assert system.coordinate_names == () and system.title == ""
    names = [da.simulate(problem, da.Rattle(), steps=3).names["y"] for problem in both]
    assert names == [("x", "y"), ("u", "w")]
    assert pickle.loads(pickle.dumps(both[0].system)).names["y"] == ("x", "y")


def test_phase_portraits_are_those_of_coordinates_that_move():
    system = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1] ** 2 / 2 + q[2] ** 2, dim=4)
    run = da.simulate(system, da.Rattle(), q0=[3.0, 1.0, 1e-3, 2.0], p0=[0, 0, 0, 0], h=0.1, steps=20)
    shown = [ax.get_xlabel() for ax in run.plot().axes if ax.get_title(loc="left") == "phase portrait"]
    assert shown == ["$q_{2}$", "$q_{3}$"]  # the first and the last stay where they are
    still = da.simulate(system, da.Rattle(), q0=[3.0, 0.0, 0.0, 2.0], p0=[0, 0, 0, 0], h=0.1, steps=20)
    assert len(still.plot().axes) == 4


def test_what_starts_in_a_point_is_shown_beyond_its_first_instant():
    run = da.simulate(da.problems.appell_hamel(), da.GaussLobattoSPARK(stages=2), steps=100)
    until = float(titled(run.plot(), "motion").get_title(loc="right").split("to $")[1].split("$")[0])
    assert until > 0.2 * run.t[-1]


def titled(figure, title):
    (found,) = [ax for ax in figure.axes if ax.get_title(loc="left") == title]
    return found


def pixels(ax, points):
    ax.figure.canvas.draw()
    return ax.transData.transform(points)


def test_the_path_of_a_pendulum_is_a_circle():
    pendulum = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2, holonomic=lambda q: [q @ q - 1])
    run = da.simulate(pendulum, da.Rattle(), q0=[1, 0], p0=[0, 0], h=0.05, steps=300)
    ax = titled(run.plot(), "path")
    seen = pixels(ax, np.vstack([[0.0, 0.0], run.q]))
    radii = np.linalg.norm(seen[1:] - seen[0], axis=1)
    assert np.ptp(radii) < 0.01 * radii[0]  # a hundredth of it is less than two pixels


def test_lengths_and_angles_of_different_sizes_share_no_scale():
    far = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1] ** 2 / 2, dim=2)
    run = da.simulate(far, da.Gauss(1), q0=[0, 0.01], p0=[5.0, 0], h=0.1, steps=300)
    assert titled(run.plot(), "path").get_aspect() == "auto"


def test_titles_say_what_was_changed():
    problem = da.problems.double_pendulum()
    changed = da.simulate(problem, da.Rattle(), params={"m2": 3.0}, steps=20)
    assert "m2 = 3" in da.plot.overview(changed, problem=problem).get_suptitle()
    assert "m2" not in da.plot.overview(da.simulate(problem, da.Rattle(), steps=20), problem=problem).get_suptitle()
    from dalembert.cli._models import model

    heavier = model("double_pendulum", {"m1": 4.0}).problem
    assert "m1 = 4" in da.plot.overview(da.simulate(heavier, da.Rattle(), steps=20), problem=heavier).get_suptitle()


def test_coordinates_of_the_catalogue_have_their_names_without_the_problem():
    run = da.simulate(da.problems.double_pendulum(), da.Rattle(), steps=20)
    labels = [ax.get_xlabel() for ax in run.plot().axes if ax.get_title(loc="left") == "phase portrait"]
    assert labels == ["$x_{1}$", "$z_{2}$"]


def test_the_motion_shows_the_path_of_the_whole_run():
    """A mass on a spinning rod: its end is round in no time, but the slow motion is what there is to see."""
    run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), steps=1000)
    ax = titled(run.plot(), "motion")
    drawn = np.vstack([np.column_stack(line.get_data()) for line in ax.lines if len(line.get_xdata()) > 500])
    for k in (2, 3):
        assert drawn[:, k - 2].min() <= run.q[:, k].min() + 1e-9 and drawn[:, k - 2].max() >= run.q[:, k].max() - 1e-9
    assert ax.get_title(loc="right").endswith("of $120$")


def test_fast_parts_do_not_cut_the_motion_short():
    """A disc of diameter 2 that travels with speed 0.1 and spins 500 times faster: the snapshots show 3 units of its way."""
    disc = da.Hamiltonian(lambda p: p @ p / 2, dim=2)
    run = da.simulate(disc, da.Gauss(1), q0=[0, 0], p0=[0.1, 50.0], h=0.1, steps=1000)

    def drawing(q):
        turned = [np.cos(q[1]), np.sin(q[1])], [-np.sin(q[1]), np.cos(q[1])]
        return [*da.draw.disc([q[0], 0.0], 1.0, *turned), da.draw.trace([q[0], 0.0])]

    title = da.plot.configurations(run, draw=drawing).axes[0].get_title(loc="right")
    last = float(title.split(" of ")[0].split(" to ")[1].strip("$"))
    assert last == pytest.approx(30.0, abs=0.5)


@pytest.mark.parametrize("axis", ["member", None])
def test_tables_have_the_names_of_coordinates(axis):
    pytest.importorskip("pandas")
    pytest.importorskip("xarray")
    problem = da.problems.double_pendulum()
    if axis:
        runs = da.simulate_many(problem, da.Rattle(), params={"g": [1.0, 2.0, 3.0]}, steps=20)
    else:
        runs = da.simulate(problem, da.Rattle(), steps=20)
    table, data = runs.to_dataframe(), runs.to_xarray()
    assert list(data.coordinate.values) == list(problem.labels) == list(table["p"].columns)
    np.testing.assert_array_equal(data.q.sel(coordinate="x2").values, runs.q[..., 2])
    np.testing.assert_array_equal(table["q", "x2"].to_numpy(), runs.q[..., 2].ravel())
    np.testing.assert_array_equal(table["energy"].to_numpy().ravel(), runs.energy.ravel())
    np.testing.assert_array_equal(data.residual_g.values, runs.residuals["g"])
    if axis:
        assert table.index.names == ["member", "time"] and data.sizes["member"] == 3
        np.testing.assert_array_equal(data.parameter_g.values, [1.0, 2.0, 3.0])
        np.testing.assert_array_equal(table.loc[2]["v"]["z1"], runs.v[2, :, 1])


def test_tables_of_systems_of_index_two_and_without_momenta():
    pytest.importorskip("pandas")
    problem = da.problems.index_two_growth()
    run = da.simulate(problem, da.SRK("gauss"))
    assert list(run.to_dataframe()["y"].columns) == ["y1", "y2"]
    moving = da.simulate(da.problems.mass_on_surface(), da.SymplecticEuler(), steps=10)
    np.testing.assert_array_equal(moving.to_dataframe()["z"].to_numpy(), moving.z)


def test_a_state_is_shown_in_a_line():
    chain = da.problems.chain(links=40)
    state = da.consistent(chain.system, q0=chain.q0, p0=chain.p0 if chain.p0 is not None else np.zeros(80))
    assert repr(state).startswith("<State at t = 0: q = [") and len(repr(state)) < 250 and "\n" not in repr(state)
