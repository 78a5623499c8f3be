"""Every elementary operation of CasADi's scalar graphs, compiled, against CasADi's own evaluation of it."""

import itertools

import casadi as ca
import mpmath
import numpy as np
import pytest
from compiled_kernels import by_casadi, compiled

CODES = {name.removeprefix("OP_"): getattr(ca, name) for name in dir(ca) if name.startswith("OP_")}
UNARY, BINARY, NOT_ARITHMETIC = (
    names.split()
    for names in (
        """NEG EXP LOG SQRT SQ TWICE SIN COS TAN ASIN ACOS ATAN NOT FLOOR CEIL FABS SIGN ERF INV SINH COSH TANH ASINH ACOSH
ATANH EXPM1 LOG1P ASSIGN ERFINV""",
        """ADD SUB MUL DIV POW CONSTPOW LT LE EQ NE AND OR FMOD COPYSIGN IF_ELSE_ZERO FMIN FMAX ATAN2 HYPOT REMAINDER LIFT
PRINTME""",
        """CONST INPUT OUTPUT PARAMETER CALL FIND LOW MAP MTIMES SOLVE TRANSPOSE DETERMINANT INVERSE DOT BILIN RANK1
HORZCAT VERTCAT DIAGCAT HORZSPLIT VERTSPLIT DIAGSPLIT RESHAPE SUBREF SUBASSIGN GETNONZEROS GETNONZEROS_PARAM ADDNONZEROS
ADDNONZEROS_PARAM SETNONZEROS SETNONZEROS_PARAM PROJECT ASSERTION MONITOR NORM2 NORM1 NORMINF NORMF MMIN MMAX HORZREPMAT
HORZREPSUM EINSTEIN BSPLINE CONVEXIFY SPARSITY_CAST LOGSUMEXP DUMP KRON KRON_CONTRACT""",
    )
)
# NOT_ARITHMETIC: inputs, outputs, constants, and operations on matrices, which CasADi's scalar graphs (SX) do not contain.

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 1.5, -2.5, 1e-310, -1e-310, 1e-300, 1e300, -1e300, 1e-8, 20.0,
           710.0, -745.0, np.inf, -np.inf, np.nan]  # fmt: skip
_random = np.random.default_rng(7)
RANDOM = np.concatenate([_random.normal(0, 3, 60), _random.uniform(-1, 1, 40), 10 ** _random.uniform(-12, 12, 20)])


def assert_same(got, wanted, ulps=2):
    """Equal to a few units in the last place; nan equals nan, and the sign of zero is free (LLVM's flag nsz)."""
    assert got.shape == wanted.shape
    both_nan = np.isnan(got) & np.isnan(wanted)
    with np.errstate(invalid="ignore"):
        close = (got == wanted) | (np.abs(got - wanted) <= ulps * np.spacing(np.abs(wanted)))
    wrong = np.flatnonzero(~(both_nan | close))
    assert not len(wrong), f"{got.ravel()[wrong[:5]]} for {wanted.ravel()[wrong[:5]]}"


def operations(expression, *symbols):
    function = ca.Function("f", list(symbols), [expression])
    return {function.instruction_id(k) for k in range(function.n_instructions())} - {ca.OP_INPUT, ca.OP_OUTPUT}


def test_every_operation_is_covered():
    """A new CasADi with new operations must make somebody look at this file."""
    assert sorted([*UNARY, *BINARY, *NOT_ARITHMETIC]) == sorted(CODES)
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    for name in NOT_ARITHMETIC:
        assert operations(ca.SX.binary(CODES[name], x, y), x, y) == {ca.OP_CONST}, name


@pytest.mark.parametrize("name", [name for name in UNARY if name != "ERFINV"])
def test_unary_operation(name):
    x = ca.SX.sym("x", 1)
    expression = ca.SX.unary(CODES[name], x)
    assert operations(expression, x) == ({CODES[name]} if name != "ASSIGN" else set())
    rows = np.concatenate([SPECIAL, RANDOM])[:, None]
    assert_same(compiled(expression, x)(rows), by_casadi(expression, x, rows))


