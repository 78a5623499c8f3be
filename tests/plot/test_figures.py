"""Figures show what is in the data: checked through the artists that were drawn and the files that were written."""

import dataclasses
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import dalembert as da
from dalembert import plot
from dalembert.draw._style import CYCLE
from dalembert.plot._thin import envelope, spread
from dalembert.runs._default_method import default_method

MILLION = 1_000_000


def recorded(t, q, p, energy, g=None, g_dot=None, lam=None):
    """A run as `da.load` returns it, with given observations."""
    n = len(t)
    empty = np.zeros((n, 0))
    observed = {
        "energy": np.reshape(energy, (n, 1)),
        "v": p,
        "lam": empty if lam is None else lam,
        "psi": empty,
        "k": empty,
        "g": empty if g is None else g,
        "g_dot": empty if g_dot is None else g_dot,
    }
    blocks = (("q", q.shape[1]), ("p", p.shape[1]))
    return da.Trajectory(t, np.hstack([q, p]), blocks, t[1] - t[0], "da.Recorded()", {}, _observed=observed)


def circle(n, per_turn=50.0, **observed):
    t = np.arange(n) * 0.1
    angle = 2 * np.pi * np.arange(n) / per_turn
    return recorded(t, np.cos(angle)[:, None], np.sin(angle)[:, None], observed.pop("energy", np.zeros(n)), **observed)


@pytest.fixture(scope="module")
def pendulum_run():
    problem = da.problems.double_pendulum()
    return problem, da.simulate(problem, da.LobattoIIIAB(stages=3), steps=400)


def in_a_fresh_process(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- no global state -----------------------------------------------------------------------------------------------------


def test_importing_the_library_and_its_plots_does_not_load_matplotlib():
    in_a_fresh_process("import sys, dalembert, dalembert.plot, dalembert.experiments; assert 'matplotlib' not in sys.modules")


def test_drawing_loads_no_pyplot_and_needs_no_display(tmp_path):
    os.environ.pop("DISPLAY", None)
    in_a_fresh_process(
        "import sys, dalembert as da\n"
        "run = da.simulate(da.problems.pendulum(), da.Rattle(), steps=20)\n"
        f"run.plot({str(tmp_path / 'x.png')!r})\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    assert (tmp_path / "x.png").stat().st_size > 1000


def test_settings_of_matplotlib_are_left_as_they_were(pendulum_run):
    import matplotlib

    before = dict(matplotlib.rcParams)
    plot.overview(pendulum_run[1])
    assert dict(matplotlib.rcParams) == before


# -- thinning ------------------------------------------------------------------------------------------------------------


def test_a_single_spike_among_a_million_points_is_drawn():
    energy = 1e-9 * np.sin(np.arange(MILLION))
    energy[0], energy[654_321] = 0.0, 3e-3
    figure = plot.energy_error(circle(MILLION, energy=energy), scale="linear")
    highest = max(np.nanmax(line.get_ydata()) for line in figure.axes[0].lines)
    assert highest == pytest.approx(3e-3, rel=1e-6)
    assert sum(len(line.get_xdata()) for line in figure.axes[0].lines) < 10_000


def test_thinning_has_no_rhythm_that_hides_an_orbit():
    # 1,000,000 points, 20,000 shown: a stride of 50 would show an orbit of 50 steps as one dot.
    figure = plot.phase_portrait(circle(MILLION, per_turn=50.0))
    x, y = figure.axes[0].lines[-1].get_data()
    assert len(x) == 20_000
    assert len(np.unique(np.round(np.column_stack([x, y]), 6), axis=0)) == 50


def test_thinned_points_are_points_of_the_run_in_order():
    rows = spread(MILLION)
    assert rows[0] >= 0 and rows[-1] < MILLION and np.all(np.diff(rows) > 0)
    np.testing.assert_array_equal(spread(7), np.arange(7))


@pytest.mark.parametrize("size", [1, 2, 3, 499, 500, 501, 12_345])
def test_an_envelope_bounds_its_series_and_is_reached(size):
    rng = np.random.default_rng(size)
    y = rng.normal(size=size)
    t, low, high = envelope(np.arange(size, dtype=float), y)
    assert low.min() == y.min() and high.max() == y.max()
    assert np.all(low <= high) and len(t) <= 500 and np.all(np.diff(t) > 0)


def test_a_million_points_take_seconds_and_small_files(tmp_path):
    run = circle(MILLION, energy=np.sin(np.arange(MILLION)), g=np.full((MILLION, 1), 1e-16), g_dot=np.zeros((MILLION, 1)))
    began = time.perf_counter()
    for kind in ("png", "svg"):
        plot.overview(run, tmp_path / f"run.{kind}")
        assert (tmp_path / f"run.{kind}").stat().st_size < 1_000_000
    assert time.perf_counter() - began < 30


# -- what the panels say -------------------------------------------------------------------------------------------------


def test_the_energy_panel_states_the_largest_error_and_the_slope():
    t = np.arange(1000) * 0.1
    run = circle(1000, energy=5.0 + 2e-4 * t)
    ax = plot.energy_error(run).axes[0]
    assert ax.get_title(loc="right") == r"max $0.02$,  slope $2.0\times 10^{-4}$"
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), 2e-4 * t, atol=1e-15)


