"""The page of a film in a browser: Chromium, without a window."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da


@pytest.fixture(scope="module")
def runs():
    problems = {name: getattr(da.problems, name)() for name in ("double_pendulum", "heavy_top", "car_with_trailer")}
    methods = {"car_with_trailer": da.GaussLobattoSPARK(stages=2)}
    return {
        name: da.simulate(problem, methods.get(name, da.LobattoIIIAB(stages=3)), h=0.05, steps=400)
        for name, problem in problems.items()
    }


@pytest.fixture
def opened(browser, screen, runs, tmp_path):
    def open_film(name, width=1000, **options):
        screen(width, 800, scale=2)
        film = runs[name].animate(tmp_path / f"{name}.html", fps=20, **options)
        browser.get((tmp_path / f"{name}.html").as_uri())
        return film

    return open_film


def seek(browser, frame):
    browser.execute_script(
        "const s = document.getElementById('slider'); s.value = arguments[0]; s.dispatchEvent(new Event('input'));", frame
    )


def press(browser, key):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    ActionChains(browser).send_keys(getattr(Keys, key)).perform()


def ink(browser):
    """How many pixels of the canvas are painted."""
    return browser.execute_script(
        "const c = document.getElementById('canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "let n = 0; for (let k = 3; k < d.length; k += 4) n += d[k] > 0; return n;"
    )


@pytest.mark.parametrize("name", ["double_pendulum", "heavy_top", "car_with_trailer"])
@pytest.mark.parametrize("width", [390, 1000])
def test_the_page_draws_without_complaint_and_fits_the_screen(browser, opened, name, width):
    opened(name, width)
    assert [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []
    assert ink(browser) > 500
    inner, wide = browser.execute_script("return [window.innerWidth, document.documentElement.scrollWidth]")
    assert inner == width and wide <= width
    for box in browser.execute_script(
        "return [...document.querySelectorAll('canvas, button, input, select')].map(e => e.getBoundingClientRect().toJSON())"
    ):
        assert box["left"] >= 0 and box["right"] <= width and box["height"] >= 40  # fingers find them


@pytest.mark.parametrize("name", ["double_pendulum", "heavy_top", "car_with_trailer"])
def test_the_slider_moves_the_bodies_to_the_positions_of_the_run(browser, opened, runs, name):
    film = opened(name)
    for frame in (0, 137, 400):
        seek(browser, frame)
        shown = browser.execute_script("return film.positions()")
        assert browser.execute_script("return film.time()") == pytest.approx(runs[name].t[frame])
        assert len(shown) == len(film.scene.parts)
        for points, part in zip(shown, film.scene.parts, strict=True):
            np.testing.assert_allclose(points, part.at(frame), atol=1e-5 * film.scene.half.max())
        if name == "double_pendulum":
            np.testing.assert_allclose(shown[0], [[0, 0], *runs[name].q[frame].reshape(2, 2)], atol=1e-5)


def test_the_bodies_are_painted_where_their_positions_are(browser, opened):
    opened("double_pendulum")
    for frame in (0, 200):
        seek(browser, frame)
        x, y = browser.execute_script("return film.pixels()[2][0]")  # the second mass
        color = browser.execute_script(
            "const [x, y] = arguments, pen = document.getElementById('canvas').getContext('2d');"
            "return [...pen.getImageData(2 * x, 2 * y, 1, 1).data];",
            x,
            y,
        )
        assert color == [0x00, 0x72, 0xB2, 255]


def test_it_plays_by_itself_stops_and_obeys_the_keyboard(browser, opened):
    opened("double_pendulum")
    script = browser.execute_script
    assert script("return film.playing()")
    press(browser, "SPACE")
    assert not script("return film.playing()") and script("return document.getElementById('play').textContent") == "Play"
    seek(browser, 10)
    press(browser, "ARROW_RIGHT")
    assert script("return film.frame()") == 11
    press(browser, "ARROW_LEFT")
    press(browser, "ARROW_LEFT")
    assert script("return film.frame()") == 9
    press(browser, "ARROW_UP")
    assert script("return document.getElementById('rate').value") == "2"
    press(browser, "END")
    assert script("return film.frame()") == 400
    press(browser, "HOME")
    assert script("return film.frame()") == 0


def test_time_passes_as_in_physics(browser, opened):
    opened("double_pendulum")
    before, after = browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(now => {"
        "const t = film.time(), end = later => done([t, film.time() - (later - now) / 1000]);"
        "setTimeout(() => requestAnimationFrame(end), 1500); }));"
    )
    assert after == pytest.approx(before, abs=0.1)


def test_dragging_turns_the_view_of_a_mechanism_in_space_and_only_of_that(browser, opened):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    for name, turns in (("heavy_top", True), ("double_pendulum", False)):
        opened(name)
        seek(browser, 50)
        before = browser.execute_script("return [film.view(), film.pixels()[0]]")
        canvas = browser.find_element(By.ID, "canvas")
        ActionChains(browser).click_and_hold(canvas).move_by_offset(90, 30).release().perform()
        after = browser.execute_script("return [film.view(), film.pixels()[0]]")
        assert (after != before) is turns
        if turns:
            assert after[0][0] - before[0][0] == pytest.approx(-90 / 150) and after[0][1] - before[0][1] == pytest.approx(0.2)


def test_the_page_asks_the_network_for_nothing(browser, opened):
    import json

    opened("heavy_top")
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert asked and all(url.startswith(("file:", "data:")) for url in asked)


@pytest.fixture(scope="module")
def spinning():
    """A shaded scene of all kinds of solids, a rod, a spring and a wheel: no run, states are stored directly."""
    m = da.Mechanism(gravity=(0, 0, -9.81))
    box = m.body("box", mass=1.0, shape=da.mechanisms.Box(0.6, 0.4, 0.2), at=(0, 0, 1))
    ball = m.body("ball", mass=1.0, shape=da.mechanisms.Sphere(0.3), at=(1.2, 0, 1))
    stone = m.body("stone", mass=1.0, shape=da.mechanisms.Mesh([(2, 0, 1), (2.5, 0, 1), (2, 0.5, 1), (2, 0, 1.5)]))
    wheel = m.body(
        "wheel", mass=1.0, shape=da.mechanisms.Cylinder(0.3, 0.1), at=(0, 0, 0.3), rotation=[[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    )
    m.spring(box, ball, at=((0.3, 0, 1), (0.9, 0, 1)), stiffness=5.0)
    m.spring(ball, stone, at=((1.5, 0, 1), (2, 0, 1)), stiffness=5.0)
    m.spring(box, wheel, at=((0, 0, 1), (0, 0, 0.3)), stiffness=5.0)
    start = m.start(angular_velocities={box: (1.0, 2.0, 0.5), ball: (0, 3.0, 0), stone: (2.0, 0, 1.0), wheel: (0, 4.0, 0)})
    return da.simulate(m, da.LobattoIIIAB(2), start=start, h=0.05, steps=20)


def test_a_shaded_film_is_one_file_without_requests_or_errors(browser, screen, spinning, tmp_path):
    """Corners of solids are where the run has them; what is lit has several tones of its colour; the ground has a shadow."""
    import json

    screen(1000, 800)
    film = spinning.animate(tmp_path / "film.html", shaded=True, fps=10, speed=0.5)
    assert (tmp_path / "film.html").stat().st_size < 300_000
    browser.get((tmp_path / "film.html").as_uri())
    assert browser.execute_script("return film.shaded()")
    for frame in (0, 7):
        seek(browser, frame)
        for points, part in zip(browser.execute_script("return film.positions()"), film.scene.parts, strict=True):
            np.testing.assert_allclose(points, part.at(frame), atol=1e-4)
    pixels = browser.execute_script(
        "const c = document.getElementById('canvas'), gl = c.getContext('webgl'), d = new Uint8Array(4 * c.width * c.height);"
        "document.getElementById('slider').dispatchEvent(new Event('input'));"
        "gl.readPixels(0, 0, c.width, c.height, gl.RGBA, gl.UNSIGNED_BYTE, d); return [Array.from(d), c.width, gl.getError()];"
    )
    colors, wide, error = np.array(pixels[0]).reshape(-1, 4)[:, :3], pixels[1], pixels[2]
    assert error == 0
    blue = colors[(colors[:, 2] > 1.3 * colors[:, 0]) & (colors[:, 2] > 60)]
    assert len(blue) > 5000 and len(np.unique(blue[:, 2])) > 50  # light falls on surfaces at many angles
    shadow = np.sum(np.all(np.abs(colors - np.array([181, 183, 187])) < 12, axis=1))
    assert shadow > 1000
    x, y = browser.execute_script("return film.pixels()[0][0]")  # a corner of the box is painted where it is said to be
    around = colors.reshape(-1, wide, 3)[::-1][round(y) - 8 : round(y) + 9, round(x) - 8 : round(x) + 9].reshape(-1, 3)
    assert np.any(around[:, 2] > 1.3 * around[:, 0])
    complaints = [e for e in browser.get_log("browser") if e["level"] != "INFO" and "GPU stall" not in e["message"]]
    assert complaints == []  # (reading pixels stalls the graphics processor, and Chromium says so)
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert asked and all(url.startswith(("file:", "data:")) for url in asked)


def test_without_webgl_a_shaded_film_is_drawn_as_lines(browser, screen, spinning, tmp_path):
    screen(1000, 800)
    page = spinning.animate(shaded=True, fps=10).html()
    without = (
        "const real = HTMLCanvasElement.prototype.getContext; HTMLCanvasElement.prototype.getContext = "
        "function (kind) { return kind === 'webgl' ? null : real.call(this, kind); };"
    )
    broken = page.replace('"use strict";', f'"use strict"; {without}', 1)
    (tmp_path / "film.html").write_text(broken)
    browser.get((tmp_path / "film.html").as_uri())
    assert not browser.execute_script("return film.shaded()") and ink(browser) > 500
    assert [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []


def test_shaded_films_are_refused_where_they_cannot_be(spinning, runs, tmp_path):
    with pytest.raises(da.InputError, match=r"a shaded film is written as \.html"):
        spinning.animate(tmp_path / "film.gif", shaded=True)
    with pytest.raises(da.InputError, match="in the plane: leave shaded= out"):
        runs["double_pendulum"].animate(shaded=True)
