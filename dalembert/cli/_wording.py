"""Messages of the library in the words of the command line: `rtol=` is `--rtol` there."""

from __future__ import annotations

import re

OPTIONS = ("h", "steps", "t1", "t0", "rtol", "atol", "save_every", "save_to", "newton_tolerance", "q0", "p0", "v0", "y0", "z0",
           "lam0")  # fmt: skip
"""Arguments of `da.simulate` that are options of `dalembert run`."""

METHOD = r"\btake da\.(\w+\((?:[^()]|\([^()]*\))*\))"
"""Advice to take a method, whose arguments may be methods."""


def in_options(message: str) -> str:
    """A message in which arguments without a value are written as options.

    Example:
        >>> in_options("give h= in place of rtol=, or take da.CVA(da.Gauss(2))")
        "give --h in place of --rtol, or take --method 'CVA(Gauss(2))'"

    """
    named = re.sub(rf"\b({'|'.join(OPTIONS)})=(?![\w=.\"'(\[-])", lambda found: f"--{found[1].replace('_', '-')}", message)
    return re.sub(METHOD, lambda found: f"take --method '{found[1].replace('da.', '')}'", named)
