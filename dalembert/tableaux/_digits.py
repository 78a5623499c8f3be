"""Numbers beyond float64: private mpmath contexts, and exact rationals in which tableaux keep their coefficients."""

from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any

DIGITS = 100
"""Decimal digits to which the coefficients of the built-in families are known."""

LARGEST_DENOMINATOR = 10**6
"""A coefficient that agrees to `DIGITS` digits with a fraction of a smaller denominator is that fraction."""


def mpmath() -> Any:
    """The mpmath module, imported when it is first needed."""
    return import_module("mpmath")


@cache
def context(digits: int) -> Any:
    """An mpmath context of its own with that many digits; the caller's ``mpmath.mp`` keeps its precision."""
    own = mpmath().MPContext()
    own.dps = digits
    return own


def to_multiprecision(x: Fraction, digits: int) -> Any:
    """The rational x rounded to that many digits."""
    return context(digits).mpf(x.numerator) / x.denominator


def to_fraction(x: Any) -> Fraction:
    """The finite mpf x as a rational, without rounding."""
    sign, mantissa, exponent, _ = x._mpf_
    if not mantissa and exponent:
        raise OverflowError(f"{x} is not finite")
    return Fraction((-1) ** int(sign) * int(mantissa)) * Fraction(2) ** int(exponent)


def recognised(x: Any) -> Fraction:
    """The coefficient that x approximates: a fraction of small denominator, or x rounded to `DIGITS` digits.

    x must be correct to a few digits more than `DIGITS`.
    """
    simple = to_fraction(x).limit_denominator(LARGEST_DENOMINATOR)
    if abs(x - to_multiprecision(simple, x.context.dps)) < x.context.mpf(10) ** -DIGITS:
        return simple
    return to_fraction(context(DIGITS).mpf(x))


def rounded(x: Fraction, bits: int) -> Fraction:
    """The rational x rounded to that many significant binary digits."""
    magnitude = x.numerator.bit_length() - x.denominator.bit_length()
    if abs(x) < Fraction(2) ** magnitude:
        magnitude -= 1
    unit = Fraction(2) ** (magnitude + 1 - bits)
    return round(x / unit) * unit