def test_the_energy_axis_is_logarithmic_only_when_the_error_spans_decades():
    grown = circle(1000, energy=1e-15 * 10 ** (np.arange(1000) / 80))
    wavy = circle(1000, energy=1e-5 * np.sin(np.arange(1000) * 0.1))
    assert plot.energy_error(grown).axes[0].get_yscale() == "log"
    assert plot.energy_error(wavy).axes[0].get_yscale() == "linear"
    assert plot.energy_error(wavy, scale="log").axes[0].get_yscale() == "log"
    with pytest.raises(da.InputError, match="scale"):
        plot.energy_error(wavy, scale="square")


def test_residuals_are_the_largest_over_all_constraints_and_zeros_stay_on_the_axis():
    g = np.zeros((50, 3))
    g[20, 1], g_dot = -7e-12, np.full((50, 3), 2e-16)
    ax = plot.residuals(circle(50, g=g, g_dot=g_dot)).axes[0]
    drawn_g, drawn_g_dot = (line.get_ydata() for line in ax.lines[:2])
    assert drawn_g.max() == 7e-12 and np.all(drawn_g > 0)
    np.testing.assert_array_equal(drawn_g_dot, 2e-16)
    low, high = ax.get_ylim()
    assert ax.get_yscale() == "log" and low <= drawn_g.min() and high > 7e-12


def test_systems_without_constraints_have_no_residual_panel():
    ball = da.Hamiltonian(lambda q, p: p @ p / 2 + q[0] ** 2, dim=1)
    run = da.simulate(ball, da.LobattoIIIAB(stages=3), q0=[1.0], p0=[0.0], h=0.1, steps=50)
    assert [ax.get_title(loc="left") for ax in run.plot().axes] == ["motion", "phase portrait", "energy"]
    with pytest.raises(da.InputError, match="no constraints"):
        plot.multipliers(run)


def test_phase_portraits_show_the_chosen_coordinate(pendulum_run):
    problem, run = pendulum_run
    figure = plot.overview(run, problem=problem, coordinates=["z1", 2])
    shown = {ax.get_xlabel(): ax.lines[-1].get_data() for ax in figure.axes if ax.get_title(loc="left") == "phase portrait"}
    assert list(shown) == ["$z_{1}$", "$x_{2}$"]
    np.testing.assert_array_equal(shown["$z_{1}$"], (run.q[:, 1], run.p[:, 1]))
    np.testing.assert_array_equal(shown["$x_{2}$"], (run.q[:, 2], run.p[:, 2]))


@pytest.mark.parametrize(("coordinate", "message"), [(4, "has 4"), (-5, "has 4"), ("w", "names: x1, z1, x2, z2")])
def test_a_coordinate_that_does_not_exist_is_refused(pendulum_run, coordinate, message):
    problem, run = pendulum_run
    with pytest.raises(da.InputError, match=message):
        plot.phase_portrait(run, coordinate, problem=problem)


