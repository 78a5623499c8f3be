"""The site: every public name is documented on it, the search finds it, and a browser shows each page as it should."""

import inspect
import json
import re
import subprocess
import sys
import types

import pytest
from test_documentation import DOCS, ROOT, load_builder

import dalembert as da

PHONE = 390


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("markdown")
    out = tmp_path_factory.mktemp("site")
    load_builder().build(ROOT, out)
    return out


@pytest.fixture(scope="module")
def reference():
    load_builder()
    import reference

    return reference


# -- the reference -------------------------------------------------------------------------------------------------------


def test_every_public_name_has_one_place_in_the_reference(reference):
    pages = reference.pages()
    anchors = [anchor for page in pages for anchor in page.anchors]
    assert len(anchors) == len(set(anchors))
    expected = {f"da.{name}" for name in da.__all__ if not isinstance(getattr(da, name), types.ModuleType)}
    for module in ("systems", "forces", "tableaux", "schemes", "verify", "problems", "plot", "experiments"):
        shared = {id(getattr(da, name)) for name in da.__all__}
        exported = getattr(da, module)
        expected |= {f"da.{module}.{name}" for name in exported.__all__ if id(getattr(exported, name)) not in shared}
    assert expected <= set(anchors), expected - set(anchors)
    assert "reference-other" not in {page.name for page in pages}, "a new module belongs to a page of docs/reference.py"


def test_no_public_name_is_without_a_docstring(reference):
    missing = []
    for entry in reference.public_names():
        if not entry.text:
            missing.append(entry.name)
        for name, member in reference.members(entry.value) if inspect.isclass(entry.value) else ():
            missing += [] if inspect.getdoc(member) else [f"{entry.name}.{name}"]
    assert not missing


def test_an_alias_is_described_by_the_string_beneath_it(reference):
    (drawing,) = (entry for entry in reference.public_names() if entry.name == "da.draw.Drawing")
    assert drawing.summary == "From a state to the parts of a mechanism."


def test_docstrings_become_paragraphs_mathematics_and_examples(reference):
    text = "First line.\n\nWith `x`,\n\n    a < b_i\n      c\n\n- one\n  more\n- two\n\nExample:\n    >>> 1 + 1\n    2\n"
    shown = reference.docstring(text)
    assert "<p>First line.</p>" in shown and "<p>With <code>x</code>,</p>" in shown
    assert "<pre><code>a &lt; b_i\n  c</code></pre>" in shown
    assert "<ul><li>one more</li><li>two</li></ul>" in shown
    assert '<p class="label">Example</p>' in shown and "1 + 1" in re.sub("<[^>]+>", "", shown)


def test_signatures_show_types_defaults_and_keywords(reference):
    def f(a: int, *rest: str, b: float = 1.0) -> "da.State": ...

    def g(x, *, y=None): ...

    assert reference.signature("f", f) == "f(a: int, *rest: str, b: float = 1.0) -> da.State"
    assert reference.signature("g", g) == "g(x, *, y=None)"
    assert "stages: int = 3" in reference.signature("da.LobattoIIIAB", da.LobattoIIIAB)


def test_names_in_the_text_lead_to_the_reference(site):
    page = (site / "getting-started.html").read_text(encoding="utf-8")
    assert '<a class="name" href="reference-systems.html#da.consistent"><code>da.consistent</code></a>' in page


