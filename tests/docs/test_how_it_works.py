"""The page that follows a call through the rooms names files and functions: all of them exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import dalembert

PACKAGE = Path(dalembert.__file__).parent
PAGE = (PACKAGE.parent / "docs" / "how-it-works.md").read_text()
HOPS = re.findall(r"`(\w+/\w+)\.py`: `(\w+)`", PAGE)
FILES = sorted({path for path in re.findall(r"`((?:\w+/)+\w+\.(?:py|html))`", PAGE)})
ROOMS = re.findall(r"`dalembert/(\w+)/`", PAGE)


@pytest.mark.parametrize(("module", "name"), HOPS, ids=[f"{module}:{name}" for module, name in HOPS])
def test_every_hop_is_there(module, name):
    found = importlib.import_module(f"dalembert.{module.replace('/', '.')}")
    classes = [value for value in vars(found).values() if isinstance(value, type) and value.__module__ == found.__name__]
    assert any(hasattr(place, name) for place in (found, *classes))


@pytest.mark.parametrize("path", FILES)
def test_every_file_is_there(path):
    assert (PACKAGE / path.removeprefix("dalembert/")).exists() or (PACKAGE.parent / path).exists()


def test_every_room_is_on_the_page():
    assert set(ROOMS) == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def test_no_call_takes_more_than_a_dozen_hops():
    for section in PAGE.split("\n## ")[1:]:
        assert all(int(hop) <= 12 for hop in re.findall(r"^\| (?:\d+ to )?(\d+) \|", section, flags=re.M))