def test_the_mechanism_is_drawn_to_scale(pendulum_run):
    problem, run = pendulum_run
    ax = plot.configurations(run, problem, count=4, window=(0.0, 12.0)).axes[0]
    path, *others = ax.lines
    rods = [line for line in others if len(line.get_xdata()) == 3]
    assert len(rods) == 4 and ax.get_aspect() == 1.0
    for rod, row in zip(rods, [0, 33, 67, 100], strict=True):
        points = np.column_stack(rod.get_data())
        np.testing.assert_allclose(points, [[0, 0], run.q[row, :2], run.q[row, 2:]], atol=1e-15)
        np.testing.assert_allclose(np.linalg.norm(np.diff(points, axis=0), axis=1), 1.0, atol=1e-12)
    drawn = np.column_stack(path.get_data())
    each = (len(drawn) - 1) // 100  # the path is smooth between the states, and goes through them
    np.testing.assert_allclose(drawn[::each], run.q[:101, 2:], rtol=0, atol=1e-12)


def test_spatial_mechanisms_are_drawn_in_space():
    system = da.Hamiltonian(lambda q, p: p @ p / 2 + q[2], dim=3, holonomic=lambda q: [np.sqrt(q @ q) - 1])
    problem = da.problems.Problem(
        "spherical", "spherical pendulum", "-", system, np.array([1.0, 0, 0]), 0.05, 100, p0=np.array([0, 0.8, 0]),
        drawing=lambda q: [da.draw.rod([0, 0, 0], q)], labels=("x", "y", "z"),
    )  # fmt: skip
    figure = plot.overview(da.simulate(problem, da.LobattoIIIAB(stages=3)), problem=problem)
    assert figure.axes[0].name == "3d"


