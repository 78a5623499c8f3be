"""Tableaux as text."""

from collections.abc import Sequence
from fractions import Fraction

LARGEST_SHOWN = 9999
"""Fractions are written as p/q up to this denominator, and as decimals beyond it."""

WRITTEN_OUT = 3
"""Up to so many stages the one-line form lists all coefficients."""


def table(name: str, A: Sequence[Sequence[Fraction]], b: Sequence[Fraction], c: Sequence[Fraction]) -> str:
    """The Butcher tableau: c and A above the line, b below it."""
    cells = [[_number(x) for x in row] for row in (*A, b)]
    nodes = [*(_number(x) for x in c), ""]
    node_width = max(len(node) for node in nodes)
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    lines = [
        f"{node:>{node_width}} | " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        for node, row in zip(nodes, cells, strict=True)
    ]
    rule = "-" * node_width + "-+-" + "-" * (len(lines[0]) - node_width - 3)
    return "\n".join([name, *lines[:-1], rule, lines[-1]])


def one_line(name: str, A: Sequence[Sequence[Fraction]], b: Sequence[Fraction], c: Sequence[Fraction]) -> str:
    """The name and the number of stages, with the coefficients if they are few."""
    if len(b) > WRITTEN_OUT:
        return f"Tableau({name!r}, stages={len(b)})"
    rows = ", ".join(_list(row) for row in A)
    return f"Tableau({name!r}, stages={len(b)}, A=[{rows}], b={_list(b)}, c={_list(c)})"


def _list(entries: Sequence[Fraction]) -> str:
    return "[" + ", ".join(_number(x) for x in entries) + "]"


def _number(x: Fraction) -> str:
    return str(x) if x.denominator <= LARGEST_SHOWN else f"{float(x):.6g}"
