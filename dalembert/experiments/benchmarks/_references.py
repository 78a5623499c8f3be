"""The certified digits, against which errors are measured."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import Any

import numpy as np


@functools.cache
def references() -> dict[str, Any]:
    """All of them, with what they come from."""
    text = (resources.files(__package__) / "references.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def reference(name: str) -> np.ndarray:
    """The certified positions of a problem at its end."""
    return np.array([float(x) for x in references()[name]["values"]])
