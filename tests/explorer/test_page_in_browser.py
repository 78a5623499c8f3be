"""The page in a browser: Chromium, without a window."""

import time

import numpy as np
import pytest

import dalembert as da
from dalembert.explorer._server import Server
from dalembert.explorer._session import Session

LOADED = """
const e = window.explorer;
return Boolean(e && e.panes && !e.active().some(p => p.stale || p.failed || !p.stage.run || p.stage.coming));
"""


def wait(browser, condition, *arguments, seconds=60):
    """Until a condition of the page holds; tells what the page says if it never does."""
    end = time.monotonic() + seconds
    while not (found := browser.execute_script(condition, *arguments)):
        if time.monotonic() > end:
            raise AssertionError(f"{condition} does not come true: {browser.find_element('tag name', 'body').text[:2000]}")
        time.sleep(0.02)
    return found


def slide(browser, key, value):
    """Move a slider, as a hand does."""
    browser.execute_script(
        "const s = document.querySelector(`input[type=range][data-key='${arguments[0]}']`);"
        "s.value = arguments[1]; s.dispatchEvent(new Event('input'));",
        key,
        value,
    )


def pick(browser, label, value):
    browser.execute_script(
        "const s = document.querySelector(`select[aria-label='${arguments[0]}']`);"
        "s.value = arguments[1]; s.dispatchEvent(new Event('change'));",
        label,
        value,
    )


def positions(browser, frame, pane=0):
    """The points of all parts in a frame of the run that is shown, once it is there."""
    script = (
        "const s = explorer.panes[arguments[1]].stage; if (s.coming || !s.run.have[arguments[0]]) return null;"
        "return s.run.parts.map(p => s.at(p, arguments[0]));"
    )
    return wait(browser, script, frame, pane)


def complaints(browser):
    return [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"]


@pytest.fixture
def page(browser, screen, served):
    def open_page(width=1400, height=1000, link=""):
        screen(width, height)
        browser.get("about:blank")
        browser.get(served.address.url + link)
        wait(browser, LOADED)
        return browser

    return open_page


def ink(browser, selector):
    return browser.execute_script(
        "const c = document.querySelector(arguments[0]), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "let n = 0; for (let k = 3; k < d.length; k += 4) n += d[k] > 0; return n;",
        selector,
    )


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1400, "dark")])
def test_the_page_draws_without_complaint_and_fits_the_screen(page, width, scheme):
    browser = page(width)
    emulate = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", emulate)
    time.sleep(0.3)
    paper = browser.execute_script("return getComputedStyle(document.querySelector('.top')).backgroundColor")
    assert (sum(map(int, paper[4:-1].split(","))) < 150) == (scheme == "dark")
    assert ink(browser, ".pane0 canvas") > 500 and ink(browser, "canvas.plot") > 300
    inner, wide = browser.execute_script("return [window.innerWidth, document.documentElement.scrollWidth]")
    assert inner == width and wide <= width
    for box in browser.execute_script(
        "return [...document.querySelectorAll('canvas, button, input, select')].filter(e => e.checkVisibility())"
        ".map(e => e.getBoundingClientRect().toJSON())"
    ):
        assert box["left"] >= 0 and box["right"] <= width
    assert complaints(browser) == []


def test_a_slider_changes_the_motion_and_the_curves(page):
    browser = page()
    before = positions(browser, 20)
    energy = "return explorer.panes[0].run.panels[0].largest"
    old = browser.execute_script(energy)
    slide(browser, "g", 2.5)
    wait(browser, LOADED)
    wait(browser, f"return {energy.removeprefix('return ')} !== arguments[0]", old)
    g = browser.execute_script("return explorer.settings.g")
    length = browser.execute_script("return [explorer.panes[0].run.steps, explorer.panes[0].run.frames]")
    run = da.simulate(da.problems.double_pendulum(g=g), da.LobattoIIIAB(stages=3), steps=length[0])
    assert g == pytest.approx(2.5) and browser.execute_script(energy) == np.max(np.abs(run.energy - run.energy[0]))
    after = positions(browser, length[1] - 1)
    assert before != after
    np.testing.assert_allclose(after[0], [[0, 0], *run.q[-1].reshape(2, 2)], atol=1e-4)
    assert browser.execute_script("return explorer.stats.latency") > 0
    assert f"g={g}" in browser.execute_script("return explorer.code.textContent") and complaints(browser) == []


def test_a_number_beside_a_slider_reaches_further(page):
    browser = page()
    browser.execute_script(
        "const s = document.querySelector(\"input[type=number][data-key='m2']\"); s.value = 40;"
        "s.dispatchEvent(new Event('change'));"
    )
    wait(browser, LOADED)
    assert "m2=40.0" in wait(browser, "const t = explorer.code.textContent; return t.includes('m2') && t")


