"""Models of many particles, written with NumPy on whole arrays, give what NumPy gives on numbers, column by column."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from symbolic_values import on_numbers, on_symbols

from dalembert.errors import ModelError
from dalembert.symbolic import _scalar, _universal, from_column

RANDOM = np.random.default_rng(8)
W = RANDOM.standard_normal((3, 3))
COEFFICIENTS = np.array([[0.0, 0.0, 0.0], [1.0, 0.25, -0.5], [1 / 6, 2 / 3, 1 / 6]])


def points(q):
    return q.reshape(-1, 3)


def pairs(q):
    return np.random.default_rng(len(q)).integers(0, len(q) // 3, len(q) // 3)


def gathered(q):
    forces = np.zeros(points(q).shape, like=q)
    np.add.at(forces, pairs(q), np.sin(points(q)))
    np.subtract.at(forces, (0, slice(None)), q[:3])
    return forces


def product(q):
    """Of a matrix with many zeros, as the gradients of a mechanism's constraints are, and a full one."""
    many, some = np.arange(20 * 30), (np.arange(20 * 30) % 7 == 0).astype(float)
    return (q[many % len(q)] * some).reshape(20, 30) @ q[(many * 11) % len(q)].reshape(30, 20)


WHOLE = {
    "product": product,
    "fancy index": lambda q: points(q)[pairs(q)] - points(q),
    "roll": lambda q: np.roll(points(q), 1, axis=0) - points(q),
    "diff": lambda q: np.diff(points(q), axis=0),
    "second differences of rows": lambda q: np.diff(points(q), n=2),
    "norm": lambda q: np.linalg.norm(np.diff(points(q), axis=0), axis=1),
    "sum": lambda q: np.sum(points(q) ** 2, axis=1),
    "power": lambda q: np.sum(points(q) ** 2, axis=1) ** -1.5,
    "stages": lambda q: COEFFICIENTS @ q.reshape(3, -1),
    "one stage": lambda q: COEFFICIENTS[1] @ q.reshape(3, -1),
    "maximum": lambda q: np.maximum(q, 0.5) + np.abs(q),
}
ELEMENT_BY_ELEMENT = {
    "add.at": gathered,
    "einsum": lambda q: np.einsum("ij,jk->ik", points(q), W),
    "rows": lambda q: np.einsum("ij,ij->i", points(q), points(q) @ W),
    "different powers": lambda q: (2 + np.sin(q)) ** np.arange(len(q)),
}


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(sorted(WHOLE | ELEMENT_BY_ELEMENT)), st.integers(2, 60), st.integers(0, 1000))
def test_whole_arrays_are_as_on_numbers(name, count, seed):
    point, function = np.random.default_rng(seed).normal(0, 1.5, 3 * count), (WHOLE | ELEMENT_BY_ELEMENT)[name]
    np.testing.assert_allclose(on_symbols(function, point), on_numbers(function, point), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", WHOLE)
def test_whole_arrays_take_no_scalar_operations(name, monkeypatch):
    """Operations on single symbols would take 10 microseconds each: minutes for ten thousand bodies."""
    calls = []
    monkeypatch.setattr(_universal, "elementary", lambda *arguments: calls.append(arguments))
    WHOLE[name](from_column(ca.SX.sym("q", 600)))
    assert not calls


def test_large_products_take_no_scalar_operations(monkeypatch):
    calls, one = [], _scalar.elementary
    monkeypatch.setattr(_scalar, "elementary", lambda *arguments: calls.append(arguments) or one(*arguments))
    product(from_column(ca.SX.sym("q", 600)))
    assert not calls


@pytest.mark.parametrize("count", [3, 60])
def test_power_zero_is_one(count):
    point = np.linspace(-1.0, 1.0, count)
    for function in (lambda q: q**0 + 0 * q, lambda q: q**0 * q**2, lambda q: q ** np.zeros(count) - q):
        np.testing.assert_array_equal(on_symbols(function, point), on_numbers(function, point))


def test_numbers_cannot_collect_symbols():
    with pytest.raises(ModelError, match=r"np.add.at .* np.zeros\(n, like=q\)"):
        np.add.at(np.zeros(4), [0, 1], from_column(ca.SX.sym("q", 2)))
