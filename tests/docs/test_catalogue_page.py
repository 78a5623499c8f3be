"""docs/catalogue.md says what the docstrings say, of every problem, with a picture of each."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from PIL import Image

import dalembert as da
from dalembert.cli import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
NAMES = sorted(set(da.problems.__all__) - {"Problem"})
TEXT = (DOCS / "catalogue.md").read_text(encoding="utf-8")


def test_every_problem_is_on_the_page_once():
    assert sorted(re.findall(r"^### (\w+)$", TEXT, re.MULTILINE)) == NAMES


def test_every_problem_has_a_thumbnail_at_the_top():
    top = TEXT.partition("\n## ")[0]
    assert sorted(re.findall(r"^\[!\[\]\(images/catalogue/(\w+)\.png\) [\w ]+\]\(#(\w+)\)$", top, re.MULTILINE)) == [
        (name, name) for name in NAMES
    ]


def test_walls_are_counted_among_the_constraints():
    rows = {name: TEXT.partition(f"\n### {name}\n")[2].partition("| constraints | ")[2].partition(" |")[0] for name in NAMES}
    for name in NAMES:
        walls = getattr(da.problems, name)().system.n_unilateral
        assert (f"{walls} unilateral" in rows[name]) if walls else ("unilateral" not in rows[name]), name
    assert sum("unilateral" in row for row in rows.values()) > 3 and "holonomic" in rows["double_pendulum"]


def test_the_page_is_up_to_date():
    spec = importlib.util.spec_from_file_location("docs_catalogue", DOCS / "catalogue.py")
    assert spec is not None and spec.loader is not None
    sys.path.insert(0, str(DOCS))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.page() == TEXT, "write the page again: python docs/catalogue.py"


@pytest.mark.parametrize("name", NAMES)
def test_every_problem_has_a_small_picture_of_its_own(name):
    path = DOCS / "images" / "catalogue" / f"{name}.png"
    assert f"(images/catalogue/{name}.png)" in TEXT and path.stat().st_size < 60_000
    with Image.open(path) as picture:
        colors = picture.convert("RGB").getcolors(picture.width * picture.height)
        assert 200 <= picture.width <= 800 and colors is not None
        painted = sum(count for count, color in colors if min(color) < 240)
        assert painted > 0.005 * picture.width * picture.height  # not blank


def test_no_picture_is_left_over():
    assert sorted(path.stem for path in (DOCS / "images" / "catalogue").iterdir()) == NAMES


def test_the_first_and_the_last_command_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\| run it \| `dalembert ([^`]+)` \|$", TEXT, re.MULTILINE)
    assert sorted(command.split()[1] for command in commands) == NAMES
    for command in (commands[0], commands[-1]):
        assert main(command.split()) == 0 and (tmp_path / "run.png").exists()
