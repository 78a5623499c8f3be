"""Colours of parts, in the one form that every kind of picture understands."""

from __future__ import annotations

import functools
import re

from dalembert.errors import InputError


def normal_color(color: str) -> str:
    """A colour as #rrggbb, from #rgb, #rrggbb or a name that CSS or Matplotlib knows.

    Example:
        >>> normal_color("#0AF"), normal_color("tomato"), normal_color("tab:blue")
        ('#00aaff', '#ff6347', '#1f77b4')

    """
    text = color.strip().lower() if isinstance(color, str) else ""
    if re.fullmatch("#[0-9a-f]{6}", text):
        return text
    if re.fullmatch("#[0-9a-f]{3}", text):
        return "#" + "".join(2 * digit for digit in text[1:])
    found = _named(text)
    if found is None:
        raise InputError(f'the colour of a part is "#rgb", "#rrggbb" or a name such as "tomato" or "tab:blue"; got {color!r}')
    return found


@functools.cache
def _named(name: str) -> str | None:
    from matplotlib.colors import is_color_like, to_hex

    if name == "none" or not re.fullmatch(r"[a-z:]+|c\d", name):  # (Matplotlib reads "0.5" and "none" as colours, too)
        return None
    return next((to_hex(spelt) for spelt in (name, name.upper()) if is_color_like(spelt)), None)  # C0 to C9 are capital