ONE_OF_EACH_KIND = {
    "double_pendulum", "four_bar", "knife_edge", "skate", "ball_on_slope", "cart_pendulum_above_floor",
    "double_pendulum_at_wall", "pendulum_with_friction", "flyball_governor_in_angles", "index_two_growth", "pleiades",
}  # fmt: skip
"""What an overview consists of depends on the kind of the system; that all draw their mechanism: test_every_problem."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ONE_OF_EACH_KIND else pytest.mark.slow)
        for name in sorted(set(da.problems.__all__) - {"Problem"})
    ],
)
def test_every_problem_of_the_catalogue_can_be_drawn(name):
    problem = getattr(da.problems, name)()
    of_index_two = isinstance(problem.system, da.IndexTwoDAE)
    run = da.simulate(problem, default_method(problem.system), steps=50)
    figure = plot.overview(run, problem=problem)
    figure.draw_without_rendering()  # everything but the pixels, which take as long again
    beside = 2 if of_index_two else min(run.y.shape[1], 2)  # y and z against time, or phase portraits
    below = 1 if of_index_two else 1 + bool(problem.system.n_multipliers)  # the energy or the multipliers, and residuals
    assert len(figure.axes) == 1 + beside + below
    assert len(problem.labels) == run.y.shape[1]


# -- ODAEs ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def surface_run():
    problem = da.problems.mass_on_surface()
    return problem, da.simulate(problem, da.SymplecticEuler())


def titles(figure):
    return [ax.get_title(loc="left") for ax in figure.axes]


def test_an_odae_is_drawn_in_y_and_z(surface_run):
    problem, run = surface_run
    figure = plot.overview(run, problem=problem)
    assert titles(figure) == ["motion", "phase portrait", "phase portrait", "energy", "constraints"]
    first, last = figure.axes[1:3]
    assert (first.get_xlabel(), first.get_ylabel(), last.get_ylabel()) == ("$y_{1}$", "$z_{1}$", "$z_{2}$")
    np.testing.assert_array_equal(last.lines[-1].get_data(), (run.y[:, 1], run.z[:, 1]))
    np.testing.assert_allclose(figure.axes[3].lines[-1].get_ydata(), run.energy - run.energy[0])


def test_an_odae_without_an_energy_shows_its_multipliers(tmp_path):
    run = da.simulate(da.problems.nonlinear_multiplier(), da.SymplecticEuler())
    for drawn in (run, da.load(run.save(tmp_path / "run.npz"))):
        figure = drawn.plot()
        assert titles(figure) == ["path", "phase portrait", "phase portrait", "multipliers", "constraints"]
        assert figure.axes[1].get_xlabel() == "$y_{1}$"
        np.testing.assert_array_equal(figure.axes[3].lines[0].get_ydata(), run.lam[:, 0])
    with pytest.raises(da.InputError, match="energy"):
        plot.energy_error(run)


def test_an_odae_with_neither_energy_nor_constraints_shows_its_motion():
    decay = da.ODAE(v=lambda z: [z[0], z[0]], f=lambda z: -z, dim_y=2, dim_z=1)
    run = da.simulate(decay, da.SymplecticEuler(), y0=[0, 0], z0=[1], h=0.1, steps=10)
    assert titles(run.plot()) == ["path", "phase portrait"]
    with pytest.raises(da.InputError, match=r"y\[1\] has no z\[1\]"):
        plot.phase_portrait(run, 1)


# -- DAEs of index 2, nonholonomic multipliers ---------------------------------------------------------------------------


def test_a_dae_of_index_two_is_drawn_against_time(tmp_path):
    problem = da.problems.index_two_growth()
    run = da.simulate(problem, da.SRK("gauss", 3))
    right = problem.exact(run.t)
    for drawn in (run, da.load(run.save(tmp_path / "run.npz"))):
        figure = plot.overview(drawn, tmp_path / "run.png", problem=problem)
        assert titles(figure) == ["path", "solution", "algebraic variables", "constraints"]
        path, solution, algebraic, constraints = figure.axes
        assert (path.get_xlabel(), path.get_ylabel()) == ("$y_{1}$", "$y_{2}$")
        assert [line.get_label() for line in [*solution.lines, *algebraic.lines]] == ["$y_{1}$", "$y_{2}$", "$z_{1}$"]
        np.testing.assert_allclose([line.get_ydata() for line in solution.lines], right["y"].T, atol=1e-8)
        np.testing.assert_allclose(algebraic.lines[0].get_ydata(), right["z"][:, 0], atol=1e-7)
        assert constraints.lines[0].get_label() == "$|g|$" and constraints.lines[0].get_ydata().max() < 1e-14


def test_the_variables_of_a_dae_of_index_two_can_be_chosen():
    run = da.simulate(da.problems.index_two_growth(), da.SRK("gauss", 2))
    (line,) = plot.overview(run, coordinates=[1]).axes[1].lines
    assert line.get_label() == "$y_{2}$" and np.array_equal(line.get_ydata(), run.y[:, 1])
    assert titles(plot.overview(run, coordinates=[])) == ["path", "algebraic variables", "constraints"]
    with pytest.raises(da.InputError, match="the system has 2"):
        plot.overview(run, coordinates=[2])
    with pytest.raises(da.InputError, match="no momenta"):
        plot.phase_portrait(run)


def test_mechanics_as_a_dae_of_index_two_shows_its_energy_and_keeps_its_legend_apart():
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    sleigh = da.problems.chaplygin_sleigh()
    start = da.consistent(sleigh.system, q0=sleigh.q0, v0=sleigh.v0)
    run = da.simulate(da.IndexTwoDAE.of(sleigh), da.SRK("gauss", 2), y0=start.packed, h=0.05, steps=50)
    figure = run.plot()
    assert titles(figure) == ["path", "solution", "algebraic variables", "energy", "constraints"]
    canvas, solution = FigureCanvasAgg(figure), figure.axes[1]
    canvas.draw()
    legend = solution.get_legend()
    assert len(legend.get_texts()) == 6
    assert solution.get_window_extent().contains(*legend.get_window_extent(canvas.get_renderer()).max)
    assert solution.get_window_extent().contains(*legend.get_window_extent(canvas.get_renderer()).min)


def test_multipliers_are_those_of_all_constraints():
    """p' = (1, 0, -1) - (0, 0, 1) lam - (1, -1, 0) psi with z'' = 0 and x'' = y'': lam = -1 and psi = 1/2."""
    slide = da.Lagrangian(
        lambda q, v: v @ v / 2 + q[0] - q[2], dim=3, holonomic=lambda q: [q[2]], nonholonomic=lambda v: [v[0] - v[1]]
    )
    run = da.simulate(slide, da.GaussLobattoSPARK(2), q0=[0, 0, 0], v0=[1, 1, 0], h=0.1, steps=10)
    lam, psi = plot.multipliers(run).axes[0].lines
    assert (lam.get_label(), psi.get_label()) == (r"$\lambda_{1}$", r"$\psi_{1}$")
    np.testing.assert_allclose(lam.get_ydata(), -1.0, atol=1e-14)
    np.testing.assert_allclose(psi.get_ydata(), 0.5, atol=1e-14)
    (only,) = plot.multipliers(run, [1]).axes[0].lines
    assert only.get_label() == r"$\psi_{1}$"


