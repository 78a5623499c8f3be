"""The Butcher tableau: coefficients A, b, c as float64 arrays, and as the exact numbers behind them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dalembert.errors import InputError
from dalembert.tableaux._digits import DIGITS, mpmath, rounded, to_multiprecision
from dalembert.tableaux._parse import matrix_of_fractions, vector_of_fractions
from dalembert.tableaux._text import one_line, table

COMPARED_BITS = 266
"""Tableaux are equal if their coefficients agree in so many significant bits (80 decimal digits)."""


Matrix = npt.NDArray[np.float64]
K = TypeVar("K", bound="Coefficients")


class Fractions(NamedTuple):
    """Coefficients A, b, c as rational numbers, rows of A first."""

    A: tuple[tuple[Fraction, ...], ...]
    b: tuple[Fraction, ...]
    c: tuple[Fraction, ...]


class Exact(NamedTuple):
    """Coefficients A, b, c as mpmath matrices (b and c are columns) with 100 significant digits."""

    A: Any
    b: Any
    c: Any


@dataclass(frozen=True, eq=False, repr=False)
class Coefficients:
    """Named coefficients as rational numbers, and as read-only float64 arrays in attributes of the same names.

    They are immutable and hashable, and are equal if they agree to 80 digits.
    """

    name: str
    fractions: Any
    digits: int = DIGITS

    def __post_init__(self) -> None:
        for label, entries in self.fractions._asdict().items():
            rounded_once = np.array(entries, dtype=object).astype(np.float64)
            rounded_once.setflags(write=False)
            object.__setattr__(self, label, rounded_once)

    @property
    def stages(self) -> int:
        """The number of stages s."""
        return len(self.fractions.b)

    def multiprecision(self, digits: int) -> tuple[np.ndarray, ...]:
        """The vectors and matrices as arrays of mpmath numbers, rounded to that many digits."""
        parts = (_each(part, lambda x: to_multiprecision(x, digits)) for part in self.fractions)
        return tuple(np.array(part, dtype=object) for part in parts)

    @cached_property
    def _compared(self) -> tuple[Any, ...]:
        return _each(self.fractions, lambda x: rounded(x, COMPARED_BITS))

    def __eq__(self, other: object) -> bool:
        return self._compared == other._compared if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self._compared)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.fractions, self.digits)


@dataclass(frozen=True, eq=False, repr=False)
class Tableau(Coefficients):
    """Coefficients (A, b, c) of an s-stage Runge-Kutta method.

    One step of size h for y' = f(t, y) reads::

        Y_i = y_0 + h sum_j a_ij f(t_0 + c_j h, Y_j),    i = 1, ..., s
        y_1 = y_0 + h sum_j b_j f(t_0 + c_j h, Y_j)

    Make one from your own numbers with `Tableau.of`, or take one of the families (`gauss`, `lobatto_iiia`, ...).

    Attributes:
        name: A label; it plays no part in comparisons.
        fractions: The coefficients as rational numbers, irrational ones rounded to 100 digits.
        digits: How many decimal digits of `fractions` can be trusted: 100, or 15 if they were given as floats.
        A: The matrix a_ij as a read-only float64 array, correctly rounded; likewise `b` and `c`.

    Tableaux are immutable and hashable, and are equal if their coefficients agree to 80 digits.

    >>> from dalembert.tableaux import lobatto_iiia
    >>> print(lobatto_iiia(3))
    Lobatto IIIA
      0 |    0    0      0
    1/2 | 5/24  1/3  -1/24
      1 |  1/6  2/3    1/6
    ----+-----------------
        |  1/6  2/3    1/6
    """

    fractions: Fractions
    A: Matrix = field(init=False)
    b: Matrix = field(init=False)
    c: Matrix = field(init=False)

    @classmethod
    def of(cls, A: Any, b: Any, c: Any = None, *, name: str = "user tableau") -> "Tableau":
        """A tableau from numbers of your own: ints, floats, fractions, mpmath numbers or strings such as "1/3".

        Without c, the row sums of A are taken: c_i = sum_j a_ij. Fractions and strings are kept exactly;
        floats are taken as numbers that are known to 15 digits.

        Raises:
            ValueError: A is not square, b or c does not match it, or an entry is not a finite number.

        >>> midpoint = Tableau.of([["1/2"]], [1], name="implicit midpoint rule")
        >>> midpoint.c
        array([0.5])
        """
        rows, known_A = matrix_of_fractions(A)
        weights, known_b = vector_of_fractions("b", b, len(rows))
        if c is None:
            nodes, known_c = tuple(sum(row, start=Fraction(0)) for row in rows), known_A
        else:
            nodes, known_c = vector_of_fractions("c", c, len(rows))
        return cls(name, Fractions(rows, weights, nodes), min(known_A, known_b, known_c))

    @property
    def exact(self) -> Exact:
        """The coefficients as new mpmath matrices with 100 digits, whatever ``mpmath.mp.dps`` is.

        >>> from dalembert.tableaux import gauss
        >>> import mpmath
        >>> with mpmath.workdps(40):
        ...     print(gauss(2).exact.c[0])
        0.2113248654051871177454256097490212721762
        """
        return Exact(*(mpmath().mp.matrix(part.tolist()) for part in self.multiprecision(DIGITS)))

    def __repr__(self) -> str:
        return one_line(self.name, *self.fractions)

    def __str__(self) -> str:
        return table(self.name, *self.fractions)


def _each(part: Any, function: Callable[[Fraction], Any]) -> Any:
    """The same vector or matrix with a function applied to every coefficient."""
    return function(part) if isinstance(part, Fraction) else tuple(_each(entry, function) for entry in part)


def checked(value: Any, kind: type[K]) -> K:
    """Refuse what are no coefficients of a kind."""
    if not isinstance(value, kind):
        known = "da.tableaux.gauss(3)" if kind is Tableau else "da.tableaux.gauss_lobatto(3)"
        raise InputError(f"coefficients are a da.tableaux.{kind.__name__}, such as {known}; got {type(value).__name__}")
    return value
