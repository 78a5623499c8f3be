"""Figures that a paper can use: the data of the run, measured slopes, colours told apart, text that stays text."""

from __future__ import annotations

import dataclasses
import itertools
import re
import zlib

import numpy as np
import pytest

import dalembert as da
from dalembert import plot
from dalembert.draw._style import CYCLE
from dalembert.runs._trajectory import Contacts, Impacts

# -- colours -------------------------------------------------------------------------------------------------------------

VISION = {  # G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, IEEE Trans. Vis. Comput. Graph. 15 (2009), severity 1
    "normal": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}
TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(color: str) -> np.ndarray:
    """The linear RGB values of an sRGB colour."""
    values = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB coordinates of linear RGB values."""
    x = (TO_XYZ @ np.clip(rgb, 0.0, 1.0)) / WHITE
    f = np.where(x > (6 / 29) ** 3, np.cbrt(x), x / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_the_colour_arithmetic_gives_known_values():
    np.testing.assert_allclose(lab(linear("#ffffff")), [100, 0, 0], atol=0.02)
    np.testing.assert_allclose(lab(linear("#ff0000")), [53.24, 80.09, 67.20], atol=0.02)  # as tables of sRGB print it


@pytest.mark.parametrize("vision", VISION)
def test_colours_of_curves_are_told_apart_with_every_kind_of_vision(vision):
    seen = [lab(VISION[vision] @ linear(color)) for color in CYCLE]
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert min(distances) > 15  # CIE76; 2.3 is a just noticeable difference
    against_white = [100 - color[0] for color in seen]
    assert min(against_white) > 20  # lightness, on white paper


# -- files ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run():
    return da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), steps=300)


def test_text_in_svg_files_is_text(run, tmp_path):
    plot.residuals(run, path=tmp_path / "residuals.svg")
    content = (tmp_path / "residuals.svg").read_text(encoding="utf-8")
    assert re.search(r"<text [^>]*>residual</text>", content)
    assert not re.search(r'<path id="DejaVu', content)  # where Matplotlib draws letters as paths, it names them so


def test_fonts_of_pdf_files_are_embedded_as_truetype(run, tmp_path):
    plot.energy_error(run, path=tmp_path / "energy.pdf")
    content = (tmp_path / "energy.pdf").read_bytes()
    streams = []
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", content, re.DOTALL):
        try:
            streams.append(zlib.decompress(stream))
        except zlib.error:
            streams.append(stream)
    everything = content + b"".join(streams)
    assert b"/Type3" not in everything
    assert len(re.findall(rb"/FontFile2", everything)) >= 1 and b"/Subtype /Type42" not in everything


# -- slopes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1.0, 2.0, 3.5, 6.0])
def test_the_slope_written_is_the_slope_of_a_power_law(order):
    h = 0.2 / 2 ** np.arange(6)
    (text,) = plot.convergence(h, {"q": 7 * h**order}).axes[0].get_legend().get_texts()
    assert text.get_text() == f"$q$: slope {order:.2f}"


# -- Poincare sections, work and precision -------------------------------------------------------------------------------


def test_a_section_draws_each_crossing_once_in_the_colour_of_its_member():
    rng = np.random.default_rng(3)
    x, y, member = rng.normal(size=60), rng.normal(size=60), rng.integers(0, 3, size=60)
    lines = plot.poincare(x, y, member=member).axes[0].lines
    assert [line.get_color() for line in lines] == list(CYCLE[:3])
    for i, line in enumerate(lines):
        np.testing.assert_array_equal(np.column_stack(line.get_data()), np.column_stack([x, y])[member == i])
    with pytest.raises(da.InputError, match="one x, y and member a crossing"):
        plot.poincare(x, y[1:])


def test_work_and_precision_are_drawn_as_given_without_failed_runs():
    seconds, errors = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1e-2, np.nan, 1e-6, 0.0])
    ax = plot.work_precision({"a": (seconds, errors)}, cost="evaluations", error="error in $q$").axes[0]
    x, y = ax.lines[0].get_data()
    np.testing.assert_array_equal([x, y], [[1e-2, 1e-6], [1.0, 4.0]])
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlabel(), ax.get_ylabel()) == ("log", "log", "error in $q$", "evaluations")
    for wrong in ({}, {"a": (seconds, errors[1:])}):
        with pytest.raises(da.InputError):
            plot.work_precision(wrong)


def test_the_solution_is_drawn_against_time(run):
    ax = plot.solution(run, [3, 0]).axes[0]
    for line, i in zip(ax.lines, (3, 0), strict=True):
        np.testing.assert_array_equal(np.column_stack(line.get_data()), np.column_stack([run.t, run.q[:, i]]))
    assert ax.get_ylabel() == "$q$" and [text.get_text() for text in ax.get_legend().get_texts()] == ["$z_{2}$", "$x_{1}$"]
    np.testing.assert_array_equal(plot.solution(run, 3).axes[0].lines[0].get_ydata(), run.q[:, 3])


def test_one_coordinate_by_its_name_and_windows_that_are_none(run):
    problem = da.problems.double_pendulum()
    swing = da.simulate(problem, da.Rattle(), steps=5)
    (line,) = plot.solution(swing, "x2", problem=problem).axes[0].lines
    np.testing.assert_array_equal(line.get_ydata(), swing.q[:, problem.labels.index("x2")])
    assert len(plot.overview(swing, problem=problem, coordinates="x2").axes) == 4  # motion, one portrait, energy, residuals
    for figure in (plot.multipliers, plot.portrait, plot.configurations):
        with pytest.raises(da.InputError, match="window is two times"):
            figure(swing, window=3)


# -- impacts -------------------------------------------------------------------------------------------------------------


def struck(run, times, which):
    count = len(times)
    none = np.zeros((count, 4))
    before = np.interp(times, run.t, run.energy)
    hits = Impacts(np.array(times), np.array(which), np.ones(count), none[:, 0], none, none, none, before, before - 0.1)
    return dataclasses.replace(
        run, impacts=hits, contacts=Contacts(np.array([0]), np.array([7.0]), np.array([9.0]), np.array([False]))
    )


def test_impacts_are_vertical_lines_at_their_times_in_the_colour_of_what_is_hit(run):
    figure = plot.impacts(struck(run, [1.0, 2.5, 4.0], [0, 1, 0]))
    lines = figure.axes[0].lines
    np.testing.assert_array_equal(lines[0].get_ydata(), run.energy)
    upright = [line for line in lines if len(line.get_xdata()) == 2 and line.get_xdata()[0] == line.get_xdata()[1]]
    assert sorted((line.get_xdata()[0], line.get_color()) for line in upright) == [
        (1.0, CYCLE[1]), (2.5, CYCLE[2]), (4.0, CYCLE[1])
    ]  # fmt: skip
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert names == [r"$\varphi_{1}$: 2 impacts", r"$\varphi_{2}$: 1 impact"]
    (contact,) = figure.axes[0].patches
    assert (contact.get_x(), contact.get_width()) == (7.0, 2.0)
    rings = next(line for line in lines if line.get_markerfacecolor() == "white")
    np.testing.assert_allclose(rings.get_ydata(), np.interp([1.0, 4.0], run.t, run.energy))


def test_many_impacts_are_not_marked_one_by_one(run):
    figure = plot.impacts(struck(run, np.linspace(0.1, 30, 101), np.zeros(101, dtype=int)))
    assert len(figure.axes[0].lines) == 3
    assert len(plot.energy_error(struck(run, np.linspace(0.1, 30, 101), np.zeros(101, dtype=int))).axes[0].lines) == 2


def test_the_energy_error_marks_impacts_and_a_run_without_a_record_of_them_is_refused(run):
    marked = [
        line.get_xdata()[0] for line in plot.energy_error(struck(run, [3.0], [0])).axes[0].lines if line.get_linestyle() == "--"
    ]
    assert marked == [3.0]
    with pytest.raises(da.InputError, match="no record of impacts"):
        plot.impacts(run)


# -- portraits -----------------------------------------------------------------------------------------------------------


def test_a_portrait_shows_the_path_and_the_mechanism_at_its_end(run):
    ax = plot.portrait(run, window=(0.0, 6.0)).axes[0]
    path = next(line for line in ax.lines if len(line.get_xdata()) == 400)
    x, y = path.get_data()
    np.testing.assert_array_equal([x[0], y[0]], run.q[0, 2:])
    end = np.array([np.interp(6.0, run.t, run.q[:, i]) for i in range(4)])
    rods = [np.column_stack(line.get_data()) for line in ax.lines if len(line.get_xdata()) == 3]
    np.testing.assert_allclose(rods, [[[0, 0], run.q[0, :2], run.q[0, 2:]], [[0, 0], end[:2], end[2:]]], atol=1e-12)
    assert ax.get_aspect() == 1.0 and not ax.axison


def test_the_portrait_of_a_traveller_ends_before_it_becomes_small():
    problem = da.problems.car_with_trailer()
    run = da.simulate(problem, da.GaussLobattoSPARK(stages=2))
    ax = plot.portrait(run).axes[0]
    width = np.ptp(ax.get_xlim())
    assert width < 8 * (problem.system.params["l"] * 1.5 + problem.system.params["d"] * 1.3)
    assert width < np.ptp(run.q[:, 0]) / 2


def test_portraits_of_runs_without_a_drawing_name_the_fix():
    system = da.Hamiltonian(lambda q, p: (p @ p + q @ q) / 2, dim=2)
    run = da.simulate(system, da.Gauss(stages=1), q0=[1, 0], p0=[0, 1], h=0.1, steps=10)
    with pytest.raises(da.InputError, match="give draw="):
        plot.portrait(run)
    assert plot.portrait(run, draw=lambda q: [da.draw.mass(q)]).axes