def test_a_nonholonomic_odae_without_an_energy_shows_its_multipliers():
    rolling = da.ODAE(
        v=lambda z: z, f=lambda z, psi: np.array([1.0, 0.0]) - np.array([1.0, -1.0]) * psi[0], k=lambda z: [z[0] - z[1]],
        dim_y=2, dim_z=2,
    )  # fmt: skip
    run = da.simulate(rolling, da.GaussLobattoSPARK(1), y0=[0, 0], z0=[0, 0], h=0.1, steps=10)
    figure = run.plot()
    assert titles(figure) == ["path", "phase portrait", "phase portrait", "multipliers", "constraints"]
    np.testing.assert_allclose(figure.axes[3].lines[0].get_ydata(), 0.5, atol=1e-14)


def test_a_headline_fits_on_the_page(surface_run):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    problem, run = surface_run
    for figure in (plot.overview(run, problem=problem), plot.overview(run)):
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        headline = figure._suptitle
        assert headline.get_window_extent(canvas.get_renderer()).x1 <= figure.bbox.x1
        assert all(part in headline.get_text() for part in ("SymplecticEuler(", "h = 0.01", "100 steps"))


def test_a_run_that_does_not_say_how_it_is_drawn_is_refused_or_drawn_as_the_caller_says(pendulum_run):
    problem, drawn = pendulum_run
    bare = da.simulate(problem.system, da.LobattoIIIAB(stages=3), q0=problem.q0, p0=problem.p0, h=problem.h, steps=400)
    for arguments in ((), (None,), (dataclasses.replace(problem, drawing=None),)):
        with pytest.raises(da.InputError, match="give draw="):
            plot.configurations(bare, *arguments)
    assert titles(bare.plot())[0] == "path" and titles(bare.plot(draw=problem.drawing))[0] == "motion"
    figures = [
        plot.configurations(drawn),
        plot.configurations(drawn, None),
        plot.configurations(bare, problem),
        plot.configurations(bare, draw=problem.drawing),
        drawn.plot(),
        bare.plot(draw=problem.drawing),
    ]
    lines = [[np.column_stack(line.get_data()) for line in figure.axes[0].lines] for figure in figures]
    assert len(lines[0]) > 6
    for others in lines[1:]:
        assert len(others) == len(lines[0]) and all(map(np.array_equal, others, lines[0]))


def test_the_drawing_of_the_caller_comes_first(pendulum_run):
    problem, run = pendulum_run
    for figure in (plot.configurations(run, problem, draw=first_mass), run.plot(draw=first_mass)):
        path = figure.axes[0].lines[0].get_data()
        np.testing.assert_array_equal(np.column_stack(path), run.q[: len(path[0]), :2])


def first_mass(q):
    return [da.draw.mass(q[:2])]


def test_fewer_than_three_states_have_no_slope(pendulum_run):
    problem, _ = pendulum_run
    for steps, slope in ((1, False), (2, True)):
        title = plot.energy_error(da.simulate(problem, da.Rattle(), steps=steps)).axes[0].get_title(loc="right")
        assert title.endswith("slope -") != slope


def test_multipliers_are_those_of_the_window(pendulum_run):
    _, run = pendulum_run
    (line,) = plot.multipliers(run, [1], window=(3.0, 9.0)).axes[0].lines
    inside = (run.t >= 3) & (run.t <= 9)
    np.testing.assert_array_equal(line.get_ydata(), run.lam[inside, 1])
    for arguments in ({"which": [2]}, {"window": (100.0, 200.0)}):
        with pytest.raises(da.InputError):
            plot.multipliers(run, **arguments)