def test_methods_are_changed_and_compared_side_by_side(page):
    browser = page()
    pick(browser, "method 1", "Rattle")
    wait(browser, "return explorer.code.textContent.includes('da.Rattle()')")
    browser.execute_script("document.getElementById('compare').click()")
    pick(browser, "method 2", "LobattoIIIAB")
    wait(browser, LOADED)
    titles = wait(browser, "const t = explorer.panes.map(p => p.title.textContent); return t[1].startsWith('Lobatto') && t")
    assert titles == ["Rattle", "LobattoIIIAB(stages=3)"]
    largest = browser.execute_script("return explorer.panes.map(p => p.run.panels[0].largest)")
    steps = browser.execute_script("return explorer.panes[1].run.steps")
    for method, shown in zip((da.Rattle(), da.LobattoIIIAB(stages=3)), largest, strict=True):
        run = da.simulate(da.problems.double_pendulum(), method, steps=steps)
        assert shown == np.max(np.abs(run.energy - run.energy[0]))
    boxes = browser.execute_script("return explorer.panes.map(p => p.canvas.getBoundingClientRect().toJSON())")
    assert boxes[0]["top"] == boxes[1]["top"] and boxes[0]["right"] <= boxes[1]["left"] and complaints(browser) == []


def test_the_section_grows_while_one_watches(page):
    browser = page()
    browser.execute_script("document.querySelector('details input[type=checkbox]').click()")
    few = wait(browser, "return explorer.panes[0].points.length")
    more = wait(browser, "const n = explorer.panes[0].points.length; return n > arguments[0] + 5 && n", few)
    assert more > few and ink(browser, "canvas.tall") > 100
    assert "crossings" in browser.execute_script("return explorer.sectionNote.textContent") and complaints(browser) == []


def test_the_link_keeps_what_is_shown(page):
    browser = page()
    slide(browser, "l2", 0.5)
    wait(browser, "return explorer.code.textContent.includes('l2=0.5')")
    link = browser.execute_script("return location.hash")
    code = browser.execute_script("return explorer.code.textContent")
    page(link=link)
    assert wait(browser, "return explorer.code.textContent") == code


def test_the_page_comes_back_when_the_server_does(browser, screen, describe):
    chosen, token = describe("pendulum"), "another-token-that-only-this-test-knows"
    screen(1000)
    with Server(lambda: Session(chosen), port=0, token=token) as first:
        port = first.address.port
        browser.get(first.address.url)
        wait(browser, LOADED)
        slide(browser, "g", 2.0)
        wait(browser, "return explorer.code.textContent.includes('g=2')")
    wait(browser, "return explorer.status.textContent.startsWith('reconnecting')")
    answers = browser.execute_script("return explorer.stats.answers")
    with Server(lambda: Session(chosen), port=port, token=token):
        wait(browser, "return explorer.status.textContent === 'connected'")
        wait(browser, "return explorer.stats.answers > arguments[0] + 1", answers)
        wait(browser, LOADED)
        slide(browser, "g", 2.5)
        wait(browser, "return explorer.code.textContent.includes('g=2.5')")  # it answers again, and kept what was set


def test_a_page_of_another_site_gets_no_answer(browser, served):
    address = served.address
    browser.get("data:text/html,<title>elsewhere</title>")
    said = browser.execute_async_script(
        "const done = arguments[1], line = new WebSocket(arguments[0]);"
        "line.onopen = () => done('open'); line.onerror = () => done('refused');",
        f"ws://127.0.0.1:{address.port}/ask?token={address.token}",
    )
    assert said == "refused"


def test_a_mechanism_in_space_turns_under_the_hand(browser, screen, describe):
    from selenium.webdriver.common.action_chains import ActionChains

    chosen = describe("heavy_top")
    screen(1000)
    with Server(lambda: Session(chosen), port=0) as server:
        browser.get(server.address.url)
        wait(browser, LOADED)
        turn = browser.execute_script("return explorer.panes[0].stage.turn.slice()")
        canvas = browser.find_element("css selector", ".pane0 canvas")
        ActionChains(browser).click_and_hold(canvas).move_by_offset(80, 30).release().perform()
        assert browser.execute_script("return explorer.panes[0].stage.turn") != turn
        assert complaints(browser) == []


def test_the_same_script_serves_notebooks(page):
    """`render` of the widget, its kernel replaced by a socket to the server."""
    browser = page()
    browser.execute_script(
        """
        const el = document.createElement("div"), line = new WebSocket(`ws://${location.host}/ask${location.search}`);
        document.body.append(el);
        line.onopen = async () => {
          let hear = null;
          line.onmessage = event => { window.heard = (window.heard || 0) + 1; hear(JSON.parse(event.data)); };
          const model = { send: m => line.send(JSON.stringify(m)), on: (_, f) => { hear = f; } };
          window.explorer.root.remove();
          (await import("/explore.js?again")).default.render({ model, el });
          window.notebook = el;
        };
        """
    )
    wait(browser, "return window.heard > 5 && window.notebook.querySelector('figcaption').textContent.includes('steps')")
    assert complaints(browser) == []
