"""Evaluating a NumPy function twice: on numbers, and on symbols whose CasADi graph is then evaluated at the same numbers."""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from dalembert.symbolic import as_column, from_column


def graph_of(function: Callable, size: int) -> Callable[[np.ndarray], np.ndarray]:
    """The function of points that a NumPy function's graph for so many symbols computes."""
    x = ca.SX.sym("x", size)
    value: Any = function(from_column(x))
    value = np.array(value, dtype=object) if isinstance(value, (list, tuple)) else value
    graph, shape = ca.Function("f", [x], [as_column(value)]), np.shape(value)
    return lambda point: np.asarray(graph(point), dtype=float).reshape(shape)


def on_symbols(function: Callable, point: np.ndarray) -> np.ndarray:
    return graph_of(function, len(point))(point)


def on_numbers(function: Callable, point: np.ndarray) -> np.ndarray:
    return np.asarray(function(point.copy()), dtype=float)
