"""Coefficients as users write them, turned into rationals, with errors that name the entry and the fix."""

from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

from dalembert.errors import InputError
from dalembert.tableaux._digits import DIGITS, to_fraction

FLOAT_DIGITS = 15
"""Decimal digits to which a coefficient given as a float is known."""


def matrix_of_fractions(A: Any) -> tuple[tuple[tuple[Fraction, ...], ...], int]:
    """The square matrix A as rows of rationals, and the number of digits to which they are known."""
    rows = [_entries(f"A[{i}]", row) for i, row in enumerate(_entries("A", A.tolist() if hasattr(A, "tolist") else A))]
    s = len(rows)
    if s == 0 or any(len(row) != s for row in rows):
        lengths = ", ".join(str(len(row)) for row in rows)
        raise InputError(f"A must be square, s rows of s coefficients; got {s} rows of lengths [{lengths}]")
    parsed = [[_parsed(f"A[{i}][{j}]", entry) for j, entry in enumerate(row)] for i, row in enumerate(rows)]
    return tuple(tuple(x for x, _ in row) for row in parsed), min(known for row in parsed for _, known in row)


def vector_of_fractions(label: str, vector: Any, s: int) -> tuple[tuple[Fraction, ...], int]:
    """The vector b or c as s rationals, and the number of digits to which they are known."""
    entries = _entries(label, vector)
    if len(entries) != s:
        raise InputError(f"{label} must have {s} entries, one for each row of A; got {len(entries)}")
    parsed = [_parsed(f"{label}[{i}]", entry) for i, entry in enumerate(entries)]
    return tuple(x for x, _ in parsed), min(known for _, known in parsed)


def _entries(label: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InputError(f"{label} must be a list of coefficients; got {values!r}")
    return list(values)


def _parsed(label: str, entry: Any) -> tuple[Fraction, int]:
    """The entry as a rational within the range of float64, and the number of digits to which it is known."""
    try:
        x, known = _rational(entry)
        float(x)
    except TypeError:
        raise InputError(
            f"{label} = {entry!r} is not a real number; give an int, a float, a fraction or a string like '1/3'"
        ) from None
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InputError(f"{label} = {entry!r} is not a finite number; every coefficient must be one") from None
    return x, known


def _rational(entry: Any) -> tuple[Fraction, int]:
    if isinstance(entry, str):
        return Fraction(entry.replace(" ", "")), DIGITS
    if isinstance(entry, Rational) and not isinstance(entry, bool):
        return Fraction(int(entry.numerator), int(entry.denominator)), DIGITS
    if isinstance(entry, Decimal):
        return Fraction(entry), DIGITS
    if hasattr(entry, "_mpf_"):
        return to_fraction(entry), min(DIGITS, entry.context.dps)
    if isinstance(entry, Real) and not isinstance(entry, bool):
        return Fraction(float(entry)), FLOAT_DIGITS
    raise TypeError
