"""The class `Tableau`: what it accepts, what it refuses, and how it compares, prints and travels."""

import copy
import doctest
import importlib
import os
import pickle
import pkgutil
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass, replace
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import dalembert.tableaux
from dalembert.tableaux import C, Tableau, gauss, largest, lobatto_iiia, lobatto_iiib, radau_iia

THIRD = Fraction(1, 3)


@pytest.mark.parametrize("third", ["1/3", " 1 / 3 ", Fraction(1, 3)])
def test_fractions_and_strings_are_kept_exactly(third):
    tableau = Tableau.of([[third]], [1])
    assert tableau.fractions.A == ((THIRD,),)
    assert tableau.digits == 100
    with mpmath.workdps(110):
        assert abs(tableau.exact.A[0, 0] - mpmath.mpf(1) / 3) < 1e-99


@pytest.mark.parametrize("quarter", [0.25, "0.25", "25e-2", Decimal("0.25"), np.float32(0.25), mpmath.mpf("0.25")])
def test_other_numbers(quarter):
    assert ((Fraction(1, 4),),) == Tableau.of([[quarter]], [np.int64(1)]).fractions.A


def test_floats_count_as_known_to_15_digits():
    exact = Tableau.of([["5/12", "-1/12"], ["3/4", "1/4"]], ["3/4", "1/4"])
    floats = Tableau.of([[5 / 12, -1 / 12], [3 / 4, 1 / 4]], [3 / 4, 1 / 4])
    assert floats.digits == 15
    assert floats != exact
    assert exact == radau_iia(2)
    assert largest(C, floats) == largest(C, exact) == 2
    assert largest(C, floats, tolerance=1e-30) == 1
    assert 1e-18 < C(floats, 2) < 1e-16


def test_nodes_default_to_row_sums():
    assert Tableau.of([["1/4", "1/4"], ["1/3", "2/3"]], [0, 1]).fractions.c == (Fraction(1, 2), Fraction(1))


def test_arrays_and_mpmath_matrices_are_accepted():
    tableau = radau_iia(3)
    assert np.array_equal(Tableau.of(tableau.A, tableau.b, tableau.c).A, tableau.A)
    with mpmath.workdps(100):
        assert Tableau.of(*tableau.exact) == tableau


@pytest.mark.parametrize(
    ("A", "b", "c", "sentence"),
    [
        ([[1, 2, 3], [4, 5, 6]], [1, 1], None, r"A must be square, s rows of s coefficients; got 2 rows of lengths"),
        ([], [], None, "A must be square"),
        ([1, 2], [1, 1], None, r"A\[0\] must be a list of coefficients; got 1"),
        (1.0, [1], None, "A must be a list of coefficients"),
        ([[1]], [1, 2], None, "b must have 1 entries, one for each row of A; got 2"),
        ([[1]], 1, None, "b must be a list of coefficients; got 1"),
        ([[1]], [1], [0, 1], "c must have 1 entries"),
        ([[float("nan")]], [1], None, r"A\[0\]\[0\] = nan is not a finite number"),
        ([[1]], [float("inf")], None, r"b\[0\] = inf is not a finite number"),
        ([[1]], [1], [mpmath.nan], r"c\[0\] = .* is not a finite number"),
        ([["one"]], [1], None, r"A\[0\]\[0\] = 'one' is not a finite number"),
        ([["1/0"]], [1], None, r"A\[0\]\[0\] = '1/0' is not a finite number"),
        ([[10**400]], [1], None, "is not a finite number"),
        ([[1j]], [1], None, r"A\[0\]\[0\] = 1j is not a real number; give an int, a float, a fraction or a string"),
        ([[True]], [1], None, "is not a real number"),
        ([[None]], [1], None, "is not a real number"),
    ],
)
def test_errors_name_the_entry_and_the_fix(A, b, c, sentence):
    with pytest.raises(ValueError, match=sentence):
        Tableau.of(A, b, c)


def test_tableaux_are_immutable():
    tableau = gauss(2)
    for array in (tableau.A, tableau.b, tableau.c):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(FrozenInstanceError):
        tableau.name = "other"
    tableau.exact.A[0, 0] = 7
    assert tableau.exact.A[0, 0] == mpmath.mpf(1) / 4


def test_comparison_is_by_value():
    own = Tableau.of([[0, 0], ["1/2", "1/2"]], ["1/2", "1/2"], name="trapezoidal rule")
    assert own == lobatto_iiia(2) and hash(own) == hash(lobatto_iiia(2))
    assert own != lobatto_iiib(2) and own != "trapezoidal rule"
    assert Tableau.of([["1/2"]], [1]) != Tableau.of([["1/2"]], [1], [0])
    assert len({gauss(2), gauss(3), replace(gauss(2), name="other")}) == 2

    @dataclass(frozen=True)
    class Method:
        tableau: Tableau

    assert Method(own) == Method(lobatto_iiia(2)) and hash(Method(own)) == hash(Method(lobatto_iiia(2)))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_are_equal_and_read_only(duplicate):
    twin = duplicate(lobatto_iiib(4))
    assert twin == lobatto_iiib(4) and twin.name == "Lobatto IIIB" and twin.stages == 4
    assert not twin.A.flags.writeable


def test_families_are_cached_and_share_no_state_with_mpmath():
    before = mpmath.mp.prec
    assert radau_iia(7) is radau_iia(np.int64(7))
    assert radau_iia(7).exact.c[0] != 0
    assert mpmath.mp.prec == before


@pytest.mark.parametrize("dps", [5, 15, 200])
def test_exact_does_not_depend_on_the_current_precision(dps):
    with mpmath.workdps(dps):
        c = gauss(2).exact.c[0]
    with mpmath.workdps(120):
        assert abs(c - (mpmath.mpf(1) / 2 - mpmath.sqrt(3) / 6)) < mpmath.mpf(10) ** -99


def test_text():
    own = Tableau.of([[0, 0], [0.1, 0]], ["1/2", "1/2"], name="own")
    assert str(own) == "own\n  0 |   0    0\n0.1 | 0.1    0\n----+---------\n    | 1/2  1/2"
    assert repr(own) == "Tableau('own', stages=2, A=[[0, 0], [0.1, 0]], b=[1/2, 1/2], c=[0, 0.1])"
    assert repr(gauss(11)) == "Tableau('Gauss', stages=11)"
    assert len(str(gauss(11)).splitlines()) == 14


def test_import_leaves_mpmath_for_later():
    code = "import sys, dalembert.tableaux; sys.exit('mpmath' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_docstring_examples():
    attempted = 0
    for module in pkgutil.iter_modules(dalembert.tableaux.__path__, "dalembert.tableaux."):
        results = doctest.testmod(importlib.import_module(module.name))
        assert results.failed == 0
        attempted += results.attempted
    assert attempted >= 20


def test_every_public_function_has_an_example():
    for name in dalembert.tableaux.__all__:
        assert ">>>" in getattr(dalembert.tableaux, name).__doc__, name
