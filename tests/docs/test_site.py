"""The site: every public name is documented on it, its links lead somewhere, and it shows without a network."""

import html
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import types

import pytest
from test_documentation import DOCS, ROOT

import dalembert as da

PHONE, DESK = 390, 1400
SOME = ("index", "lobatto", "nonholonomic", "catalogue", "choosing", "tutorial-impacts", "reference/simulation")
"""Pages that every run of the tests looks at; all are looked at by `make test-all`."""


def built(source, out):
    """Sphinx, with warnings as errors."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", f"{out}-parsed", str(source), str(out)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    pytest.importorskip("furo", reason="the site is not built, its tools are not installed: pip install dalembert[docs]")
    out = tmp_path_factory.mktemp("documentation") / "site"
    done = built(DOCS, out)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def reference():
    pytest.importorskip("sphinx")
    sys.path.insert(0, str(DOCS))
    import reference

    return reference


def test_make_docs_builds_it_as_the_tests_do():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "-m sphinx -q -W --keep-going docs out/docs" in makefile.partition("\ndocs:")[2]


def test_broken_links_stop_the_build_and_a_page_that_nobody_lists_is_on_the_site(tmp_path):
    pytest.importorskip("furo")
    source = tmp_path / "docs"
    source.mkdir()
    for name in ("conf.py", "reference.py", "docstrings.py", "typeset.py", "arguments.toml", "_static"):
        (shutil.copytree if (DOCS / name).is_dir() else shutil.copy)(DOCS / name, source / name)
    (tmp_path / "README.md").write_text("# Start\n\n[A page](docs/page.md) and [code](code.py).\n")
    (tmp_path / "code.py").write_text("")
    (source / "index.md").write_text("```{toctree}\n:caption: Known\n\npage\n```\n")
    (source / "page.md").write_text("# Page\n\n## One\n\n[x](#one) [y](page.md#one) [z](../code.py)\n")
    (source / "new.md").write_text("# A new page\n")
    done = built(source, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert re.search(r'More.*href="new\.html"', (tmp_path / "out" / "page.html").read_text(), re.DOTALL)
    links = ["nowhere.md", "page.md#none", "#two", "../none.py"]
    broken = "\n\n".join(f"[x]({link})" for link in links)
    (source / "page.md").write_text(f"# Page\n\n{broken}\n\n![x](images/none.png)\n")
    done = built(source, tmp_path / "out")
    assert done.returncode != 0
    for target in ("nowhere.md", "none", "two", "../none.py", "images/none.png"):
        assert re.search(rf"page\.md.*{re.escape(target)}", done.stderr), target


# -- the reference -------------------------------------------------------------------------------------------------------


def inventory(site):
    """The names that other sites can link to (by intersphinx), with their addresses."""
    from sphinx.util.inventory import InventoryFile

    with (site / "objects.inv").open("rb") as file:
        found = InventoryFile.load(file, "", lambda base, path: path)
    return {name: item.uri for kind, items in found.items() if kind.startswith("py:") for name, item in items.items()}


def test_every_public_name_is_in_the_inventory_of_the_site(site):
    places = inventory(site)
    expected = {f"dalembert.{name}" for name in da.__all__ if not isinstance(getattr(da, name), types.ModuleType)}
    shared = {id(getattr(da, name)) for name in da.__all__}
    for module in ("systems", "forces", "tableaux", "schemes", "verify", "problems", "plot", "experiments"):
        exported = getattr(da, module)
        expected |= {f"dalembert.{module}.{name}" for name in exported.__all__ if id(getattr(exported, name)) not in shared}
    assert expected <= set(places), expected - set(places)
    assert places["dalembert.Trajectory.plot"].startswith("reference/simulation.html#")
    assert places["dalembert.LobattoIIIAB"].startswith("reference/methods.html#")
    assert places["dalembert.Mechanism.revolute"].startswith("reference/mechanisms.html#")


def test_no_public_name_is_without_a_docstring(reference):
    missing = []
    for entry in reference.public_names():
        if entry.directive != "autodata" and not inspect.getdoc(entry.value):
            missing.append(entry.name)
        for name, member in vars(entry.value).items() if inspect.isclass(entry.value) else ():
            documented = isinstance(member, (property, classmethod, staticmethod, types.FunctionType))
            if documented and not name.startswith("_") and not inspect.getdoc(getattr(entry.value, name)):
                missing.append(f"{entry.name}.{name}")
    assert not missing


def text_of(page):
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))))


def test_entries_have_signatures_tables_of_parameters_examples_and_aliases(site):
    simulation = text_of(site / "reference" / "simulation.html")
    assert "dalembert.simulate(system, method=None, *, q0=None" in simulation
    assert re.search(r"save_every \(int\) . store every so many steps", simulation) and ">>> run = da.simulate(" in simulation
    mechanisms = text_of(site / "reference" / "mechanisms.html")
    assert re.search(r"axis \(Any\) . the direction of the axis in the assembled pose", mechanisms)
    assert re.search(r"angles \([^)]*\) . angles of joints, as in \{hinge: 1\.2\}", mechanisms)
    assert "From a state to the parts of a mechanism." in text_of(site / "reference" / "pictures.html")
    assert "usage: dalembert run" in text_of(site / "reference" / "command.html")


def test_every_argument_of_what_a_user_calls_is_described(reference):
    callables = dict(reference.callables())
    assert {"simulate", "Hamiltonian", "Mechanism.revolute", "Trajectory.at", "fit", "explore", "plot.overview"} < set(
        callables
    )
    assert len(callables) > 200
    missing, used = {}, set()
    for name, value in callables.items():
        said = reference.sentences(name, value)
        own = "Args:" in (inspect.getdoc(value) or "")
        if not own and None in said.values():
            missing[name] = [argument for argument, sentence in said.items() if sentence is None]
        used |= {(section, argument) for section in reference.sections(name, value) for argument in said}
    assert not missing, "give them sentences in docs/arguments.toml"
    stale = {(section, argument) for section, known in reference.ARGUMENTS.items() for argument in known} - used
    assert not stale, "there are no such arguments"


def test_docstrings_become_restructured_text(reference):
    import docstrings

    text = "First *line*.\n\nWith `x_i`,\n\n    da.f(*x)\n\nOne\n- of\n  two\n\nExample:\n    >>> f(*a)\n    `b`\n"
    shown = list(docstrings.restructured(text.splitlines()))
    assert "    &a < b_i" in docstrings.restructured(["With", "", "    a < b_i"])
    assert shown[0] == r"First \*line\*." and shown[2] == "With ``x_i``,"
    assert shown[shown.index("One") + 1 :][:3] == ["", "- of", "  two"]
    assert shown[-3:] == ["Example:", "    >>> f(*a)", "    `b`"]


def test_names_in_the_text_lead_to_the_reference(site):
    page = (site / "getting-started.html").read_text(encoding="utf-8")
    assert re.search(r'<a [^>]*href="reference/systems\.html#dalembert\.consistent"[^>]*><code[^>]*>.*?da\.consistent', page)


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


# -- in a browser, which has no network ----------------------------------------------------------------------------------


PROBLEMS = """
const broken = [...document.images].filter(image => !(image.complete && image.naturalWidth > 0)).map(image => image.src);
const width = document.documentElement.clientWidth;
const scrolls = node => node && (["auto", "hidden"].includes(getComputedStyle(node).overflowX) || scrolls(node.parentElement));
const wide = [...document.querySelectorAll("article *")]
  .filter(node => node.getBoundingClientRect().right > width + 1 && !scrolls(node.parentElement))
  .map(node => node.outerHTML.slice(0, 80));
