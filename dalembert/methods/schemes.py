"""Composition schemes: how a method of high order is made of many substeps of a simple one.

    da.compose(da.Rattle(), da.schemes.kahan_li(8))        # order 8, symplectic, on the constraints

A symmetric method Psi_h of order 2 becomes a symmetric method of order p by

    Psi_{gamma_m h} o ... o Psi_{gamma_1 h},    gamma_i = gamma_{m+1-i},    gamma_1 + ... + gamma_m = 1,

if the gamma_i satisfy the order conditions, and a method Phi_h of order 1 with its adjoint Phi*_h becomes one by

    Phi*_{beta_s h} o Phi_{alpha_s h} o ... o Phi*_{beta_1 h} o Phi_{alpha_1 h}.

Every gamma scheme serves such a Phi too, with Psi_h = Phi*_{h/2} o Phi_{h/2}. E. Hairer, C. Lubich and G. Wanner,
Geometric Numerical Integration, 2nd edition, Springer 2006, section V.3. Structure that the basic method keeps (symplecticity,
constraints, reversibility) is kept. Each function returns a `Scheme`; the digits are those of composition_schemes.toml.

Deviations from the print:
    - The book begins with the adjoint: compose the adjoint of the method for that.
    - Published digits are continued to 100 digits by the order conditions, and rounded to float64 once.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import Any

from dalembert._calls import check_calls as _check_calls
from dalembert.errors import InputError
from dalembert.methods._scheme import Scheme, Substep, check_order

__all__ = [
    "Scheme",
    "Substep",
    "blanes_moan",
    "kahan_li",
    "mclachlan",
    "scheme",
    "sofroniou_spaletta",
    "strang",
    "suzuki",
    "suzuki_umeno",
    "triple_jump",
    "yoshida",
]


def strang() -> Scheme:
    """The basic method itself, once: of order 2 as Phi*_{h/2} o Phi_{h/2} from any method Phi and its adjoint (Strang 1968).

    Example:
        >>> from dalembert import schemes
        >>> schemes.strang().gammas
        (1.0,)

    """
    return Scheme("strang", (Fraction(1),), 2, 2, "Strang (1968), SIAM J. Numer. Anal. 5")


def triple_jump(order: int, *, basic_order: int = 2) -> Scheme:
    """Three steps of the scheme of order p - 2, and so on down to the basic method; 3^k substeps for order 2 + 2 k.

        gamma_1 = gamma_3 = 1 / (2 - 2^(1/(p-1))),    gamma_2 = 1 - 2 gamma_1

    The substeps are long, gamma_2 = -1.7 for p = 4; `suzuki` and the optimised schemes are more accurate.
    Creutz and Gocksch (1989), Suzuki (1990), Yoshida (1990).

    Args:
        order: The order p, even.
        basic_order: The even order of the symmetric basic method, from which the recursion starts.

    Example:
        >>> from dalembert import schemes
        >>> schemes.triple_jump(4).gammas
        (1.3512071919596575, -1.7024143839193153, 1.3512071919596575)

    """
    reference = "Creutz and Gocksch (1989); Suzuki (1990); Yoshida (1990), Phys. Lett. A 150"
    return _recursive("triple-jump", 2, order, basic_order, reference)


def suzuki(order: int, *, basic_order: int = 2) -> Scheme:
    """Suzuki's fractals: five steps of the scheme of order p - 2, and so on; 5^k substeps for order 2 + 2 k.

        gamma_1 = gamma_2 = gamma_4 = gamma_5 = 1 / (4 - 4^(1/(p-1))),    gamma_3 = 1 - 4 gamma_1

    No substep is longer than h (Suzuki 1990).

    Args:
        order: The order p, even.
        basic_order: The even order of the symmetric basic method, from which the recursion starts.

    Example:
        >>> from dalembert import schemes
        >>> schemes.suzuki(4).gammas[2]
        -0.657963087177503

    """
    return _recursive("suzuki", 4, order, basic_order, "Suzuki (1990), Phys. Lett. A 146")


def mclachlan(order: int) -> Scheme:
    """McLachlan's scheme of order 4 with 5 substeps.

    Example:
        >>> from dalembert import schemes
        >>> schemes.mclachlan(4).gammas[0]
        0.28

    """
    return _published("mclachlan", order)


def yoshida(order: int) -> Scheme:
    """Yoshida's scheme A of order 6 with 7 substeps; `kahan_li(6)` is more accurate.

    Example:
        >>> from dalembert import schemes
        >>> len(schemes.yoshida(6).gammas)
        7

    """
    return _published("yoshida", order)


def kahan_li(order: int) -> Scheme:
    """The schemes of Kahan and Li of orders 6, 8 and 10 with 9, 17 and 31 substeps.

    That of order 6 was found by McLachlan (1995) too; that of order 10 has as few substeps as its 16 order conditions suggest.

    Example:
        >>> from dalembert import schemes
        >>> schemes.kahan_li(8)
        Scheme('kahan-li-8', order=8, substeps=17)

    """
    return _published("kahan-li", order)


def suzuki_umeno(order: int) -> Scheme:
    """The scheme of Suzuki and Umeno of order 8 with 15 substeps; found by McLachlan (1995) too.

    Example:
        >>> from dalembert import schemes
        >>> schemes.suzuki_umeno(8)
        Scheme('suzuki-umeno-8', order=8, substeps=15)

    """
    return _published("suzuki-umeno", order)


def sofroniou_spaletta(order: int) -> Scheme:
    """The schemes of Sofroniou and Spaletta of orders 6, 8 and 10 with 13, 21 and 35 substeps: small errors for their work.

    Example:
        >>> from dalembert import schemes
        >>> schemes.sofroniou_spaletta(10)
        Scheme('sofroniou-spaletta-10', order=10, substeps=35)

    """
    return _published("sofroniou-spaletta", order)


def blanes_moan(order: int) -> Scheme:
    """The schemes S of Blanes and Moan of orders 4 and 6: 6 and 10 steps each of a first-order method and of its adjoint.

    They are published for splittings H = A + B, with a_1 = alpha_1, b_1 = alpha_1 + beta_1, a_2 = beta_1 + alpha_2, ...

    Example:
        >>> from dalembert import schemes
        >>> schemes.blanes_moan(4).substeps(symmetric=False)[1].adjoint
        True

    """
    return _published("blanes-moan", order)


def scheme(order_or_name: int | str) -> Scheme:
    """The scheme with a given name, such as "kahan-li-8", or the most efficient one of an order 2, 4, 6, 8 or 10.

    "triple-jump-p" and "suzuki-p" exist for every even p >= 4. Efficient means that (number of substeps) C^(1/p) is small, with
    C the largest coefficient of the leading error term.

    Example:
        >>> from dalembert import schemes
        >>> schemes.scheme(8), schemes.scheme("triple-jump-6")
        (Scheme('sofroniou-spaletta-8', order=8, substeps=21), Scheme('triple-jump-6', order=6, substeps=9))

    """
    if isinstance(order_or_name, str):
        family, _, order = order_or_name.rpartition("-")
        if order_or_name == "strang":
            return strang()
        if family in _FAMILIES and order.isdecimal():
            return _FAMILIES[family](int(order))
        raise InputError(f"there is no scheme {order_or_name!r}; known are 'strang' and {_listed(_names())}")
    if type(order_or_name) is not int or order_or_name not in _MOST_EFFICIENT:
        raise InputError(
            f"scheme needs an order out of {_listed(_MOST_EFFICIENT)}, or a name; got {order_or_name!r}. For other "
            "even orders use suzuki(order)"
        )
    return scheme(_MOST_EFFICIENT[order_or_name])


_FAMILIES: dict[str, Callable[[int], Scheme]] = {
    "triple-jump": triple_jump,
    "suzuki": suzuki,
    "mclachlan": mclachlan,
    "yoshida": yoshida,
    "kahan-li": kahan_li,
    "suzuki-umeno": suzuki_umeno,
    "sofroniou-spaletta": sofroniou_spaletta,
    "blanes-moan": blanes_moan,
}

_MOST_EFFICIENT = {
    2: "strang",
    4: "suzuki-4",
    6: "sofroniou-spaletta-6",
    8: "sofroniou-spaletta-8",
    10: "sofroniou-spaletta-10",
}


def _names() -> list[str]:
    return ["triple-jump-4", "suzuki-4", *(f"{family}-{order}" for family, schemes in _digits().items() for order in schemes)]


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))


def _recursive(family: str, outer: int, order: int, basic_order: int, reference: str) -> Scheme:
    """`outer` steps of length 1 / (outer - outer^(1/(p-1))) around one backward step, for p = basic_order + 2, ..., order."""
    check_order(f"the basic method of {family}", basic_order, first=2)
    check_order(family, order, first=basic_order + 2)
    with localcontext(Context(prec=120)):
        gammas = [Decimal(1)]
        for p in range(basic_order + 2, order + 2, 2):
            long = 1 / (outer - Decimal(outer) ** (1 / Decimal(p - 1)))
            outside = [long] * (outer // 2)
            gammas = [x * y for x in (*outside, 1 - outer * long, *outside) for y in gammas]
    suffix = "" if basic_order == 2 else f"-of-{basic_order}"
    fractions = _completed(gammas[: len(gammas) // 2], basic_order)
    return Scheme(f"{family}-{order}{suffix}", fractions, order, basic_order, reference)


@cache
def _digits() -> dict[str, dict[str, dict[str, Any]]]:
    """The published schemes by family and order: `reference`, `basic_order` and `fractions`."""
    return tomllib.loads(resources.files("dalembert.methods").joinpath("composition_schemes.toml").read_text(encoding="utf-8"))


def _published(family: str, order: int) -> Scheme:
    known = _digits()[family]
    if type(order) is not int or str(order) not in known:
        raise InputError(
            f"{family} is published for the orders {_listed(known)}; got {order!r}. For other even orders use suzuki(order)"
        )
    entry = known[str(order)]
    fractions = _completed(entry["fractions"], entry["basic_order"])
    return Scheme(f"{family}-{order}", fractions, order, entry["basic_order"], entry["reference"])


def _completed(numbers: Iterable[str | Decimal], basic_order: int) -> tuple[Fraction, ...]:
    """The symmetric list with this first half and the sum 1: one fraction in the middle, or two if the adjoint takes turns."""
    half = tuple(map(Fraction, numbers))
    rest = Fraction(1, 2) - sum(half, start=Fraction(0))
    middle = (rest, rest) if basic_order == 1 else (2 * rest,)
    return (*half, *middle, *half[::-1])


_check_calls(globals())
