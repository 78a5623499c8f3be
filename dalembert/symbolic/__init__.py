"""NumPy arrays of symbolic scalars: the language of models and of methods."""

from dalembert.symbolic._array import SymbolicArray, as_column, from_column, stack_columns
from dalembert.symbolic._functions import apply_function
from dalembert.symbolic._merge import merged
from dalembert.symbolic._scalar import NUMPY, NotForSymbols, Scalar, symbol
from dalembert.symbolic._universal import apply_ufunc

NUMPY.update(ufunc=apply_ufunc, function=apply_function)

__all__ = ["NotForSymbols", "Scalar", "SymbolicArray", "as_column", "from_column", "merged", "stack_columns", "symbol"]
