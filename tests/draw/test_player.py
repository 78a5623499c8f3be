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
