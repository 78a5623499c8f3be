"""The files of the page: what the server sends and what a notebook shows are the same."""

from __future__ import annotations

from importlib import resources

SCRIPTS = ("scene.js", "plots.js", "controls.js", "explorer.js")
"""One module, in this order: a widget of a notebook is one file."""


def _read(name: str) -> str:
    return resources.files("dalembert.explorer").joinpath(name).read_text(encoding="utf-8")


def template() -> str:
    """The page, which is empty: the script fills it."""
    return _read("index.html")


def script() -> str:
    """The script as one module."""
    return "\n".join(_read(name) for name in SCRIPTS)


def style() -> str:
    """The look."""
    return _read("explore.css")
