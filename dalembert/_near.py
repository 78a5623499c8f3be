"""Near matches of a name that was not found."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str]) -> str:
    """Near matches of a name, as a clause to append to a sentence; empty if there are none.

    Example:
        >>> suggestion("duble_pendulum", ["pendulum", "double_pendulum"])
        ': did you mean double_pendulum or pendulum?'

    """
    lower = {candidate.lower(): candidate for candidate in known}
    close = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.55)]
    return f": did you mean {' or '.join(close)}?" if close else ""
