"""How long a slider of `dalembert explore` takes to change the picture, in Chromium without a window.

python benchmarks/explore_latency.py                  every problem of the catalogue
python benchmarks/explore_latency.py bricard skate    some of them

Milliseconds by the browser's clock from the slider's event to the first new frames on the screen, server and drawing included:
the least and the median of twelve. Of each problem the first slider with a number is moved. Run it on a machine that does
nothing else.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

import dalembert as da
from dalembert.explorer._explore import subject
from dalembert.explorer._server import Server
from dalembert.explorer._session import Session

LOADED = """
const e = window.explorer;
return Boolean(e && e.panes && !e.active().some(p => p.stale || p.failed || !p.stage.run || p.stage.coming));
"""
SLIDE = """
const s = document.querySelector(`input[type=range][data-key='${arguments[0]}']`);
explorer.stats.latency = null; s.value = arguments[1]; s.dispatchEvent(new Event('input'));
"""
TIMES = 12


def browser() -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def wait(page: webdriver.Chrome, script: str, seconds: float = 120.0) -> float | None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := page.execute_script(script)) not in (None, False):
            return found
        time.sleep(0.02)
    return None


def latencies(page: webdriver.Chrome, name: str) -> list[float]:
    """Milliseconds of some slides; none if the page has no slider, or the model refuses where it leads."""
    chosen = subject(name, {}, {}, None, None, None, None, None)
    control = next((control for control in chosen.controls() if not control.whole), None)
    if control is None:
        return []
    found = []
    with Server(lambda: Session(chosen), port=0) as server:
        page.get(server.address.url)
        wait(page, LOADED)
        for k in range(TIMES):
            page.execute_script(SLIDE, control.key, control.value + 0.003 * (k + 1) * (control.high - control.value))
            taken = wait(page, "return explorer.stats.latency", 20.0)
            found += [] if taken is None else [float(taken)]
            time.sleep(0.3)  # the other frames come, as for a reader who looks
    return found


def main(names: list[str]) -> int:
    page = browser()
    try:
        print(f"{'problem':<40}{'least':>8}{'median':>8}  ms")
        for name in names or sorted(set(da.problems.__all__) - {"Problem"}):
            found = latencies(page, name)
            row = f"{min(found):8.0f}{statistics.median(found):8.0f}" if found else f"{'-':>8}{'-':>8}"
            print(f"{name:<40}{row}", flush=True)
    finally:
        page.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
