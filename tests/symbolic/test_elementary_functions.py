"""Elementary functions of one and two numbers, against NumPy's own; powers and their derivatives, against exact ones."""

import casadi as ca
import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from symbolic_values import graph_of, on_numbers, on_symbols

from dalembert.symbolic import from_column

ANYWHERE = st.floats(-50, 50).map(lambda x: x if abs(x) > 1e-30 else 0.0)  # squares must not underflow
UNIT = st.floats(-1, 1)
POSITIVE = st.floats(1e-6, 1e6)
DOMAINS = {
    ANYWHERE: "negative positive absolute fabs sign square sin cos tan arctan sinh cosh tanh arcsinh exp expm1 exp2 cbrt floor "
    "ceil trunc rint deg2rad rad2deg radians degrees conjugate sinc round",
    UNIT: "arcsin arccos",
    POSITIVE: "sqrt log log2 log10 log1p reciprocal",
    st.floats(1, 1e6): "arccosh",
    st.floats(-0.999, 0.999): "arctanh",
}
UNARY = [(name, domain) for domain, names in DOMAINS.items() for name in names.split()]
BINARY = ["add", "subtract", "multiply", "divide", "arctan2", "hypot", "minimum", "maximum", "fmin", "fmax", "copysign", "fmod",
          "remainder", "mod", "floor_divide", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal",
          "heaviside"]  # fmt: skip


@pytest.mark.parametrize(("name", "domain"), UNARY, ids=[name for name, _ in UNARY])
def test_function_of_one_number(name, domain):
    function = getattr(np, name)
    whole, second = graph_of(function, 3), graph_of(lambda q: function(q[1]), 3)

    @given(st.lists(domain, min_size=3, max_size=3))
    def check(values):
        point = np.array(values)
        wanted = on_numbers(function, point)
        np.testing.assert_allclose(whole(point), wanted, rtol=1e-14, atol=1e-300)
        np.testing.assert_allclose(second(point), wanted[1], rtol=1e-14, atol=1e-300)

    check()


@pytest.mark.parametrize("name", BINARY)
def test_function_of_two_numbers(name):
    function = getattr(np, name)
    divides = name in {"divide", "fmod", "remainder", "mod", "floor_divide"}
    symbols = [graph_of(f, 2) for f in (lambda q: function(q[0], q[1]), lambda q: function(q[:1], q[1:])[0])]

    @given(ANYWHERE, ANYWHERE.filter(lambda y: abs(y) > 1e-3 or not divides))
    @example(1.0, 0.1)  # 1 // 0.1 is 9, although 1 / 0.1 rounds to 10
    @example(-3.0, 1.5)
    @example(2.0, 2.0)
    def check(x, y):
        point = np.array([x, y])
        wanted = on_numbers(lambda q: function(q[0], q[1]), point)
        beside_numbers = [graph_of(f, 2) for f in (lambda q: function(x, q[1]), lambda q: function(q[0], y))]
        for graph in symbols + beside_numbers:
            np.testing.assert_allclose(graph(point), wanted, rtol=4e-16, atol=1e-300)

    check()


OPERATORS = {
    "%": lambda x, y: x % y,
    "//": lambda x, y: x // y,
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
}


@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.parametrize(("x", "y"), [(7.25, -2.5), (-7.25, 2.5), (0.0, 3.0), (1.0, 0.1)])
def test_python_operator(symbol, x, y):
    operator = OPERATORS[symbol]
    for written in (lambda q: operator(q[0], q[1]), lambda q: operator(x, q[1]), lambda q: operator(q[0], y)):
        assert on_symbols(written, np.array([x, y])) == operator(x, y)


EXPONENTS = [0, 1, 2, 3, 5, 8, 9, 10, -1, -2, -3, -9, 0.5, 1.5, 2.5, -0.5, -1.5, 1 / 3, np.int64(2), np.float64(0.5)]


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_power_and_its_derivatives(exponent):
    x = ca.SX.sym("x", 1)
    power = (from_column(x)[0] ** exponent).sx
    slope = ca.jacobian(power, x)
    values = ca.Function("power", [x], [power, slope, ca.jacobian(slope, x)])
    e = mpmath.mpf(float(exponent))
    bases = [0.3, 1.7, 12.0] + ([-0.3, -2.1] if float(exponent).is_integer() else [])
    for base in bases:
        b = mpmath.mpf(base)
        exact = [b**e, e * b ** (e - 1), e * (e - 1) * b ** (e - 2)]
        np.testing.assert_allclose([float(v) for v in values(base)], [float(v) for v in exact], rtol=4e-15)


@pytest.mark.parametrize(
    ("exponent", "derivatives"), [(0, (1, 0, 0)), (1, (0, 1, 0)), (2, (0, 0, 2)), (3, (0, 0, 0)), (12, (0, 0, 0))]
)
def test_whole_power_of_zero(exponent, derivatives):
    x = ca.SX.sym("x", 1)
    power = (from_column(x)[0] ** exponent).sx
    slope = ca.jacobian(power, x)
    values = ca.Function("power", [x], [power, slope, ca.jacobian(slope, x)])(0.0)
    assert tuple(float(v) for v in values) == derivatives


@given(st.floats(0.1, 10), st.floats(-3, 3))
def test_symbolic_exponent(base, exponent):
    point = np.array([base, exponent])
    for written in (
        lambda q: q[0] ** q[1],
        lambda q: base ** q[1],
        lambda q: np.power(q[0], q[1]),
        lambda q: (q[:1] ** q[1:])[0],
    ):
        np.testing.assert_allclose(on_symbols(written, point), base**exponent, rtol=1e-14)


@given(st.floats(-5, 5), st.floats(-5, 5).filter(lambda y: abs(y) > 0.1))
def test_derivative_of_the_remainder_is_one(x, y):
    """x mod y and x // y are piecewise linear and constant in x: the graph's derivative must be exactly that."""
    q = ca.SX.sym("q", 2)
    array = from_column(q)
    derivative = ca.Function(
        "d", [q], [ca.jacobian((array[0] % array[1]).sx, q[0]), ca.jacobian((array[0] // array[1]).sx, q[0])]
    )
    assert [float(v) for v in derivative([x, y])] == [1.0, 0.0]


def test_rounding_to_decimals():
    point = np.array([0.5, 1.5, -2.5, 3.14159, -0.005])
    np.testing.assert_array_equal(on_symbols(np.rint, point), np.rint(point))
    np.testing.assert_allclose(on_symbols(lambda q: np.round(q, 2), point), np.round(point, 2), rtol=1e-15)