const wrong = [...document.querySelectorAll("mjx-merror, .problematic")].map(node => node.textContent);
const left = [...document.querySelectorAll("article .math")].filter(node => !node.querySelector("mjx-container")).length;
return {broken, wide, wrong, left, overflow: document.documentElement.scrollWidth - width};
"""
TYPESET = "MathJax.startup.promise.then(arguments[0])"


@pytest.fixture
def look(browser, screen, site):
    """A function that opens a page of the site at a width, with its mathematics typeset, and says what is wrong with it."""

    def open_page(name, width):
        screen(width)
        browser.get((site / f"{name}.html").as_uri())
        if browser.execute_script('return document.querySelector(".math") !== null'):
            browser.execute_async_script(TYPESET)
        found = {kind: value for kind, value in browser.execute_script(PROBLEMS).items() if value}
        errors = [entry["message"] for entry in browser.get_log("browser")]
        asked = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
        urls = {m["params"]["request"]["url"] for m in asked if m["method"] == "Network.requestWillBeSent"}
        remote = [url for url in urls if not url.startswith(("file:", "data:"))]
        return found | {kind: value for kind, value in {"errors": errors, "remote": remote}.items() if value}

    return open_page


def names_of_pages(site):
    return [str(path.relative_to(site).with_suffix("")) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_pages_show_without_errors_a_network_or_sideways_scrolling(look, site, width):
    assert set(SOME) < set(names_of_pages(site))
    found = {name: wrong for name in SOME if (wrong := look(name, width))}
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_all_pages_show_without_errors_a_network_or_sideways_scrolling(look, site, width):
    names = names_of_pages(site)
    assert len(names) > 40
    found = {name: wrong for name in names if (wrong := look(name, width))}
    assert not found


def test_mathematics_is_typeset_without_a_network(browser, look):
    browser.execute_cdp_cmd("Network.enable", {})
    conditions = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)
    try:
        assert not look("lobatto", DESK)
        heights = browser.execute_script(
            'return [...document.querySelectorAll("article div.math mjx-container")].map(e => e.getBoundingClientRect().height)'
        )
        fonts = browser.execute_script("return [...document.fonts].filter(f => f.status === 'loaded').map(f => f.family)")
    finally:
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", conditions | {"offline": False, "downloadThroughput": -1})
    assert heights and min(heights) > 15
    assert any(family.startswith("MJXTEX") for family in fonts)


@pytest.mark.parametrize("word", ["damping", "tolerance", "quaternion", "event"])
def test_the_search_finds_words_of_the_text(browser, screen, site, word):
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    screen(DESK)
    browser.get((site / "index.html").as_uri())
    browser.find_element(By.CSS_SELECTOR, "input[name=q]").send_keys(word, Keys.ENTER)
    waiting = WebDriverWait(browser, 20, ignored_exceptions=[WebDriverException])  # the page is left while it is asked
    waiting.until(lambda b: "finished" in b.find_element(By.ID, "search-results").text)
    found = browser.execute_script('return [...document.querySelectorAll("#search-results li a")].map(a => a.href)')
    assert found
    for href in found[:3]:
        page = site / href.partition("#")[0].partition("?")[0].rpartition("/site/")[2]
        # what has the same stem is found, too: damped for damping
        assert re.search(word[:4], text_of(page), re.IGNORECASE), (word, href)
    assert not browser.get_log("browser")


def test_dark_and_light_follow_the_system_and_a_button(browser, screen, site):
    from selenium.webdriver.common.by import By

    def background(scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    screen(DESK)
    browser.get((site / "lobatto.html").as_uri())
    assert background("dark") < 150 and background("light") > 700
    button = next(b for b in browser.find_elements(By.CSS_SELECTOR, "button.theme-toggle") if b.is_displayed())
    themes = set()
    for _ in range(3):
        button.click()
        themes.add(browser.execute_script("return document.body.dataset.theme"))
    assert themes == {"auto", "dark", "light"}


def test_a_page_has_its_contents_beside_it_and_a_menu_on_a_phone(browser, look):
    from selenium.webdriver.common.by import By

    look("lobatto", DESK)
    contents = browser.find_element(By.CSS_SELECTOR, ".toc-tree")
    titles = browser.execute_script('return [...document.querySelectorAll("article h2")].map(h => h.firstChild.textContent)')
    assert contents.is_displayed() and len(titles) > 1 and all(title in contents.text for title in titles)
    look("lobatto", PHONE)
    links = browser.find_element(By.CSS_SELECTOR, ".sidebar-tree a")
    assert links.location["x"] < 0
    browser.find_element(By.CSS_SELECTOR, ".mobile-header .nav-overlay-icon").click()
    browser.execute_async_script("setTimeout(arguments[0], 500)")
    assert links.location["x"] >= 0


def test_wide_pictures_keep_their_size_on_a_phone(browser, look):
    shares = {}
    for name in ("index", "tutorial-first-constraint", "tutorial-impacts"):
        look(name, PHONE)
        script = (
            'return [...document.querySelectorAll("article img")].map(i => [i.naturalWidth, i.getBoundingClientRect().width])'
        )
        shares |= {(name, natural): width / natural for natural, width in browser.execute_script(script) if natural > 500}
    assert len(shares) == 3 and min(shares.values()) > 0.79, shares
