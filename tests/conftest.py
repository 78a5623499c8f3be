"""What tests of several folders share: Ctrl-C, and a browser for the pages that the library and its documentation write."""

import gc
import importlib.util
import shutil
import signal
from pathlib import Path

import pytest

collect_ignore_glob = ["conftest.py", "*/conftest.py"]  # two modules of one name; they have no doctests

TESTS = Path(__file__).parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")


def pytest_configure():
    """Ctrl-C reaches the processes that tests start, also where this one is a background job, in which it is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(50_000, 10, 10)  # to look for cycles among the many small objects of models took up to a tenth of the time


SHARING = (
    "accuracy",
    "compiler",
    "contact",
    "derivatives",
    "engine",
    "ensembles",
    "experiments",
    "explorer",
    "house",
    "impacts",
    "long_runs",
    "mechanisms",
    "methods",
    "modified",
    "parity",
    "plot",
    "problems",
    "reproduction",
    "systems",
    "tableaux",
)
"""Folders in which the tests of a file use the same models and runs."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests in a browser share it, the site and films, so that they share a process, too, with the other tests of their files.

    So do tests that share models and programs. All others are handed out one by one, last: they keep the processes busy until
    the end. First of all hooks, because pytest-xdist reads the groups in its own.
    """
    shown = {item.path for item in items if {"browser", "site"} & set(getattr(item, "fixturenames", ()))}
    for item in items:
        if item.path in shown:
            item.add_marker(pytest.mark.xdist_group("browser"))
        elif item.path.parent.name in SHARING and item.path.is_relative_to(TESTS):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session", autouse=True)
def drivers(request, tmp_path_factory):
    """Processes that share all tests between them share the work to compile drivers, too; few tests may not need any."""
    if hasattr(request.config, "workerinput") and len(request.session.items) > 1000:
        from shared_drivers import compile_together

        compile_together(tmp_path_factory.getbasetemp().parent / "drivers")


@pytest.fixture(scope="session")
def chromium():
    """Chromium without a window; tests that need it are skipped where it is missing."""
    found = {"chromium": CHROMIUM, "chromedriver": DRIVER, "selenium": importlib.util.find_spec("selenium")}
    missing = [name for name, place in found.items() if not place]
    if missing:
        pytest.skip(f"pages are not looked at in a browser, {', '.join(missing)} is not installed: "
                    "apt-get install chromium chromium-driver, pip install selenium")  # fmt: skip
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--window-size=1280,1000",
        "--enable-unsafe-swiftshader",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium):
    """The browser on an empty page, without a word of earlier tests in its logs; pages that play do not outlive their test."""
    chromium.get("about:blank")
    for kind in ("browser", "performance"):
        chromium.get_log(kind)
    yield chromium
    chromium.get("about:blank")


@pytest.fixture
def screen(browser):
    """A function that gives the browser a screen: a window has a least width, the emulated screen of a phone has not."""

    def emulate(width, height=900, scale=1):
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    return emulate
