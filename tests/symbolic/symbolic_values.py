"""Evaluating a NumPy function twice: on numbers, and on symbols whose CasADi graph is then evaluated at the same numbers."""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from dalembert.symbolic import as_column, from_column


def on_symbols(function: Callable, point: np.ndarray) -> np.ndarray:
    x = ca.SX.sym("x", len(point))
    value: Any = function(from_column(x))
    value = np.array(value, dtype=object) if isinstance(value, (list, tuple)) else value
    column = ca.Function("f", [x], [as_column(value)])(point)
    return np.asarray(column, dtype=float).reshape(np.shape(value))


def on_numbers(function: Callable, point: np.ndarray) -> np.ndarray:
    return np.asarray(function(point.copy()), dtype=float)
