"""Any CasADi function of columns as machine code that is called from Python, for solvers of others."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable

import casadi as ca
import numpy as np

from dalembert.compiler._ir import Kernel, compile_kernels


def numeric(function: ca.Function) -> Callable[..., np.ndarray]:
    """The first output of a function of dense columns, as a function of arrays that returns a new array.

    Example:
        >>> import casadi as ca, numpy as np
        >>> x, y = ca.SX.sym("x", 2), ca.SX.sym("y")
        >>> numeric(ca.Function("f", [x, y], [x * y]))(np.array([1.0, 2.0]), 3.0)
        array([3., 6.])

    """
    arguments = [ca.SX.sym(f"x{i}", function.size1_in(i)) for i in range(function.n_in())]
    shape = function.size_out(0)
    starts = np.cumsum([0, *(x.shape[0] for x in arguments)]).tolist()
    first, size = starts[-1], shape[0] * shape[1]
    value = ca.vec(ca.densify(function(*arguments)))
    kernel = Kernel("numeric", list(zip(arguments, starts[:-1], strict=True)), [(value, first)])
    code, used = compile_kernels([kernel], first + size)
    memory = np.zeros(first + size + used)
    pointer = memory.ctypes.data_as(ctypes.c_void_p)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.addresses["numeric"])
    places = [slice(a, b) for a, b in itertools.pairwise(starts)]

    def compute(*values: np.ndarray | float) -> np.ndarray:
        for place, given in zip(places, values, strict=True):
            memory[place] = given
        call(pointer)
        found = memory[first : first + size].copy()
        return found if shape[1] == 1 else found.reshape(shape, order="F")

    compute.code = code  # type: ignore[attr-defined]  # which lives as long as what calls it
    return compute
