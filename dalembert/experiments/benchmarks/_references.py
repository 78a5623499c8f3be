"""The certified digits, against which errors are measured: references/NAME.toml, by benchmarks/references.py.

`agreement` is how far both methods are apart in the positions of the problem at `t`, `relative` the same for each position
relative to its own size, and `switches` how often a maximum in the model changes its branch. Of Bricard's mechanism it is P_3
at t = 1, 2, ..., 10.
"""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import Any

import numpy as np


@functools.cache
def references() -> dict[str, Any]:
    """All of them by the names of problems, with what they come from."""
    files = (resources.files(__package__) / "references").iterdir()
    return {file.name.removesuffix(".toml"): tomllib.loads(file.read_text(encoding="utf-8")) for file in files}


def reference(name: str) -> np.ndarray:
    """The certified positions of a problem at its end."""
    return np.array([float(x) for x in references()[name]["values"]])
