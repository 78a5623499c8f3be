"""A model is plain NumPy: on symbols every function must give what NumPy gives on numbers."""

import numpy as np
import pytest
from symbolic_values import on_numbers, on_symbols

M = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, 2.0, 5.0]])
MASK = np.array([True, False, True])
POINTS = [np.array([0.3, -0.7, 1.2, 0.45, -1.6, 2.1]), *np.random.default_rng(1).normal(0, 1.5, (3, 6))]


def _spd(q, n=3):
    return 3 * np.eye(n) + np.outer(q[:n], q[:n])


def _saddle(q):
    G = np.array([[1.0, q[0], 0.0], [q[1], 0.0, 2.0]], like=q)
    return np.block([[np.diag(1 + q[:3] ** 2), G.T], [G, np.zeros((2, 2))]])


PRODUCTS = {
    "q @ q": lambda q: q @ q,
    "M @ q": lambda q: M @ q[:3],
    "q @ M": lambda q: q[:3] @ M,
    "matrix @ matrix": lambda q: q.reshape(2, 3) @ q.reshape(3, 2),
    "matrix @ transpose": lambda q: q.reshape(2, 3) @ q.reshape(2, 3).T,
    "dot": lambda q: np.dot(q, q),
    "dot of a constant matrix": lambda q: np.dot(M, q[:3]),
    "q.dot": lambda q: q.dot(q),
    "vdot": lambda q: np.vdot(q, q),
    "inner": lambda q: np.inner(q, 2 * q),
    "outer": lambda q: np.outer(q[:2], q[2:5]),
    "cross": lambda q: np.cross(q[:3], q[3:]),
    "cross with a constant": lambda q: np.cross([1.0, 2.0, 3.0], q[3:]),
    "einsum bilinear": lambda q: np.einsum("i,ij,j", q[:3], M, q[3:]),
    "einsum outer": lambda q: np.einsum("i,j->ij", q[:3], q[3:]),
    "einsum trace": lambda q: np.einsum("ii", q[:4].reshape(2, 2)),
    "tensordot": lambda q: np.tensordot(q.reshape(2, 3), M, axes=1),
    "kron": lambda q: np.kron(q[:2], q[2:4]),
    "multi_dot": lambda q: np.linalg.multi_dot([M, M, q[:3]]),
    "matrix_power": lambda q: np.linalg.matrix_power(q[:4].reshape(2, 2), 3),
    "add.outer": lambda q: np.add.outer(q[:2], q[2:5]),
    "convolve": lambda q: np.convolve(q, [1.0, 2.0]),
    "polyval": lambda q: np.polyval([1.0, 2.0, 3.0], q),
}

SHAPES = {
    "stack": lambda q: np.stack([q[:3], q[3:]]),
    "stack with numbers": lambda q: np.stack([q[:3], np.ones(3)], axis=1),
    "concatenate": lambda q: np.concatenate([q[:2], [1.0, 2.0], q[4:]]),
    "hstack": lambda q: np.hstack([q[0], q[1:3]]),
    "vstack": lambda q: np.vstack([q[:3], q[3:]]),
    "block": lambda q: np.block([[q[0], q[1]], [q[2], 1.0]]),
    "append": lambda q: np.append(q, 1.0),
    "array like": lambda q: np.array([[q[0], 1.0], [2.0, q[1]]], like=q),
    "asarray like": lambda q: np.asarray([q[0], 1.0], like=q),
    "plain array": lambda q: np.sin(np.array([q[0], q[1] * 2])),
    "zeros_like": lambda q: np.zeros_like(q) + q,
    "full_like": lambda q: np.full_like(q, 2.0) * q,
    "eye like": lambda q: np.eye(2, like=q) * q[0],
    "reshape and T": lambda q: q.reshape(2, 3).T,
    "swapaxes": lambda q: q.reshape(2, 3).swapaxes(0, 1),
    "transpose": lambda q: np.transpose(q.reshape(1, 2, 3), (2, 0, 1)),
    "ravel": lambda q: q.reshape(2, 3).ravel(),
    "slice": lambda q: q[::2],
    "reversed": lambda q: q[::-1],
    "fancy index": lambda q: q[[0, 2, 2]],
    "mask of numbers": lambda q: q[np.array([True, False] * 3)],
    "newaxis": lambda q: q[:, None] - q[None, :],
    "roll and diff": lambda q: np.diff(np.roll(q, 1)),
    "trace": lambda q: np.trace(q[:4].reshape(2, 2)),
    "diag of a vector": lambda q: np.diag(q[:3]),
    "diag of a matrix": lambda q: np.diag(q[:4].reshape(2, 2)),
    "tril": lambda q: np.tril(q[:4].reshape(2, 2)),
    "tile and repeat": lambda q: np.tile(np.repeat(q[:2], 2), 2),
    "split": lambda q: np.split(q, 2)[1],
    "broadcast_to": lambda q: np.broadcast_to(q, (2, 6)),
    "squeeze, expand_dims": lambda q: np.squeeze(np.expand_dims(q, 0)),
    "pad": lambda q: np.pad(q, 1),
}

