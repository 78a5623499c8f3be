"""The report in a browser, on a desk and on a phone: all is seen, every link leads somewhere, nothing comes from elsewhere."""

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
WIDTHS = {"desk": (1400, 900), "phone": (390, 844)}
REAL = ("jay_simeon.figure4.1", "small_jay2011.existence")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of toy experiments with every verdict, and of two real ones."""
    out = tmp_path_factory.mktemp("a report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_registry, "_registered", dict(_registry._registered))
        assert main(["reproduce", str(HERE / "toy_experiments.py"), *REAL, "--out", str(out), "--format", "svg"]) == 1
    return out / "report.html"


PAGES = ("report", "toy", "jay_simeon", "small_jay2011")


@pytest.fixture(params=WIDTHS)
def opened(request, report, browser, screen):
    """A function that opens a page of the report, at a width."""
    width, height = WIDTHS[request.param]
    screen(width, height)

    def open_page(name):
        browser.get(report.with_name(f"{name}.html").as_uri())
        browser.width = width  # of the screen: a phone widens innerWidth if the page is too wide
        return browser

    return open_page


@pytest.fixture
def page(opened):
    """The page of the toy experiments."""
    return opened("toy")


def test_there_is_a_page_for_each_document(report):
    assert sorted(path.stem for path in report.parent.glob("*.html")) == sorted(PAGES)
    assert all(path.stat().st_size < 100_000 for path in report.parent.glob("*.html"))  # the figures are files


def test_the_console_is_silent_and_nothing_is_fetched_from_elsewhere(opened, report, browser):
    for name in PAGES:
        opened(name)
        assert browser.get_log("browser") == []
        messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        assert all(url.startswith((report.parent.as_uri(), "data:")) for url in asked)


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


def test_all_figures_are_seen_and_wide_ones_stay_legible(opened):
    shares = {}
    for name in PAGES:
        shares |= seen_figures(opened(name))
    assert set(shares) == {"toy.good", "toy.many", "toy.false", "toy.nan", "toy.last", *REAL}
    assert all(share > 0.69 for share in shares.values())  # (toys are 1200 wide: a desk has room for 840)


def test_every_link_leads_somewhere(opened, report):
    ids, links = {}, []
    for name in PAGES:
        page = opened(name)
        ids[f"{name}.html"] = page.execute_script('return [...document.querySelectorAll("[id]")].map(thing => thing.id)')
        found = page.execute_script('return [...document.querySelectorAll("a")].map(link => link.getAttribute("href"))')
        links += [(f"{name}.html", link) for link in found]
    assert len(links) > 30 and all(len(known) == len(set(known)) for known in ids.values())
    for place, link in links:
        file, _, anchor = unquote(link).partition("#")
        assert (report.parent / (file or place)).is_file(), link
        assert not anchor or anchor in ids[file or place], link


def test_links_work_when_they_are_followed(opened, report):
    from selenium.webdriver.common.by import By

    page = opened("report")
    page.find_element(By.CSS_SELECTOR, 'nav a[href="toy.html#toy.many"]').click()
    assert page.execute_script('return Math.abs(document.getElementById("toy.many").getBoundingClientRect().top)') < 40
    files = page.find_element(By.CSS_SELECTOR, "#toy\\.many figcaption").text.split(", ")
    assert files == ["figures/toy.many.png", "figures/toy.many.svg"]
    page.find_element(By.LINK_TEXT, "All documents").click()
    assert page.current_url == report.as_uri()


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


def test_corrections_are_marked_in_the_index_quoted_there_and_told_apart_from_remarks(opened):
    page = opened("report")
    marked = page.execute_script("""return [...document.querySelectorAll("nav .mark.corrects")].map(
        mark => [mark.closest("li").querySelector("a").getAttribute("href"), mark.title])""")
    assert ["toy.html#toy.many", "corrects the document"] in marked
    quoted = page.execute_script('return [...document.querySelectorAll("nav details li")].map(part => part.textContent)')
    assert any("Nobody says three, it is two" in text for text in quoted)
    boxes = opened("toy").execute_script("""return [...document.querySelectorAll(".contradicts, .remark")].map(
        box => [box.closest("article").id, box.className, box.innerText.split("\\n")[0]])""")
    assert boxes == [["toy.good", "remark", "Remark"], ["toy.many", "contradicts", "The document errs"]]


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


def test_no_page_scrolls_sideways(opened):
    for name in PAGES:
        assert_nothing_is_cut_off(opened(name))


def test_text_of_experiments_is_text(opened):
    for name, least in (("report", 9), ("toy", 30)):
        page = opened(name)
        assert page.title.endswith(": dalembert") and page.title != "taken over"
        assert page.execute_script('return document.querySelectorAll("script, main b i").length') == 0
        assert page.execute_script("return document.body.textContent").count('<script>document.title = "taken over"') >= least


def test_what_agrees_and_what_corrects_is_counted_and_told_without_colour(opened):
    page = opened("report")
    tiles = page.execute_script('return [...document.querySelectorAll(".counts li")].map(tile => tile.innerText.split("\\n"))')
    assert tiles == [
        ["4", "agree with their documents ✓"],
        ["1", "corrects its document ≠"],
        ["2", "do not hold here ✗"],
        ["2", "failed !"],
    ]
    heads = page.execute_script('return [...document.querySelectorAll("nav h3 .soft")].map(part => part.innerText)')
    assert heads[0] == "7 results: 2 agree, 1 corrects it, 2 do not hold, 2 failed"
    page = opened("toy")
    shown = page.execute_script("""return Object.fromEntries([...document.querySelectorAll("article")].map(
        article => [article.id, article.querySelector(".verdict b").innerText]))""")
    assert shown["toy.good"] == "✓agrees with the document" and shown["toy.many"] == "≠corrects the document"
    assert shown["toy.nan"] == "✗does not hold here" and shown["toy.dying"] == "!failed: nothing can be said"
    opened_parts = page.execute_script('return document.querySelector("#toy\\\\.false details").open')
    assert opened_parts and not page.execute_script('return document.querySelector("#toy\\\\.many details").open')


def test_text_has_contrast(opened):
    """At least 4.5 : 1 on white, as WCAG 2 asks for."""
    script = 'return [...new Set([...document.querySelectorAll("main *")].map(thing => getComputedStyle(thing).color))]'
    colours = {colour for name in PAGES for colour in opened(name).execute_script(script)}

    def luminance(colour):
        channels = [int(value) / 255 for value in colour.removeprefix("rgb(").removesuffix(")").split(",")]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert len(colours) >= 5
    for colour in colours:
        assert 1.05 / (luminance(colour) + 0.05) >= 4.5, colour


def test_the_report_says_what_made_it(opened, report):
    import dalembert

    page = opened("report")
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
    browser.width = width
    names, seen, shares, boxes = [n for n in experiments.names() if not experiments.find(n).named_only], [], {}, []
    for document in dict.fromkeys(name.partition(".")[0] for name in names):
        browser.get(whole_report.path.with_name(f"{document}.html").as_uri())
        assert browser.get_log("browser") == []
        seen += browser.execute_script('return [...document.querySelectorAll("article")].map(part => part.id)')
        shares |= seen_figures(browser)
        assert_nothing_is_cut_off(browser)
        boxes += browser.execute_script(
            'return [...document.querySelectorAll(".contradicts")].map(b => b.closest("article").id)'
        )
    assert sorted(seen) == sorted(names) == sorted(shares) and min(shares.values()) > 0.7, shares
    against = {name for name in names if experiments.find(name).contradicts}
    assert set(boxes) == against and len(boxes) == len(against) > 10
    browser.get(whole_report.path.as_uri())
    assert_nothing_is_cut_off(browser)
    tiles = browser.execute_script('return [...document.querySelectorAll(".counts li b")].map(tile => Number(tile.innerText))')
    assert sum(tiles) == len(names)
    doubtful = [result.experiment.name for result in whole_report.results if not result.holds and not result.experiment.timed]
    assert not doubtful and whole_report.counts["failed"] == 0  # (seconds depend on what else the machine does)
