"""Compiling CasADi expressions to machine code and calling it from Python."""

import ctypes
from collections.abc import Callable

import casadi as ca
import numpy as np

from dalembert.compiler._ir import Kernel, compile_kernels


def call(kernel: Kernel, memory: np.ndarray, work: int) -> None:
    """Compile one kernel and run it once on a block of memory (slots from `work` on are its work area)."""
    code, used = compile_kernels([kernel], work)
    block = np.concatenate([memory, np.zeros(used)])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.addresses[kernel.name])(block.ctypes.data)
    memory[:] = block[: len(memory)]


def compiled(expression: ca.SX, x: ca.SX) -> Callable[[np.ndarray], np.ndarray]:
    """Machine code of `expression` as a function of rows of values of x."""
    n, m = x.shape[0], expression.shape[0]
    code, used = compile_kernels([Kernel("f", [(x, 0)], [(expression, n)])], n + m)
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.addresses["f"])
    memory = np.zeros(n + m + used)

    def evaluate(rows: np.ndarray) -> np.ndarray:
        results = []
        for row in rows:
            memory[:n] = row
            kernel(memory.ctypes.data)
            results.append(memory[n : n + m].copy())
        return np.array(results)

    evaluate.code = code  # keeps the machine code alive
    return evaluate


def by_casadi(expression: ca.SX, x: ca.SX, rows: np.ndarray) -> np.ndarray:
    """CasADi's own evaluation."""
    function = ca.Function("reference", [x], [expression])
    return np.array([np.asarray(function(row), dtype=float).ravel() for row in rows])