REDUCTIONS = {
    "sum": lambda q: np.sum(q),
    "sum over an axis": lambda q: np.sum(q.reshape(2, 3), axis=0),
    "sum keepdims": lambda q: q.reshape(2, 3).sum(axis=1, keepdims=True),
    "sum over two axes": lambda q: q.reshape(1, 2, 3).sum(axis=(0, 2)),
    "sum of a list": lambda q: np.sum([q[0], q[1]]),
    "sum initial": lambda q: q.sum(initial=3.0),
    "prod": lambda q: np.prod(q.reshape(2, 3), axis=1),
    "cumsum": lambda q: np.cumsum(q.reshape(2, 3), axis=1),
    "q.cumsum": lambda q: q.cumsum(),
    "cumprod": lambda q: np.cumprod(q),
    "mean": lambda q: np.mean(q.reshape(2, 3), axis=0),
    "var": lambda q: np.var(q),
    "std": lambda q: np.std(q),
    "average": lambda q: np.average(q, weights=[1, 2, 3, 4, 5, 6]),
    "max": lambda q: np.max(q),
    "min over an axis": lambda q: np.min(q.reshape(2, 3), axis=1),
    "max keepdims": lambda q: np.max(q.reshape(2, 3), axis=0, keepdims=True),
    "max initial": lambda q: np.max(q, initial=1.0),
    "q.max": lambda q: q.reshape(2, 3).max(axis=-1),
    "q.min": lambda q: q.min(),
    "ptp": lambda q: np.ptp(q),
    "maximum.accumulate": lambda q: np.maximum.accumulate(q),
    "minimum.reduce": lambda q: np.minimum.reduce(q),
    "any": lambda q: np.any(q > 1),
    "all": lambda q: np.all(q.reshape(2, 3) > -1, axis=1),
    "trapezoid": lambda q: np.trapezoid(q, dx=0.1),
}

LINEAR_ALGEBRA = {
    "norm": lambda q: np.linalg.norm(q),
    "norm over an axis": lambda q: np.linalg.norm(q.reshape(2, 3), axis=1),
    "norm of a matrix": lambda q: np.linalg.norm(q.reshape(2, 3)),
    "norm fro": lambda q: np.linalg.norm(q.reshape(2, 3), "fro"),
    "norm keepdims": lambda q: q.reshape(2, 3) / np.linalg.norm(q.reshape(2, 3), axis=1, keepdims=True),
    "norm of a list": lambda q: np.linalg.norm([q[0], q[1]]),
    "inv": lambda q: np.linalg.inv(_spd(q)),
    "inv 5x5": lambda q: np.linalg.inv(_spd(q, 5)),
    "inv indefinite": lambda q: np.linalg.inv(np.array([[0.0, 1.0], [1.0, q[0]]], like=q)),
    "det": lambda q: np.linalg.det(q[:4].reshape(2, 2)),
    "det 4x4": lambda q: np.linalg.det(_spd(q, 4)),
    "solve": lambda q: np.linalg.solve(_spd(q), q[3:]),
    "solve constant matrix": lambda q: np.linalg.solve(M, q[3:]),
    "solve constant right side": lambda q: np.linalg.solve(_spd(q), [1.0, 2.0, 3.0]),
    "solve several": lambda q: np.linalg.solve(_spd(q), q.reshape(3, 2)),
    "solve 6x6": lambda q: np.linalg.solve(_spd(q, 6), q),
    "solve a saddle point": lambda q: np.linalg.solve(_saddle(q), q[:5]),
}