def test_convergence_states_the_slopes_of_the_study():
    h = 0.1 / 2 ** np.arange(6)
    errors = {"q": 7 * h**4, "lam": 0.3 * h**2}
    ax = plot.convergence(h, errors, orders={"q": 4.0}).axes[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["$q$: slope 4.00", r"$\lambda$: slope 2.00"]
    (dashed,) = (line for line in ax.lines if line.get_linestyle() == "--")
    x, y = dashed.get_data()
    assert np.log(y[1] / y[0]) / np.log(x[1] / x[0]) == pytest.approx(4.0)
    study = da.verify.order(
        da.problems.pendulum(), da.Rattle(), t1=1.0, steps=[20, 40, 80], reference=(da.LobattoIIIAB(stages=6), 50)
    )
    text = plot.convergence(study).axes[0].get_legend().get_texts()[0].get_text()
    assert text == f"$q$: slope {study.slopes['q']:.2f}" and 1.9 < study.slopes["q"] < 2.1


@pytest.mark.parametrize(
    ("h", "errors"), [([0.1, 0.2], {"q": [1.0, 2.0]}), ([0.2, 0.1], {"q": [1.0]}), ([0.2, 0.1], {}), ([0.2, 0.1], None)]
)
def test_convergence_refuses_unusable_data(h, errors):
    with pytest.raises(da.InputError, match="convergence needs"):
        plot.convergence(h, errors)


def test_the_palette_stays_apart_without_red_or_green_cones():
    # Vienot, Brettel and Mollon (1999): simulated dichromacy of linear RGB. Neighbours in the cycle must differ clearly.
    protan = np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]])
    deutan = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])
    rgb = np.array([[int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)] for color in CYCLE])
    for seen in (np.eye(3), protan, deutan):
        colors = np.clip(seen @ (rgb**2.2).T, 0, 1).T ** (1 / 2.2)
        distances = np.linalg.norm(colors[1:] - colors[:-1], axis=1)
        assert distances.min() > 0.15


# -- drawing into axes of one's own, loaded and broken-off runs ----------------------------------------------------------


def test_panels_draw_into_given_axes(pendulum_run):
    from matplotlib.figure import Figure

    problem, run = pendulum_run
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot.phase_portrait(run, 0, problem=problem, ax=left) is figure
    assert plot.energy_error(run, ax=right) is figure
    assert len(figure.axes) == 2 and left.lines and right.lines


def test_loaded_runs_can_be_drawn(pendulum_run, tmp_path):
    _, run = pendulum_run
    again = da.load(run.save(tmp_path / "run.npz"))
    assert plot.residuals(again).axes[0].lines
    assert len(again.plot().axes) == 5


@pytest.mark.parametrize("states", [1, 2])
def test_a_run_that_broke_off_at_once_can_be_drawn(states, pendulum_run):
    problem, _ = pendulum_run
    run = da.simulate(problem, da.LobattoIIIAB(stages=3), steps=states - 1)
    assert len(plot.overview(run, problem=problem).axes) == 5


def test_notebooks_get_a_picture(pendulum_run):
    assert pendulum_run[1].plot()._repr_png_().startswith(b"\x89PNG")


# -- files ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml"), ("PNG", b"\x89PNG")])
def test_files_are_written_by_suffix_and_reproducibly(pendulum_run, tmp_path, kind, start):
    for name in ("first", "second"):
        plot.energy_error(pendulum_run[1], path=tmp_path / f"{name}.{kind}")
    first, second = ((tmp_path / f"{name}.{kind}").read_bytes() for name in ("first", "second"))
    assert first.startswith(start) and first == second
    assert sorted(os.listdir(tmp_path)) == [f"first.{kind}", f"second.{kind}"]


@pytest.mark.parametrize("name", ["run.gif", "run", "run.png.txt"])
def test_other_suffixes_are_refused_before_anything_is_drawn(pendulum_run, tmp_path, name):
    with pytest.raises(da.InputError, match=r"\.png, \.pdf, \.svg"):
        pendulum_run[1].plot(tmp_path / name)
    assert not os.listdir(tmp_path)


def test_a_file_that_cannot_be_written_is_one_sentence(pendulum_run, tmp_path):
    with pytest.raises(da.DalembertError, match=r"could not be written to .*choose another path") as caught:
        pendulum_run[1].plot(tmp_path / "nowhere" / "run.png")
    assert "\n" not in str(caught.value)
    (tmp_path / "taken.png").mkdir()
    with pytest.raises(da.DalembertError, match="could not be written"):
        pendulum_run[1].plot(tmp_path / "taken.png")
    assert os.listdir(tmp_path) == ["taken.png"]
