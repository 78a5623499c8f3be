"""The report in a browser, on a desk and on a phone: everything is seen, every link leads somewhere, nothing is fetched."""

import json
import os
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from dalembert import experiments
from dalembert.cli import main
from dalembert.experiments import _registry
from dalembert.reproduction import reproduce

HERE = Path(__file__).parent
WIDTHS = {"desk": (1280, 900), "phone": (390, 844)}
REAL = ("jay_simeon.figure4.1", "small_jay2011.existence")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of toy experiments with every verdict, and of two real ones."""
    out = tmp_path_factory.mktemp("a report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_registry, "_registered", dict(_registry._registered))
        assert main(["reproduce", str(HERE / "toy_experiments.py"), *REAL, "--out", str(out), "--format", "svg"]) == 1
    return out / "report.html"


@pytest.fixture(params=WIDTHS)
def page(request, report, browser, screen):
    """The report, opened at a width."""
    width, height = WIDTHS[request.param]
    screen(width, height)
    browser.get(report.as_uri())
    browser.width = width  # of the screen: a phone widens innerWidth if the page is too wide
    return browser


def test_the_console_is_silent_and_nothing_is_fetched(page, report):
    assert page.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith("data:")] == [report.as_uri()]


def seen_figures(page):
    """By experiment, at which share of its size its figure is shown: loaded, and beginning where its box does."""
    found = page.execute_script("""return [...document.querySelectorAll("article img")].map(image => {
        const part = image.getBoundingClientRect(), box = image.closest(".box").getBoundingClientRect();
        return [image.closest("article").id, image.complete && image.naturalWidth, part.width, part.height, part.left,
                box.left, box.right, image.alt];
    })""")
    for name, natural, width, height, left, start, end, alt in found:
        assert natural and width > 20 and height > 20 and alt, name
        assert 0 <= left == start < end <= page.width, name
    return {name: width / (natural / 2) for name, natural, width, *_ in found}


def test_all_figures_are_seen_and_wide_ones_stay_legible(page):
    shares = seen_figures(page)
    assert set(shares) == {"toy.good", "toy.many", "toy.false", "toy.nan", "toy.last", *REAL}
    assert all(share > 0.69 for share in shares.values())  # (toys are 1200 wide: a desk has room for 840)


def test_every_link_leads_to_something_on_the_page(page):
    links = page.execute_script('return [...document.querySelectorAll("a")].map(link => link.getAttribute("href"))')
    ids = page.execute_script('return [...document.querySelectorAll("[id]")].map(thing => thing.id)')
    assert len(ids) == len(set(ids)) and len(links) > 20
    for link in links:
        assert link.startswith("#") and unquote(link[1:]) in ids, link


def test_links_work_when_they_are_followed(page, report):
    from selenium.webdriver.common.by import By

    page.find_element(By.CSS_SELECTOR, 'nav a[href="#toy.many"]').click()
    assert page.execute_script('return Math.abs(document.getElementById("toy.many").getBoundingClientRect().top)') < 40
    caption = page.find_element(By.CSS_SELECTOR, "#toy\\.many figcaption").text
    assert caption == "Beside this page: figures/toy.many.png, figures/toy.many.svg"
    assert all((report.parent / name).is_file() for name in caption.partition(": ")[2].split(", "))


def test_a_figure_is_enlarged_in_place_and_closed_again(page):
    from selenium.webdriver.common.by import By

    image = page.find_element(By.CSS_SELECTOR, "#toy\\.many img")
    close = page.find_element(By.CSS_SELECTOR, "#toy\\.many .close")
    before = image.size["width"]
    assert not close.is_displayed()
    image.click()
    assert image.size["width"] > before and image.size["width"] >= 1200
    box = page.execute_script('return document.querySelector("#toy\\\\.many .box").getBoundingClientRect().toJSON()')
    assert (box["left"], box["top"]) == (0, 0)
    assert box["width"] == page.execute_script("return document.documentElement.clientWidth")  # all but the page's scroll bar
    assert page.execute_script("return document.scrollingElement.scrollWidth") <= page.width
    close.click()
    assert image.size["width"] == before and not close.is_displayed()


def test_contradictions_are_counted_marked_in_the_index_and_told_apart_from_remarks(page):
    marked = page.execute_script("""return [...document.querySelectorAll("nav .against")].map(
        mark => [mark.closest("li").querySelector("a").getAttribute("href"), mark.title])""")
    assert marked == [["#toy.many", "contradicts the document"]]
    boxes = page.execute_script("""return [...document.querySelectorAll(".contradicts, .remark")].map(
        box => [box.closest("article").id, box.className, box.innerText.split("\\n")[0]])""")
    toys = [box for box in boxes if box[0].startswith("toy")]
    assert toys == [["toy.good", "remark", "Remark"], ["toy.many", "contradicts", "Contradicts the document"]]


def assert_nothing_is_cut_off(page):
    """The page does not scroll sideways, and no text is cut off at the right either, but inside boxes that scroll."""
    page.execute_script('document.querySelectorAll("details").forEach(part => { part.open = true; })')
    wide, inner = page.execute_script("return [document.scrollingElement.scrollWidth, innerWidth]")
    assert wide <= page.width and inner == page.width
    outside = page.execute_script(
        """return [...document.querySelectorAll("main *")].filter(thing =>
        !thing.closest(".table, .box, pre") && thing.getBoundingClientRect().right > arguments[0] + 0.5
    ).map(thing => thing.outerHTML.slice(0, 80))""",
        page.width,
    )
    assert outside == []


def test_the_page_does_not_scroll_sideways(page):
    assert_nothing_is_cut_off(page)


def test_text_of_experiments_is_text(page):
    assert page.title == "Experiments done again: dalembert"
    assert page.execute_script('return document.querySelectorAll("script, main b i").length') == 0
    text = page.execute_script("return document.body.textContent")
    assert text.count('<script>document.title = "taken over"</script>') > 30


def test_verdicts_are_counted_and_told_without_colour(page):
    tiles = page.execute_script('return [...document.querySelectorAll(".counts li")].map(tile => tile.innerText.split("\\n"))')
    assert tiles == [["5", "hold"], ["2", "do not hold"], ["2", "failed"], ["1", "contradicts its document ≠"]]
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
    assert re.search(r"\btime\s+(\d+ min \d+|\d+\.\d) s in all, with \d+ process", facts)
    assert f"{os.cpu_count()} processor" in facts and f"--out '{report.parent}' --format svg" in facts


# -- the whole report ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole_report(tmp_path_factory):
    """The default report of all experiments, as `make run` makes it."""
    return reproduce(out=tmp_path_factory.mktemp("whole"))


@pytest.mark.slow
@pytest.mark.parametrize("device", WIDTHS)
def test_the_report_of_all_experiments_is_complete_and_legible(whole_report, browser, screen, device):
    width, height = WIDTHS[device]
    screen(width, height)
    browser.get(whole_report.path.as_uri())
    browser.width = width
    assert browser.get_log("browser") == []
    names = experiments.names()
    assert browser.execute_script('return [...document.querySelectorAll("article")].map(part => part.id)') == names
    shares = seen_figures(browser)
    assert list(shares) == names and min(shares.values()) > 0.7, shares
    assert_nothing_is_cut_off(browser)
    against = {name for name in names if experiments.find(name).contradicts}
    shown = browser.execute_script(
        'return [...document.querySelectorAll(".contradicts")].map(box => box.closest("article").id)'
    )
    assert set(shown) == against and len(shown) == len(against) > 10
    tile = browser.execute_script('return document.querySelector(".counts .against").innerText')
    assert tile.split("\n")[0] == str(len(against))
    doubtful = [result.experiment.name for result in whole_report.results if not result.holds and not result.experiment.timed]
    assert not doubtful and whole_report.counts["failed"] == 0  # (seconds depend on what else the machine does)