CONDITIONS = {
    "where arrays": lambda q: np.where(q > 0, q, q**2),
    "where scalar condition": lambda q: np.where(q[0] > 0.1, q, -q),
    "where numeric condition": lambda q: np.where(MASK, q[:3], 0.0),
    "where scalars": lambda q: np.where(q[0] > 0, q[1], q[2]),
    "where hides nan": lambda q: np.where(q > 0, np.sqrt(np.maximum(q, 0)), 7.0),
    "select": lambda q: np.select([q > 1, q > 0], [q, 10 * q], -1.0),
    "clip": lambda q: np.clip(q, -0.5, 0.5),
    "clip one side": lambda q: np.clip(q, None, 0.5),
    "clip by keywords": lambda q: np.clip(q, min=0.1, max=0.6),
    "clip by arrays": lambda q: np.clip(q[:2], np.array([0.0, -0.2]), np.array([0.1, 0.2])),
    "q.clip": lambda q: q.clip(-0.5, 0.5),
    "minimum, maximum": lambda q: np.minimum(q, 0.4) * np.maximum(0.4, q),
    "comparisons": lambda q: [1 * (q[0] < 0.3), 1 * (q[0] <= 0.3), 1 * (q[0] > 0.3), 1 * (q[0] >= 0.3)],
    "equal": lambda q: [1 * (q[0] == 0.3), 1 * (q[0] != 0.3)],
    "reflected comparisons": lambda q: (np.float64(0.4) < q) * (np.float64(2.0) >= q[0]),
    "and or not": lambda q: ((q > 0) & (q < 1)) | ~(q > -1),
    "xor": lambda q: (q > 0) ^ (q < 1),
    "logical functions": lambda q: np.logical_or(np.logical_and(q > 0, q < 1), np.logical_not(q < 2)),
    "logical_xor": lambda q: np.logical_xor(q > 0, q < 1),
    "condition times value": lambda q: (q > 0) * q,
    "heaviside": lambda q: np.heaviside(q, 0.5),
    "sign": lambda q: np.sign(q),
}


def _in_place(q):
    a = q.copy()
    a += 1
    a *= q
    a[0] = 2.0
    a[1] += q[2]
    a[3:5] = q[:2]
    a /= 2
    return a


def _fill(q):
    a = np.zeros((2, 2), like=q)
    a[0, 0] = q[0]
    a[1] = q[2:4]
    return a


def _accumulate(q):
    total = 0.0
    for i, x in enumerate(q):
        total += (i + 1) * x * x
    return total


def _rotation(q):
    c, s = np.cos(q[0]), np.sin(q[0])
    return np.array([[c, -s], [s, c]], like=q) @ q[1:3]


PYTHON = {
    "array * scalar": lambda q: np.array([1.0, 2.0]) * q[0],
    "scalar * array": lambda q: q[0] * np.array([1.0, 2.0]),
    "array - scalar": lambda q: np.array([1.0, 2.0]) - q[0],
    "scalar - array": lambda q: q[0] - np.array([1.0, 2.0]),
    "array / scalar": lambda q: np.array([1.0, 2.0]) / q[0],
    "scalar ** array": lambda q: abs(q[0]) ** np.array([1.0, 2.0]),
    "NumPy scalars": lambda q: np.float64(2) * q[0] + q[1] * np.int64(3) - np.float32(0.5) * q[2],
    "0-d array": lambda q: np.array(2.0) * q[0],
    "list * array": lambda q: [1.0, 2.0] * q[:2],
    "sum()": lambda q: sum(q),
    "sum() of a generator": lambda q: sum(x * y for x, y in zip(q, q[::-1], strict=True)),
    "unpacking": lambda q: (lambda a, b, *c: a * b - c[0])(*q),
    "abs()": lambda q: abs(q) + abs(q[0]),
    "pow()": lambda q: pow(q[0], 2),
    "unary": lambda q: -q + +q[0],
    "in place": _in_place,
    "filling an array": _fill,
    "accumulating": _accumulate,
    "rotation": _rotation,
    "tolist": lambda q: q.tolist()[1],
    "vectorize": lambda q: np.vectorize(lambda x: 2 * x)(q),
    "apply_along_axis": lambda q: np.apply_along_axis(lambda row: row @ row, 1, q.reshape(2, 3)),
    "out=": lambda q: np.sin(q, out=q.copy()),
}

CASES = PRODUCTS | SHAPES | REDUCTIONS | LINEAR_ALGEBRA | CONDITIONS | PYTHON


@pytest.mark.parametrize("name", CASES)
def test_symbols_give_what_numbers_give(name, capfd):
    for point in POINTS:
        wanted = on_numbers(CASES[name], point)
        got = on_symbols(CASES[name], point)
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=2e-12, atol=2e-13)
    assert capfd.readouterr() == ("", "")


def test_a_constant_is_a_number_again():
    """An expression without symbols may be asked for its value: range(len(q)), int(0 * ...), if on constants."""
    assert on_symbols(lambda q: q[int(np.sum(q[:2] * 0) + 1)] if q.size == 2 else None, np.array([1.0, 5.0])) == 5.0