@pytest.mark.parametrize("name", BINARY)
def test_binary_operation(name, capfd):
    x = ca.SX.sym("x", 2)
    expression = ca.SX.binary(CODES[name], x[0], x[1])
    expected = {"LIFT": set(), "CONSTPOW": {ca.OP_POW}}.get(name, {CODES[name]})
    assert operations(expression, x) == expected
    rows = np.array([*itertools.product(SPECIAL, SPECIAL), *zip(RANDOM, RANDOM[::-1], strict=True)])
    got = compiled(expression, x)(rows)
    assert capfd.readouterr() == ("", ""), "compiled code prints nothing"
    assert_same(got, by_casadi(expression, x, rows))
    capfd.readouterr()  # CasADi's own evaluation of PRINTME does print


@pytest.mark.parametrize("exponent", [2.5, -1.5, 1 / 3, 10.0, -3.0])
def test_constant_power(exponent):
    x = ca.SX.sym("x", 1)
    expression = x**exponent
    rows = np.concatenate([SPECIAL, RANDOM])[:, None]
    assert_same(compiled(expression, x)(rows), by_casadi(expression, x, rows))


@pytest.mark.parametrize("constant", [0.0, 1.0, -1.0, 0.1, np.pi, 1e-310, 1e300, np.inf, -np.inf, np.nan])
def test_constants_arrive_exactly(constant):
    x = ca.SX.sym("x", 1)
    got = compiled(ca.vertcat(ca.SX(constant), x), x)(np.array([[2.0]]))
    np.testing.assert_array_equal(got, [[constant, 2.0]])


def test_if_else_takes_only_the_branch_it_should():
    """nan and inf in the branch that is not taken must not leak."""
    x = ca.SX.sym("x", 1)
    expression = ca.if_else(x > 0, ca.log(x), ca.sqrt(-x))
    rows = np.array([[2.0], [-4.0], [0.0]])
    np.testing.assert_allclose(compiled(expression, x)(rows).ravel(), [np.log(2.0), 2.0, 0.0], rtol=1e-15)


def test_inverse_error_function_is_exact():
    """CasADi's erfinv is wrong by up to 6e-5; ours must be right to round-off, also next to 1 and for tiny arguments."""
    x = ca.SX.sym("x", 1)
    rows = np.concatenate(
        [
            _random.uniform(-1, 1, 200),
            1 - 10 ** _random.uniform(-16, 0, 100),
            10 ** _random.uniform(-300, 0, 50),
            [0.5, 0.7, 0.3],
        ]
    )
    rows = rows[np.abs(rows) < 1]
    got = compiled(ca.erfinv(x), x)(rows[:, None]).ravel()
    with mpmath.workdps(40):
        errors = [
            float(abs(mpmath.mpf(float(y)) / mpmath.erfinv(mpmath.mpf(float(a))) - 1)) for a, y in zip(rows, got, strict=True)
        ]
    assert max(errors) < 5e-16
    ends = compiled(ca.erfinv(x), x)(np.array([[0.0], [1.0], [-1.0], [2.0], [-np.inf], [np.nan]])).ravel()
    np.testing.assert_array_equal(ends, [0.0, np.inf, -np.inf, np.nan, np.nan, np.nan])


def test_arithmetic_is_not_reassociated():
    """(x + y) - z must not become (x - z) + y: compensated summation lives on it."""
    x = ca.SX.sym("x", 3)
    assert compiled((x[0] + x[1]) - x[2], x)(np.array([[1e16, 1.0, 1e16]]))[0, 0] == 0.0


def test_products_and_sums_may_be_fused_and_nothing_else():
    """x y + z lies between the twice rounded and the once rounded value."""
    x = ca.SX.sym("x", 3)
    rows = _random.normal(0, 1, (200, 3))
    got = compiled(x[0] * x[1] + x[2], x)(rows).ravel()
    twice = rows[:, 0] * rows[:, 1] + rows[:, 2]
    with mpmath.workdps(60):
        once = np.array([float(mpmath.fmul(a, b, exact=True) + c) for a, b, c in rows])
    assert np.all((got == twice) | (got == once))


def test_reciprocal_roots_have_their_limits():
    """Numbers below the normal ones are apart: steps take them for zero."""
    x = ca.SX.sym("x", 1)
    root = ca.sqrt(x)
    expression = ca.vertcat(1 / root, -0.7 / root, ca.atan(1 / root))
    rows = np.array([value for value in (*SPECIAL, *RANDOM) if abs(value) != 1e-310])[:, None]
    assert_same(compiled(expression, x)(rows), by_casadi(expression, x, rows), ulps=4)
    np.testing.assert_array_equal(compiled(ca.exp(-1 / root), x)(np.array([[0.0], [np.inf]])), [[0.0], [1.0]])
