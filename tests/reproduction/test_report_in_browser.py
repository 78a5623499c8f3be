"""The report in a browser, on a desk and on a phone: everything is seen, every link leads somewhere, nothing is fetched."""

import json
import os
import shutil
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from dalembert.cli import main
from dalembert.experiments import _registry

HERE = Path(__file__).parent
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
WIDTHS = {"desk": (1280, 900), "phone": (390, 844)}
REAL = ("jay_simeon.figure4.1", "small_jay2011.existence")

pytestmark = [
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium: apt-get install chromium chromium-driver"),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of toy experiments with every verdict, and of two real ones."""
    out = tmp_path_factory.mktemp("a report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_registry, "_registered", dict(_registry._registered))
        assert main(["reproduce", str(HERE / "toy_experiments.py"), *REAL, "--out", str(out), "--format", "svg"]) == 1
    return out / "report.html"


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(params=WIDTHS)
def page(request, report, browser):
    """The report, opened at a width."""
    width, height = WIDTHS[request.param]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": request.param == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # forget what was before
    browser.get(report.as_uri())
    browser.width = width  # of the screen: a phone widens innerWidth if the page is too wide
    return browser


def test_the_console_is_silent_and_nothing_is_fetched(page, report):
    assert page.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith("data:")] == [report.as_uri()]


def test_all_figures_are_seen(page):
    figures = page.execute_script("""return [...document.querySelectorAll("article img")].map(image => {
        const box = image.getBoundingClientRect();
        return [image.closest("article").id, image.complete, image.naturalWidth, box.left, box.right, box.height, image.alt];
    })""")
    drawn = {name for name, *_ in figures}
    assert drawn == {"toy.good", "toy.many", "toy.false", "toy.nan", "toy.last", *REAL}
    for name, complete, natural, left, right, height, alt in figures:
        assert complete and natural > 0 and height > 20 and 0 <= left < right <= page.width and alt, name


def test_every_link_leads_somewhere(page, report):
    links = page.execute_script('return [...document.querySelectorAll("a")].map(link => link.getAttribute("href"))')
    ids = page.execute_script('return [...document.querySelectorAll("[id]")].map(thing => thing.id)')
    assert len(ids) == len(set(ids)) and len(links) > 20
    for link in links:
        assert not urlparse(link).scheme, link
        if link.startswith("#"):
            assert unquote(link[1:]) in ids, link
        else:
            assert (report.parent / unquote(link)).is_file(), link
    assert {Path(link).suffix for link in links if not link.startswith("#")} == {".png", ".svg"}


def test_links_work_when_they_are_followed(page):
    from selenium.webdriver.common.by import By

    page.find_element(By.CSS_SELECTOR, 'nav a[href="#toy.many"]').click()
    assert page.execute_script('return Math.abs(document.getElementById("toy.many").getBoundingClientRect().top)') < 40
    page.find_element(By.CSS_SELECTOR, '#toy\\.many figcaption a[href$=".png"]').click()
    assert page.current_url.endswith("/figures/toy.many.png")
    assert page.execute_script('return document.querySelector("img").naturalWidth') > 100


def test_the_page_does_not_scroll_sideways(page):
    page.execute_script('document.querySelectorAll("details").forEach(part => { part.open = true; })')
    wide, inner = page.execute_script("return [document.scrollingElement.scrollWidth, innerWidth]")
    assert wide <= page.width and inner == page.width
    # no text is cut off at the right either, but inside boxes that scroll
    outside = page.execute_script(
        """return [...document.querySelectorAll("main *")].filter(thing =>
        !thing.closest(".table") && !thing.closest("pre") && thing.getBoundingClientRect().right > arguments[0] + 0.5
    ).map(thing => thing.outerHTML.slice(0, 80))""",
        page.width,
    )
    assert outside == []


def test_text_of_experiments_is_text(page):
    assert page.title == "Experiments done again: dalembert"
    assert page.execute_script('return document.querySelectorAll("script, main b i").length') == 0
    text = page.execute_script("return document.body.textContent")
    assert text.count('<script>document.title = "taken over"</script>') > 30


def test_verdicts_are_counted_and_told_without_colour(page):
    tiles = page.execute_script('return [...document.querySelectorAll(".counts li")].map(tile => tile.innerText.split("\\n"))')
    assert tiles == [["5", "hold"], ["2", "do not hold"], ["2", "failed"]]
    shown = page.execute_script("""return Object.fromEntries([...document.querySelectorAll("article")].map(
        article => [article.id, article.querySelector(".verdict b").innerText]))""")
    assert shown["toy.good"] == "✓holds" and shown["toy.nan"] == "✗does not hold" and shown["toy.dying"] == "!failed"
    opened = page.execute_script('return document.querySelector("#toy\\\\.false details").open')
    assert opened and not page.execute_script('return document.querySelector("#toy\\\\.many details").open')


def test_text_has_contrast(page):
    """At least 4.5 : 1 on white, as WCAG 2 asks for."""
    colours = page.execute_script("""return [...new Set([...document.querySelectorAll("main *")]
        .map(thing => getComputedStyle(thing).color))]""")

    def luminance(colour):
        channels = [int(value) / 255 for value in colour.removeprefix("rgb(").removesuffix(")").split(",")]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert len(colours) >= 5
    for colour in colours:
        assert 1.05 / (luminance(colour) + 0.05) >= 4.5, colour


def test_the_page_says_what_made_it(page, report):
    import dalembert

    facts = page.execute_script('return document.querySelector(".facts").innerText')
    assert f"dalembert {dalembert.__version__}" in facts and "numpy" in facts
    assert f"{os.cpu_count()} processor" in facts and f"--out '{report.parent}' --format svg" in facts
