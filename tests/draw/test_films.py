"""Films: frames at the right times, bodies at the right pixels, files that need nothing else."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image

import dalembert as da
from dalembert.cli import main
from dalembert.draw import Animation, mass, rod, track
from dalembert.draw._film import frames

NEEDS_FFMPEG = pytest.mark.skipif(
    shutil.which("ffmpeg") is None or shutil.which("ffprobe") is None, reason="ffmpeg and ffprobe are not installed"
)


@pytest.fixture(scope="module")
def run():
    return da.simulate(da.problems.pendulum(), da.LobattoIIIAB(stages=3), h=0.05, steps=200)  # ten units of time


# -- time ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "first", "last", "count"),
    [
        ({}, 0.0, 10.0, 251),
        ({"fps": 10}, 0.0, 10.0, 101),
        ({"window": (2.0, 4.5), "speed": 0.5, "fps": 20}, 2.0, 4.5, 101),
        ({"speed": 5.0}, 0.0, 10.0, 51),
        ({"duration": 3.0}, 0.0, 3.0, 76),
        ({"window": (1.0, 2.0)}, 1.0, 2.0, 101),  # slowed down: a film lasts four seconds at least
    ],
)
def test_frames_stand_at_uniform_physical_times(run, options, first, last, count):
    film = run.animate(**options)
    np.testing.assert_allclose(film.scene.t, np.linspace(first, last, count), atol=1e-12)
    np.testing.assert_allclose(np.diff(film.scene.t), film.speed / film.fps)


def test_of_a_long_run_the_first_twenty_seconds_are_shown():
    long = da.simulate(da.problems.pendulum(), da.Rattle(), h=0.1, steps=100_000)
    assert long.animate().scene.t[-1] == pytest.approx(20.0)
    assert long.animate(speed=500.0).scene.t[-1] == pytest.approx(10_000.0)


@pytest.mark.parametrize(
    "options",
    [
        {"window": 3},
        {"window": (0, 1, 2)},
        {"fps": 0},
        {"speed": -1.0},
        {"duration": float("nan")},
        {"window": (3.0, 3.0)},
        {"window": (5.0, 20.0)},
    ],
)
def test_impossible_films_are_refused(run, options):
    with pytest.raises(da.InputError):
        run.animate(**options)


def test_a_name_that_says_no_kind_of_film_is_refused_before_work_is_done(run, tmp_path):
    with pytest.raises(da.InputError, match=r"\.html, \.gif, \.mp4"):
        run.animate(tmp_path / "film.avi")


# -- pixels --------------------------------------------------------------------------------------------------------------


def pixel_of(scene, point, size):
    """Where a point of the plane is in a picture of (width, height) pixels, counted from its upper left corner."""
    width, height = size
    half = 1.1 * scene.extent
    scale = min(width / (2 * half[0]), height / (2 * half[1]))
    x, y = (np.asarray(point) - scene.centres[0]) * scale
    return width / 2 + x, height / 2 - y


def blue(pixels):
    """Where a picture shows the colour of masses."""
    red, green, colour = (pixels[..., i].astype(int) for i in range(3))
    return (colour > 150) & (red < 60) & (green > 80) & (green < 150)


def assert_mass_is_drawn(pixels, scene, i):
    rows, columns = np.nonzero(blue(pixels))
    x, y = pixel_of(scene, scene.parts[-1].points[i, 0], pixels.shape[1::-1])
    assert abs(np.mean(columns) + 0.5 - x) < 1.5 and abs(np.mean(rows) + 0.5 - y) < 1.5


def test_a_gif_has_the_frames_the_duration_and_the_mass_where_the_run_says(run, tmp_path):
    film = run.animate(tmp_path / "film.gif", window=(0.0, 4.0), fps=12)
    with Image.open(tmp_path / "film.gif") as gif:
        assert gif.n_frames == 49 and gif.info["loop"] == 0
        total = 0
        for i in range(gif.n_frames):
            gif.seek(i)
            total += gif.info["duration"]
            assert_mass_is_drawn(np.array(gif.convert("RGB")), film.scene, i)
    assert abs(total / 1000 - film.duration) < 0.011  # hundredths of a second do not add up to a drift


def test_masses_in_space_are_drawn_where_the_view_puts_them():
    problem = da.problems.spherical_pendulum()
    film = da.simulate(problem, da.LobattoIIIAB(stages=3), steps=100).animate(duration=1.0, fps=5)
    seen = []
    for pixels in frames(film.scene, lambda done: None):
        rows, columns = np.nonzero(blue(pixels))
        seen.append([columns.mean(), -rows.mean()])
    azimuth, elevation = np.radians([-60.0, 22.0])
    right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    up = np.array([-np.sin(elevation) * np.cos(azimuth), -np.sin(elevation) * np.sin(azimuth), np.cos(elevation)])
    bobs = film.scene.parts[-1].points[:, 0]
    expected = np.column_stack([bobs @ right, bobs @ up])
    moved, should = np.diff(seen, axis=0), np.diff(expected, axis=0)
    scale = np.sum(moved * should) / np.sum(should**2)
    assert np.max(np.abs(moved - scale * should)) < 1.5 and np.max(np.abs(moved)) > 10


@NEEDS_FFMPEG
def test_an_mp4_has_the_frames_and_the_rate(run, tmp_path):
    film = run.animate(tmp_path / "film.mp4", window=(0.0, 4.0), fps=24)
    probe = ["ffprobe", "-v", "error", "-count_frames", "-show_streams", "-of", "json", str(tmp_path / "film.mp4")]
    (stream,) = json.loads(subprocess.run(probe, capture_output=True, check=True).stdout)["streams"]
    assert (stream["codec_name"], stream["pix_fmt"], stream["r_frame_rate"]) == ("h264", "yuv420p", "24/1")
    assert int(stream["nb_read_frames"]) == len(film.scene.t) == 97
    raw = ["ffmpeg", "-v", "error", "-i", str(tmp_path / "film.mp4"), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    pixels = np.frombuffer(subprocess.run(raw, capture_output=True, check=True).stdout, dtype=np.uint8)
    pictures = pixels.reshape(97, stream["height"], stream["width"], 3)
    for i in (0, 50, 96):
        assert_mass_is_drawn(pictures[i], film.scene, i)


def test_without_ffmpeg_an_mp4_is_refused_with_what_to_do(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(da.DalembertError, match=r"needs the program ffmpeg.*install it, or write \.gif or \.html"):
        run.animate(tmp_path / "film.mp4")
    assert not list(tmp_path.iterdir())


def test_a_film_that_cannot_be_written_leaves_nothing_behind(run, tmp_path):
    with pytest.raises(da.DalembertError, match="choose another path"):
        run.animate(tmp_path / "nowhere" / "film.html")
    assert not list(tmp_path.iterdir())


def test_a_film_that_takes_long_reports_its_progress(run, tmp_path, capsys, monkeypatch):
    from dalembert import _progress as progress

    clock = iter(range(100_000))  # every look at it is a second later
    monkeypatch.setattr(progress.time, "perf_counter", lambda: float(next(clock)))
    run.animate(tmp_path / "film.gif", window=(0.0, 1.0), fps=2, progress=True)
    assert "9 of 9 frames" in capsys.readouterr().err


# -- HTML ----------------------------------------------------------------------------------------------------------------


def data_of(page):
    return json.loads(re.search(r"^const data = (.*);$", page, re.MULTILINE)[1])


def test_the_page_holds_the_positions_of_the_run_and_makes_no_requests(run, tmp_path):
    film = run.animate(tmp_path / "film.html", window=(0.0, 10.0), fps=20)
    page = (tmp_path / "film.html").read_text(encoding="utf-8")
    data = data_of(page)
    (bob,) = (part for part in data["parts"] if part["kind"] == "mass")
    np.testing.assert_allclose(np.reshape(bob["points"], (-1, 2)), run.q, atol=1e-5)  # 20 frames a second are the steps
    np.testing.assert_allclose(data["times"], run.t, atol=1e-9)
    assert not re.search(r"(?:src|href)=\"(?!data:)|https?:|@import|url\(|fetch\(|XMLHttpRequest|<link rel=\"stylesheet", page)
    assert film.html() == page and "LobattoIIIAB(stages=3), h = 0.05" in page


def test_names_cannot_break_out_of_the_page(run):
    with pytest.raises(da.InputError, match="the colour of a part"):
        mass([0, 0], color="</script><b>")
    scene = run.animate(draw=lambda q: [mass(q)], duration=0.1).scene
    hostile = dataclasses.replace(scene.parts[0], color="</script><b>")  # past the check of colours
    scene = dataclasses.replace(scene, parts=(hostile, *scene.parts[1:]))
    page = Animation(scene, 25.0, 1.0, "<i>&").html()
    assert "</script><b>" not in page and "<title>&lt;i&gt;&amp;</title>" in page
    assert data_of(page)["parts"][0]["color"] == "</script><b>"


def test_notebooks_show_the_player(run):
    shown = run.animate(duration=0.2)._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "&lt;canvas" in shown


# -- the command ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("down", [(0, -9.81, 0), (9.81, 0, 0), (0, 0, 9.81), (1, -2, 2), (0, 0, -9.81)])
def test_what_falls_falls_down_the_picture(down):
    m = da.Mechanism(gravity=down)
    m.body("stone", mass=0.2, shape=da.mechanisms.Box(0.1, 0.2, 0.3), at=(1, 2, 3))
    run = da.simulate(m, da.Rattle(), h=0.05, t1=0.5)
    fallen = np.array(down) * 0.5**2 / 2
    solid = run.animate().scene.parts[0].points
    np.testing.assert_allclose(solid[-1] - solid[0], np.tile([0, 0, -np.linalg.norm(fallen)], (8, 1)), atol=1e-12)
    sides = np.linalg.norm(solid[0][:, None] - solid[0][None], axis=2)
    own = m.body("other", mass=0.2, shape=da.mechanisms.Box(0.1, 0.2, 0.3)).solid.vertices
    np.testing.assert_allclose(sides, np.linalg.norm(own[:, None] - own[None], axis=2), atol=1e-12)  # turned, not bent
    (u, v, w), (a, b, c) = (points[[1, 2, 4]] - points[0] for points in (solid[0], own))
    assert np.linalg.det([u, v, w]) == pytest.approx(np.linalg.det([a, b, c]))  # and not mirrored


def test_the_command_writes_a_film_and_says_so(tmp_path, capsys):
    film = tmp_path / "new" / "film.html"
    assert main(["run", "double_pendulum", "--steps", "50", "--animate", str(film)]) == 0
    assert str(film) in capsys.readouterr().out and film.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("problem", "name", "message"),
    [("double_pendulum", "film.avi", ".html, .gif, .mp4"), ("nonlinear_multiplier", "film.html", "how it is drawn")],
)
def test_the_command_refuses_a_film_that_cannot_be_made_before_it_runs(problem, name, message, tmp_path, capsys):
    assert main(["run", problem, "--animate", str(tmp_path / name)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and not captured.out


def test_rods_and_tracks_are_drawn_too(run):
    scene = run.animate(draw=lambda q: [track([-1, 0], [1, 0]), rod([0, 0], q)], duration=0.1).scene
    pixels = next(frames(scene, lambda done: None))
    dark = (pixels[..., :3].astype(int).max(axis=-1) < 90).sum()
    assert dark > 300  # a rod of 2.4 points by half the width of the picture
