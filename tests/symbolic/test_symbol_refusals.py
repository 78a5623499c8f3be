"""What symbols cannot do is refused in one sentence that names the fix, and nothing else is printed."""

import math

import numpy as np
import pytest

import dalembert as da

INTERNALS = ("casadi", "SX", "Traceback", "llvm", "Scalar(", "site-packages", "<lambda>")


def refuse(function, capfd, dim=6):
    with pytest.raises(da.ModelError) as caught:
        da.Hamiltonian(lambda q, p: p @ p / 2 + np.sum(function(q)), dim=dim)
    message = str(caught.value)
    assert "\n" not in message
    assert not [word for word in INTERNALS if word in message]
    assert capfd.readouterr() == ("", "")
    return message


def _branch(q):
    if q[0] > 0:
        return q[1]
    return q[2]


def _while(q):
    x = q[0]
    while x < 1:
        x = 2 * x
    return x


def _assign_to_floats(q):
    a = np.zeros(3)
    a[0] = q[0]
    return a


def _add_to_floats(q):
    a = np.zeros(6)
    a += q
    return a


def _unpack(q):
    a, b = q
    return a * b


REFUSED = {
    "math.sin": (lambda q: math.sin(q[0]), ["math", "np.sin(q[0])"]),
    "math.hypot": (lambda q: math.hypot(q[0], q[1]), ["math", "np.sin(q[0])"]),
    "math.floor": (lambda q: math.floor(q[0]), ["math", "NumPy's functions"]),
    "float": (lambda q: float(q[0]), ["float(x)", "NumPy's functions"]),
    "int": (lambda q: int(q[0]), ["number behind a symbol"]),
    "astype": (lambda q: q.astype(float), ["number behind a symbol"]),
    "array of floats": (lambda q: np.array(q, dtype=float), ["number behind a symbol"]),
    "assigning to floats": (_assign_to_floats, ["float array", "np.zeros(n, like=q)"]),
    "adding to floats": (_add_to_floats, ["np.zeros(n, like=q)"]),
    "if": (_branch, ["np.where(condition, a, b)"]),
    "while": (_while, ["np.where(condition, a, b)"]),
    "and": (lambda q: (q[0] > 0) and q[1], ["& or |"]),
    "chained comparison": (lambda q: 0 < q[0] < 1, ["& or |"]),
    "max()": (lambda q: max(q[0], 0.0), ["np.maximum"]),
    "min()": (lambda q: min(q), ["np.minimum"]),
    "sorted": (lambda q: sorted(q)[0], ["np.where"]),
    "np.sort": (lambda q: np.sort(q), ["np.where"]),
    "argmax": (lambda q: q[np.argmax(q)], ["np.where"]),
    "comparison of a plain array": (lambda q: np.array([q[0], q[1]]) > 0, ["like=q"]),
    "index": (lambda q: q[q[0]], ["index", "plain Python integers"]),
    "index of a matrix": (lambda q: q.reshape(2, 3)[q[0], 1], ["index", "plain Python integers"]),
    "mask": (lambda q: q[q > 0], ["np.where(q > 0, a, b)"]),
    "range": (lambda q: sum(q[i] for i in range(q[0])), ["range(k)", "plain Python integers"]),
    "repetition": (lambda q: [1.0] * q[0], ["count", "plain Python integers"]),
    "np.interp": (lambda q: np.interp(q, [0.0, 1.0], [0.0, 1.0]), ["np.interp", "elementary functions"]),
    "np.gradient": (lambda q: np.gradient(q), ["NumPy's functions"]),
    "np.piecewise": (lambda q: np.piecewise(q, [q < 0], [0.0, 1.0]), ["np.where"]),
    "np.isclose": (lambda q: np.isclose(q, 0.3), ["np.where"]),
    "np.isnan": (lambda q: np.isnan(q), ["np.isnan", "elementary functions"]),
    "np.logaddexp": (lambda q: np.logaddexp(q, 1.0), ["np.logaddexp", "elementary functions"]),
    "np.linalg.eigvalsh": (lambda q: np.linalg.eigvalsh(np.outer(q, q)), ["eigvalsh", "elementary functions"]),
    "np.linalg.cholesky": (lambda q: np.linalg.cholesky(np.outer(q, q)), ["cholesky", "elementary functions"]),
    "np.linalg.inv of a plain array": (lambda q: np.linalg.inv(np.array([[q[0], 0.0], [0.0, 1.0]])), ["like=q"]),
    "np.linalg.inv, not square": (lambda q: np.linalg.inv(q.reshape(2, 3)), ["square", "(2, 3)"]),
    "np.linalg.det, not square": (lambda q: np.linalg.det(q.reshape(2, 3)), ["square", "(2, 3)"]),
    "np.linalg.solve, wrong sizes": (lambda q: np.linalg.solve(q[:4].reshape(2, 2), q[:3]), ["(2, 2)", "(3,)"]),
    "np.linalg.solve of a stack": (lambda q: np.linalg.solve(q[:4].reshape(1, 2, 2), q[:2]), ["one matrix at a time"]),
    "np.linalg.det, large": (lambda q: np.linalg.det(np.eye(8) * q[0]), ["up to 7 by 7", "closed form"]),
    "1-norm": (lambda q: np.linalg.norm(q, 1), ["np.abs"]),
    "where= of a ufunc": (lambda q: np.sin(q, where=np.arange(6) > 2), ["np.where(mask, a, b)"]),
    "where= of a sum": (lambda q: np.sum(q, where=np.arange(6) > 2), ["np.where(mask, a, b)"]),
    "where= of a method": (lambda q: q.sum(where=np.arange(6) > 2), ["np.where(mask, a, b)"]),
    "one-argument where": (lambda q: np.where(q > 0), ["np.where(condition, a, b)"]),
    "complex": (lambda q: 1j * q[0], ["NumPy's elementary functions"]),
    "string": (lambda q: "a" + q[0], ["failed on symbolic arguments"]),
    "matrix sizes": (lambda q: np.ones((2, 3)) @ q, ["dimension"]),
    "index out of range": (lambda q: q[17], ["IndexError", "dimension"]),
    "unpacking": (_unpack, ["unpack", "dimension"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_names_the_fix(name, capfd):
    function, words = REFUSED[name]
    message = refuse(function, capfd)
    missing = [word for word in words if word not in message]
    assert not missing, f"{missing} not in {message!r}"


def test_the_sentence_starts_with_what_failed(capfd):
    """The user's own traceback stays reachable as the cause."""
    with pytest.raises(da.ModelError, match="holonomic failed") as caught:
        da.Hamiltonian(lambda q, p: p @ p, dim=2, holonomic=lambda q: [q[5]])
    assert isinstance(caught.value.__cause__, IndexError)


def test_overwriting_an_argument_stays_inside_the_function():
    def force(t, q):
        q *= 2.0
        q[0] = t
        return q

    system = da.Hamiltonian(lambda q, p: p @ p / 2, dim=2, force=force, holonomic=lambda q: [q[0] - 3 * q[1]])
    np.testing.assert_array_equal(system.evaluate("force", 0.25, [1.0, 2.0], [0.0, 0.0]), [0.25, 4.0])
    np.testing.assert_array_equal(system.evaluate("g", 0.25, [1.0, 2.0]), [-5.0])


def test_symbols_print_and_hash_like_expressions():
    seen = []
    da.Hamiltonian(lambda q, p: seen.append(repr(q[0])) or p @ p / 2, dim=1)
    assert "q" in seen[0]
    with pytest.raises(da.ModelError, match="unhashable"):
        da.Hamiltonian(lambda q, p: {q[0]: 1.0}[q[0]], dim=1)