def test_pages_stand_in_their_groups(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    groups = re.findall(r"<h2>([^<]+)</h2>\n<ul>", page.partition("<main>")[0])
    assert groups[:2] == ["Start", "Tutorials"] and groups[-1] == "Reference"
    assert "More" not in groups, "a new page belongs to a group of the navigation in docs/build.py"


def test_the_search_knows_headings_and_names(site):
    index = json.loads((site / "search-index.js").read_text(encoding="utf-8").partition("=")[2].rstrip(";\n"))
    hrefs = {entry["href"] for entry in index}
    assert {"getting-started.html#initial-values", "reference-methods.html#da.LobattoIIIAB"} <= hrefs
    for href in hrefs:
        assert (site / href.partition("#")[0]).is_file()


def test_the_command_builds_the_site(tmp_path):
    pytest.importorskip("markdown")
    command = [sys.executable, str(DOCS / "build.py"), "--out", str(tmp_path / "site")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert str(tmp_path / "site" / "index.html") in done.stdout.split()
    assert "docs/build.py" in (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ndocs:")[2]


@pytest.mark.parametrize("page", sorted(DOCS.glob("tutorial-*.md")), ids=lambda page: page.stem)
def test_tutorials_have_small_pictures_and_an_exercise_with_its_answer(page):
    text = page.read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]+\]\(images/([^)]+)\)", text)
    assert pictures
    for name in pictures:
        assert f'"{name}"' in text, f"{name} is not drawn by the page's own code"
        assert (DOCS / "images" / name).stat().st_size < 100_000
    exercise, _, answer = text.partition("## Exercise")[2].partition("<details")
    assert exercise.strip() and "```python" in answer


# -- in a browser --------------------------------------------------------------------------------------------------------


PROBLEMS = """
const broken = [...document.images].filter(image => !(image.complete && image.naturalWidth > 0)).map(image => image.src);
const width = document.documentElement.clientWidth;
const scrolls = node => node && (getComputedStyle(node).overflowX === "auto" || scrolls(node.parentElement));
const wide = [...document.querySelectorAll("main *")]
  .filter(node => node.getBoundingClientRect().right > width + 1 && !scrolls(node.parentElement))
  .map(node => node.outerHTML.slice(0, 80));
return {broken, wide, overflow: document.documentElement.scrollWidth - width, width};
"""


def test_pages_show_without_errors_broken_pictures_or_sideways_scrolling(browser, screen, site):
    found = {}
    for width in (PHONE, 1280):
        screen(width)
        for page in sorted(site.glob("*.html")):
            browser.get(page.as_uri())
            seen = browser.execute_script(PROBLEMS)
            assert seen["width"] <= width
            errors = [entry["message"] for entry in browser.get_log("browser")]
            if seen["broken"] or seen["overflow"] > 0 or seen["wide"] or errors:
                found[page.name, width] = seen, errors
    assert not found


def test_wide_pictures_keep_their_size_on_a_phone(browser, screen, site):
    screen(PHONE)
    shares = {}
    for name in ("index", "tutorial-first-constraint", "tutorial-impacts"):
        browser.get((site / f"{name}.html").as_uri())
        script = 'return [...document.querySelectorAll("main img")].map(i => [i.naturalWidth, i.getBoundingClientRect().width])'
        shares |= {(name, natural): width / natural for natural, width in browser.execute_script(script) if natural > 500}
    assert len(shares) == 3 and min(shares.values()) > 0.79, shares


def test_the_search_works_from_the_keyboard(browser, screen, site):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    screen(1280)
    browser.get((site / "index.html").as_uri())
    browser.find_element(By.TAG_NAME, "body").send_keys("/")
    box = browser.switch_to.active_element
    assert box.get_attribute("id") == "search"
    box.send_keys("lobattoiiiab")
    options = browser.find_elements(By.CSS_SELECTOR, "#found [role=option]")
    assert options[0].get_attribute("aria-selected") == "true" and "da.LobattoIIIAB" in options[0].text
    box.send_keys(Keys.ENTER)
    assert browser.current_url.endswith("reference-methods.html#da.LobattoIIIAB")
    box = browser.find_element(By.ID, "search")
    box.send_keys("nothing of this kind")
    assert browser.find_element(By.ID, "found").text == "Nothing found"
    box.send_keys(Keys.ESCAPE)
    assert not browser.find_element(By.ID, "found").is_displayed()


def test_the_menu_of_a_phone_opens(browser, screen, site):
    from selenium.webdriver.common.by import By

    screen(PHONE)
    browser.get((site / "index.html").as_uri())
    groups, menu = browser.find_element(By.ID, "groups"), browser.find_element(By.ID, "menu")
    assert not groups.is_displayed()
    menu.click()
    assert groups.is_displayed() and menu.get_attribute("aria-expanded") == "true"
