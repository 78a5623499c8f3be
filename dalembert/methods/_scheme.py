"""A composition scheme: the substeps of which a step is made."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from dalembert.errors import InputError


class Substep(NamedTuple):
    """A step of the basic method, or of its adjoint, with a fraction of h."""

    fraction: Fraction
    adjoint: bool


@dataclass(frozen=True, repr=False)
class Scheme:
    """Fractions of h with which a basic method is composed to a symmetric method of a higher order.

    Take one of the published schemes (`kahan_li(8)`, `scheme("suzuki-6")`, `scheme(8)`), or use `Scheme.of` for your own.

    Attributes:
        name: A label; the published schemes are found by it (`scheme`).
        fractions: The fractions of h as rational numbers, in the order of the substeps; they are symmetric, with sum 1.
        order: The order of the composition.
        basic_order: The least order of the basic method: 1 for schemes that alternate between a method and its adjoint,
            otherwise the even order of a symmetric method (2 for all published schemes).
        reference: Who published it.

    """

    name: str
    fractions: tuple[Fraction, ...]
    order: int
    basic_order: int
    reference: str

    @classmethod
    def of(
        cls, fractions: Iterable[Any], *, order: int, basic_order: int = 2, name: str = "user scheme", reference: str = ""
    ) -> Scheme:
        """A scheme from numbers of your own: ints, floats, fractions, decimals or strings such as "1/3" or "0.28".

        With `basic_order=1` the fractions belong to the method, its adjoint, the method, and so on.

        Raises:
            InputError: The fractions are not numbers, not symmetric, or their sum is not 1; or the order is not even.

        Example:
            >>> from dalembert import schemes
            >>> schemes.Scheme.of(["1/4", "1/4", "1/4", "1/4"], order=2).gammas
            (0.25, 0.25, 0.25, 0.25)

        """
        check_order(name, order, first=2)
        if basic_order != 1:
            check_order(f"the basic method of {name}, if it is symmetric,", basic_order, first=2)
        try:
            exact = tuple(map(Fraction, fractions))
        except (TypeError, ValueError, OverflowError, ZeroDivisionError):
            raise InputError(f"{name} needs a list of finite numbers as fractions of h; got {fractions!r}") from None
        if exact != exact[::-1] or (basic_order == 1 and len(exact) % 2):
            raise InputError(
                f"{name} must be symmetric: fractions with gamma_i = gamma_(m+1-i), and an even number of them "
                "if they alternate with the adjoint"
            )
        if not math.isclose(sum(exact), 1, rel_tol=1e-13):
            raise InputError(f"the fractions of {name} must have the sum 1; theirs is {float(sum(exact))!r}")
        return cls(name, exact, order, basic_order, reference)

    @property
    def gammas(self) -> tuple[float, ...]:
        """The fractions of h as floats, correctly rounded."""
        return tuple(map(float, self.fractions))

    def substeps(self, *, symmetric: bool) -> tuple[Substep, ...]:
        """The substeps, first one first, for a basic method that is symmetric, or for one that is not.

        A method Phi that is not symmetric takes turns with its adjoint: Psi_{gamma h} = Phi*_{gamma h/2} o Phi_{gamma h/2}.

        Example:
            >>> from dalembert import schemes
            >>> [(float(x), adjoint) for x, adjoint in schemes.strang().substeps(symmetric=False)]
            [(0.5, False), (0.5, True)]

        """
        if self.basic_order == 1:
            return tuple(Substep(x, adjoint=i % 2 == 1) for i, x in enumerate(self.fractions))
        if symmetric:
            return tuple(Substep(x, adjoint=False) for x in self.fractions)
        return tuple(Substep(x / 2, adjoint) for x in self.fractions for adjoint in (False, True))

    def __repr__(self) -> str:
        return f"Scheme({self.name!r}, order={self.order}, substeps={len(self.fractions)})"


def check_order(name: str, order: Any, first: int) -> None:
    if isinstance(order, bool) or not isinstance(order, int) or order < first or order % 2:
        raise InputError(f"{name} needs an even order >= {first}; got {order!r}")
