"""CasADi functions of numbers, without what CasADi's own call adds to them."""

from __future__ import annotations

import threading
from typing import Any

import casadi as ca
import numpy as np


class Numbers:
    """The first output of a CasADi function at one place after another, as arrays.

    CasADi makes matrices of its own of all arguments and results, which takes 60 us a call where a small function takes 4.
    Here they are written to and read from memory that a thread keeps.

    Example:
        >>> x, y = ca.SX.sym("x", 2), ca.SX.sym("y")
        >>> diagonal = Numbers(ca.Function("diagonal", [x, y], [ca.diag(x) * y]))
        >>> diagonal(np.array([1.0, 2.0]), 3.0), diagonal.full(np.array([1.0, 2.0]), 3.0).tolist()
        (array([3., 6.]), [[3.0, 0.0], [0.0, 6.0]])

    """

    def __init__(self, function: ca.Function) -> None:
        self.function, self.shape = function, function.size_out(0)
        rows, columns = function.sparsity_out(0).get_triplet()
        self._places = np.array(rows, dtype=int) * self.shape[1] + np.array(columns, dtype=int)
        self._of_thread = threading.local()

    def __call__(self, *arguments: Any) -> np.ndarray:
        """The entries that are not zero by structure, column by column: all of a dense one."""
        if not hasattr(self._of_thread, "call"):
            self._reserve()
        for place, value in zip(self._of_thread.arguments, arguments, strict=True):
            place[:] = value
        self._of_thread.call()
        return self._of_thread.result.copy()

    def full(self, *arguments: Any) -> np.ndarray:
        """All entries, as a matrix."""
        result = np.zeros(self.shape)
        result.reshape(-1)[self._places] = self(*arguments)
        return result

    def rows(self, *arguments: np.ndarray) -> np.ndarray:
        """A dense column at many places: one row a place, also of every argument."""
        count = len(arguments[0])
        if count == 1:
            return self(*(argument[0] for argument in arguments))[None]
        return np.asarray(self.function.map(count)(*(argument.T for argument in arguments)), dtype=float).T

    def __reduce__(self) -> tuple[Any, ...]:
        return Numbers, (self.function,)

    def _reserve(self) -> None:
        """This thread's memory."""
        f, own = self.function, self._of_thread
        own.buffer, call = f.buffer()  # the call holds no reference to the buffer
        own.arguments, own.result = [np.zeros(f.nnz_in(i)) for i in range(f.n_in())], np.zeros(f.nnz_out(0))
        for i, argument in enumerate(own.arguments):
            own.buffer.set_arg(i, memoryview(argument))
        own.buffer.set_res(0, memoryview(own.result))
        own.call = call
