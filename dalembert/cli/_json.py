"""Printing JSON."""

from __future__ import annotations

import json
import math
from typing import Any


def as_json(thing: Any) -> str:
    """JSON of dictionaries, lists, words and numbers; it has no word for a number that is not finite: null.

    Example:
        >>> print(as_json({"error": float("inf")}))
        {
          "error": null
        }

    """
    return json.dumps(_finite(thing), indent=2, allow_nan=False)


def _finite(thing: Any) -> Any:
    if isinstance(thing, dict):
        return {key: _finite(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_finite(value) for value in thing]
    return None if isinstance(thing, float) and not math.isfinite(thing) else thing
