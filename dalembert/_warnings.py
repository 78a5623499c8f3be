"""Warnings that name the line of the user's code that led to them, however many calls of libraries lie between."""

from __future__ import annotations

import sys
import warnings

LIBRARIES = {"dalembert", "numpy", "scipy", *sys.stdlib_module_names}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of what the nearest caller outside of the package, and of libraries that it calls, did."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        frame = frame.f_back
    module, seen = frame.f_globals.get("__name__", ""), frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, module, seen)
