"""Draws the pictures of README.md and of the tutorials again (docs/catalogue.py draws those of the catalogue).

python docs/illustrations.py
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent


def draw_pictures(folder: Path) -> list[Path]:
    """Draw the pictures of README.md and docs/."""
    import dalembert as da
    from dalembert import plot

    folder.mkdir(parents=True, exist_ok=True)
    problem = da.problems.double_pendulum()
    run = da.simulate(problem, da.LobattoIIIAB(stages=3), h=0.12, steps=5000)
    figure = plot.overview(run, problem=problem, coordinates=["x1", "z2"])
    run.animate(folder / "double_pendulum.gif", window=(0.0, 5.0), fps=16)
    pictures = [plot.save(figure, folder / "double_pendulum.png", dpi=110), folder / "double_pendulum.gif"]
    for page in [*sorted(DOCS.glob("tutorial-*.md")), DOCS / "varying-steps.md"]:
        pictures += draw_page(page, folder)
    return pictures


def draw_page(page: Path, folder: Path) -> list[Path]:
    """The pictures that a page shows and that its own code draws: its blocks are run in a directory of their own."""
    text = page.read_text(encoding="utf-8")
    names = re.findall(r"!\[[^\]]*\]\(images/([^)]+)\)", text)
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        exec(compile(code, str(page), "exec"), {"__name__": "__documentation__"})
        return [Path(shutil.copy(name, folder / name)) for name in names]


if __name__ == "__main__":
    print("\n".join(str(path) for path in draw_pictures(DOCS / "images")))
