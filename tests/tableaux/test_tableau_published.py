"""Coefficients against the tables of the literature.

Jay (1996): L. Jay, SIAM J. Numer. Anal. 33, Tables 2.1 and 2.2, and (2.7).
HW: E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, section IV.5.
Hilden (2009): appendix B, which lists the methods of Jay's SPARK papers.
Butcher (1964): Math. Comp. 18, the Lobatto III methods.
"""

import re

import mpmath
import numpy as np
import pytest
from mpmath import mp

from dalembert.tableaux import (
    Tableau,
    gauss,
    lobatto_iiia,
    lobatto_iiib,
    lobatto_iiic,
    lobatto_iiic_star,
    lobatto_iiid,
    radau_ia,
    radau_iia,
    symplecticity,
)

SIMPSON = ["1/6", "2/3", "1/6"], [0, "1/2", 1]
TRAPEZOIDAL = ["1/2", "1/2"], [0, 1]

RATIONAL = {
    "Jay (1996), Table 2.1, IIIA": (lobatto_iiia(2), [[0, 0], ["1/2", "1/2"]], *TRAPEZOIDAL),
    "Jay (1996), Table 2.1, IIIB": (lobatto_iiib(2), [["1/2", 0], ["1/2", 0]], *TRAPEZOIDAL),
    "Jay (1996), Table 2.2, IIIA": (
        lobatto_iiia(3),
        [[0, 0, 0], ["5/24", "1/3", "-1/24"], ["1/6", "2/3", "1/6"]],
        *SIMPSON,
    ),
    "Jay (1996), Table 2.2, IIIB": (
        lobatto_iiib(3),
        [["1/6", "-1/6", 0], ["1/6", "1/3", 0], ["1/6", "5/6", 0]],
        *SIMPSON,
    ),
    "HW, Gauss": (gauss(1), [["1/2"]], [1], ["1/2"]),
    "HW, Radau IA, s = 1": (radau_ia(1), [[1]], [1], [0]),
    "HW, Radau IA, s = 2": (radau_ia(2), [["1/4", "-1/4"], ["1/4", "5/12"]], ["1/4", "3/4"], [0, "2/3"]),
    "HW, Radau IIA, s = 1": (radau_iia(1), [[1]], [1], [1]),
    "HW, Radau IIA, s = 2": (radau_iia(2), [["5/12", "-1/12"], ["3/4", "1/4"]], ["3/4", "1/4"], ["1/3", 1]),
    "HW, IIIC, s = 2": (lobatto_iiic(2), [["1/2", "-1/2"], ["1/2", "1/2"]], *TRAPEZOIDAL),
    "HW, IIIC, s = 3": (
        lobatto_iiic(3),
        [["1/6", "-1/3", "1/6"], ["1/6", "5/12", "-1/12"], ["1/6", "2/3", "1/6"]],
        *SIMPSON,
    ),
    "Hilden (2009), IIIC*, s = 2": (lobatto_iiic_star(2), [[0, 0], [1, 0]], *TRAPEZOIDAL),
    "Hilden (2009), IIIC*, s = 3": (lobatto_iiic_star(3), [[0, 0, 0], ["1/4", "1/4", 0], [0, 1, 0]], *SIMPSON),
    "Hilden (2009), IIID, s = 2": (lobatto_iiid(2), [["1/4", "-1/4"], ["3/4", "1/4"]], *TRAPEZOIDAL),
    "Hilden (2009), IIID, s = 3": (
        lobatto_iiid(3),
        [["1/12", "-1/6", "1/12"], ["5/24", "1/3", "-1/24"], ["1/12", "5/6", "1/12"]],
        *SIMPSON,
    ),
}


@pytest.mark.parametrize("row", RATIONAL.values(), ids=RATIONAL.keys())
def test_rational_tables(row):
    tableau, A, b, c = row
    assert tableau.fractions == Tableau.of(A, b, c).fractions


LOBATTO_4 = "1/12, 5/12, 5/12, 1/12", "0, (5-r)/10, (5+r)/10, 1"

IRRATIONAL = {  # r is the square root of the given number
    "HW, Gauss, s = 2": (gauss(2), 3, "1/4, 1/4-r/6; 1/4+r/6, 1/4", "1/2, 1/2", "1/2-r/6, 1/2+r/6"),
    "HW, Gauss, s = 3": (
        gauss(3),
        15,
        "5/36, 2/9-r/15, 5/36-r/30; 5/36+r/24, 2/9, 5/36-r/24; 5/36+r/30, 2/9+r/15, 5/36",
        "5/18, 4/9, 5/18",
        "1/2-r/10, 1/2, 1/2+r/10",
    ),
    "HW, Radau IA, s = 3": (
        radau_ia(3),
        6,
        "1/9, (-1-r)/18, (-1+r)/18; 1/9, (88+7*r)/360, (88-43*r)/360; 1/9, (88+43*r)/360, (88-7*r)/360",
        "1/9, (16+r)/36, (16-r)/36",
        "0, (6-r)/10, (6+r)/10",
    ),
    "HW, Radau IIA, s = 3": (
        radau_iia(3),
        6,
        "(88-7*r)/360, (296-169*r)/1800, (-2+3*r)/225;(296+169*r)/1800, (88+7*r)/360, (-2-3*r)/225;(16-r)/36, (16+r)/36, 1/9",
        "(16-r)/36, (16+r)/36, 1/9",
        "(4-r)/10, (4+r)/10, 1",
    ),
    "HW, IIIA, s = 4": (
        lobatto_iiia(4),
        5,
        "0, 0, 0, 0;"
        "(11+r)/120, (25-r)/120, (25-13*r)/120, (-1+r)/120;"
        "(11-r)/120, (25+13*r)/120, (25+r)/120, (-1-r)/120;"
        "1/12, 5/12, 5/12, 1/12",
        *LOBATTO_4,
    ),
    "HW, IIIB, s = 4": (
        lobatto_iiib(4),
        5,
        "1/12, (-1-r)/24, (-1+r)/24, 0;"
        "1/12, (25+r)/120, (25-13*r)/120, 0;"
        "1/12, (25+13*r)/120, (25-r)/120, 0;"
        "1/12, (11-r)/24, (11+r)/24, 0",
        *LOBATTO_4,
    ),
    "HW, IIIC, s = 4": (
        lobatto_iiic(4),
        5,
        "1/12, -r/12, r/12, -1/12; 1/12, 1/4, (10-7*r)/60, r/60; 1/12, (10+7*r)/60, 1/4, -r/60; 1/12, 5/12, 5/12, 1/12",
        *LOBATTO_4,
    ),
    "Butcher (1964), III = IIIC*, s = 4": (
        lobatto_iiic_star(4),
        5,
        "0, 0, 0, 0; (5+r)/60, 1/6, (15-7*r)/60, 0; (5-r)/60, (15+7*r)/60, 1/6, 0; 1/6, (5-r)/12, (5+r)/12, 0",
        *LOBATTO_4,
    ),
}


@pytest.mark.parametrize("row", IRRATIONAL.values(), ids=IRRATIONAL.keys())
def test_irrational_tables(row):
    tableau, radicand, A, b, c = row
    with mpmath.workdps(110):
        r = mp.sqrt(radicand)

        def numbers(text):
            in_multiprecision = re.sub(r"\d+", r"mpf(\g<0>)", text.replace(";", ","))
            return eval(f"[{in_multiprecision}]", {"mpf": mp.mpf, "r": r})

        for computed, rounded, published in zip(
            tableau.exact, (tableau.A, tableau.b, tableau.c), map(numbers, (A, b, c)), strict=True
        ):
            assert max(abs(x - y) for x, y in zip(computed, published, strict=True)) < mp.mpf(10) ** -99
            assert rounded.ravel().tolist() == [float(x) for x in published]


def test_nodes_of_eleven_stages_in_closed_form():
    """(2.7) of Jay (1996), with arccos(3 c / 2) for arccos(3 / (2 c)), and u = -sqrt(v) for u = sqrt(v)."""
    with mpmath.workdps(120):
        c = mp.sqrt(mp.mpf(13) / 42)
        v = 32 / (323 * c) * mp.cos(mp.acos(3 * c / 2) / 3) + mp.mpf(720) / 6137
        u = -mp.sqrt(v)
        e1, e2 = -mp.mpf(1080) / 6137, mp.mpf(96912) / 28800941
        d1, d2 = (e1 + v) / 2, mp.sqrt((e1 + v) ** 2 - 4 * e2) / 2
        a1, a2, a3 = mp.sqrt(v - 4 * (d1 - d2)), mp.sqrt(v - 4 * (d1 + d2)), mp.mpf(9) / 19
        delta = [mp.sqrt((sign_u * u + a) / 2 + a3) / 2 for sign_u, a in ((-1, a1), (-1, -a1), (1, a2), (1, -a2))]
        half = mp.mpf(1) / 2
        nodes = [0, *(half - d for d in delta), half, *(half + d for d in reversed(delta)), 1]
        tableau = lobatto_iiia(11)
        assert max(abs(x - y) for x, y in zip(tableau.exact.c, nodes, strict=True)) < mp.mpf(10) ** -98
        assert tableau.c.tolist() == [float(x) for x in nodes]


def test_the_other_tableau_called_iiid_is_not_symplectic():
    other = Tableau.of([["1/6", 0, "-1/6"], ["1/12", "5/12", 0], ["1/2", "1/3", "1/6"]], *SIMPSON)
    assert symplecticity(other) > 0.01
    assert symplecticity(lobatto_iiid(3)) == 0


def test_structural_zeros_and_ones_are_exact():
    for s in (*range(2, 12), 20):
        A, B, C, C_star = (family(s).A for family in (lobatto_iiia, lobatto_iiib, lobatto_iiic, lobatto_iiic_star))
        b, c = lobatto_iiia(s).b, lobatto_iiia(s).c
        assert c[0] == 0 and c[-1] == 1
        assert np.all(A[0] == 0) and np.array_equal(A[-1], b)
        assert np.all(B[:, -1] == 0) and np.all(B[:, 0] == b[0])
        assert np.all(C[:, 0] == b[0]) and np.array_equal(C[-1], b)
        assert np.all(C_star[0] == 0) and np.all(C_star[:, -1] == 0)
        assert radau_ia(s).c[0] == 0 and radau_iia(s).c[-1] == 1
        assert np.array_equal(radau_iia(s).A[-1], radau_iia(s).b) and np.all(radau_ia(s).A[:, 0] == radau_ia(s).b[0])
