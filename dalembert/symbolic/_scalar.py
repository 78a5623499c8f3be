"""A symbolic scalar that NumPy's functions accept.

CasADi's own SX leaves NumPy as soon as it meets an array, turns `math.sin(q[0])` into nan and prints warnings.
This thin wrapper keeps NumPy's semantics and raises a sentence with the fix where a symbol cannot do what is asked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError

NUMPY: dict[str, Callable] = {}
"""How NumPy's functions act on symbols: "ufunc" and "function", which `_array`, built on this module, writes here."""


class Scalar:
    """One symbolic number; behaves like a NumPy float inside expressions."""

    __slots__ = ("sx",)
    __hash__ = None  # type: ignore[assignment]  # == builds an expression, so a Scalar cannot be a dictionary key

    def __init__(self, value: ca.SX | float) -> None:
        self.sx = value if isinstance(value, ca.SX) else ca.SX(float(value))

    def __repr__(self) -> str:
        return str(self.sx)

    def __float__(self) -> float:
        if self.sx.is_constant():
            return float(self.sx)
        raise ModelError(
            "a model function asked for the number behind a symbol (float(x), a function of Python's math module, or "
            "an assignment to an element of a float array): use NumPy's functions, such as np.sin(q[0]) in place of "
            "math.sin(q[0]), and make arrays to be filled with np.zeros(n, like=q)"
        )

    def __int__(self) -> int:
        return int(float(self))

    def __index__(self) -> int:
        raise ModelError(
            "a model function used a symbol as an index or a count (q[k] or range(k) with k depending on the state or "
            "on a parameter): such numbers must be plain Python integers, fixed when the model is written"
        )

    def __bool__(self) -> bool:
        if self.sx.is_constant():
            return bool(float(self.sx))
        raise ModelError(
            "a model function branched on a symbol (if, and, or, min, max, or a comparison of plain object arrays): "
            "use np.where(condition, a, b), np.minimum, np.maximum, and & or | between conditions; "
            "build arrays that you compare with np.array([...], like=q)"
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return NUMPY["ufunc"](ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable, types: Any, args: Any, kwargs: Any) -> Any:
        return NUMPY["function"](func, args, kwargs)

    def conjugate(self) -> Scalar:
        """Real numbers are their own conjugates (np.vdot and np.linalg.norm ask)."""
        return self

    @property
    def real(self) -> Scalar:
        """The real part: the number itself."""
        return self

    @property
    def imag(self) -> float:
        """The imaginary part: zero."""
        return 0.0

    if TYPE_CHECKING:  # what `_install_operators` adds

        def __neg__(self) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...


def symbol(name: str) -> Scalar:
    """A fresh symbolic scalar."""
    return Scalar(ca.SX.sym(name))


def sx_of(x: Any) -> ca.SX:
    """The CasADi expression of a scalar or number."""
    return x.sx if isinstance(x, Scalar) else ca.SX(float(x))


def _where(condition: ca.SX, a: ca.SX, b: ca.SX) -> ca.SX:
    return ca.if_else(condition, a, b)


def _power(x: ca.SX, y: ca.SX) -> ca.SX:
    # Small whole powers become products: CasADi's pow has no derivative at a zero base for a symbolic exponent,
    # and a call of libm's pow costs as much as twenty products.
    if y.is_constant():
        exponent = float(y)
        if exponent.is_integer() and abs(exponent) <= 8:
            result = ca.SX(1)
            for _ in range(int(abs(exponent))):
                result = result * x
            return 1 / result if exponent < 0 else result
        if exponent == 0.5:
            return ca.sqrt(x)
        if exponent == 1.5:
            return x * ca.sqrt(x)
        if exponent == -0.5:
            return 1 / ca.sqrt(x)
    return x**y


def _remainder(x: ca.SX, y: ca.SX) -> ca.SX:
    rest = ca.fmod(x, y)  # exact, of the sign of x; Python and NumPy want the sign of y
    return rest + _where(rest * y < 0, y, ca.SX(0))


# NumPy's name -> what it does to CasADi expressions. The methods of these names serve NumPy's loops over object arrays.
UNARY: dict[str, Callable[[ca.SX], ca.SX]] = {
    "negative": lambda x: -x,
    "positive": lambda x: x,
    "absolute": ca.fabs,
    "fabs": ca.fabs,
    "sign": ca.sign,
    "sqrt": ca.sqrt,
    "cbrt": lambda x: ca.sign(x) * ca.fabs(x) ** (1 / 3),
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "exp": ca.exp,
    "exp2": lambda x: ca.exp(x * np.log(2.0)),
    "expm1": ca.expm1,
    "log": ca.log,
    "log2": lambda x: ca.log(x) / np.log(2.0),
    "log10": lambda x: ca.log(x) / np.log(10.0),
    "log1p": ca.log1p,
    "sin": ca.sin,
    "cos": ca.cos,
    "tan": ca.tan,
    "arcsin": ca.asin,
    "arccos": ca.acos,
    "arctan": ca.atan,
    "sinh": ca.sinh,
    "cosh": ca.cosh,
    "tanh": ca.tanh,
    "arcsinh": ca.asinh,
    "arccosh": ca.acosh,
    "arctanh": ca.atanh,
    "floor": ca.floor,
    "ceil": ca.ceil,
    "rint": lambda x: x - ca.remainder(x, ca.SX(1)),
    "trunc": lambda x: _where(x >= 0, ca.floor(x), ca.ceil(x)),
    "deg2rad": lambda x: x * (np.pi / 180),
    "rad2deg": lambda x: x * (180 / np.pi),
    "radians": lambda x: x * (np.pi / 180),
    "degrees": lambda x: x * (180 / np.pi),
    "logical_not": ca.logic_not,
    "invert": ca.logic_not,
    "conjugate": lambda x: x,
}

BINARY: dict[str, Callable[[ca.SX, ca.SX], ca.SX]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "true_divide": lambda x, y: x / y,
    "floor_divide": lambda x, y: ca.floor((x - _remainder(x, y)) / y + 0.5),
    "remainder": _remainder,
    "fmod": ca.fmod,
    "power": _power,
    "float_power": _power,
    "arctan2": ca.atan2,
    "hypot": lambda x, y: ca.sqrt(x * x + y * y),  # libm's hypot guards against overflow at ten times the cost
    "minimum": ca.fmin,
    "maximum": ca.fmax,
    "fmin": ca.fmin,
    "fmax": ca.fmax,
    "copysign": ca.copysign,
    "heaviside": lambda x, y: _where(x < 0, ca.SX(0), _where(x > 0, ca.SX(1), y)),
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "logical_and": ca.logic_and,
    "bitwise_and": ca.logic_and,
    "logical_or": ca.logic_or,
    "bitwise_or": ca.logic_or,
    "logical_xor": lambda x, y: ca.logic_not(x) != ca.logic_not(y),
    "bitwise_xor": lambda x, y: ca.logic_not(x) != ca.logic_not(y),
}


def elementary(name: str, *arguments: Any) -> Any:
    """Apply one of NumPy's elementary functions to scalars; plain numbers stay plain."""
    if not any(isinstance(x, Scalar) for x in arguments):
        return getattr(np, name)(*arguments)
    table: dict[str, Any] = UNARY if len(arguments) == 1 else BINARY
    return Scalar(table[name](*(sx_of(x) for x in arguments)))


def where(condition: Any, a: Any, b: Any) -> Any:
    """np.where for scalars."""
    if not isinstance(condition, Scalar):
        return a if condition else b
    return Scalar(_where(condition.sx, sx_of(a), sx_of(b)))


def _is_number(x: Any) -> bool:
    return isinstance(x, (Scalar, Real, np.bool_)) or (isinstance(x, np.ndarray) and x.shape == () and x.dtype != object)


def _install_operators() -> None:
    def unary(name: str) -> Callable[[Scalar], Any]:
        return lambda self: elementary(name, self)

    def binary(name: str, reflected: bool) -> Callable[[Scalar, Any], Any]:
        def operator(self: Scalar, other: Any) -> Any:
            if not _is_number(other):
                return (
                    NotImplemented
                    if not isinstance(other, np.ndarray)
                    else getattr(np, name)(*((other, self) if reflected else (self, other)))
                )
            return elementary(name, other, self) if reflected else elementary(name, self, other)

        return operator

    for name in UNARY:
        if not hasattr(Scalar, name):
            setattr(Scalar, name, unary(name))
    for name in ("arctan2", "hypot", "fmod", "copysign", "heaviside"):
        setattr(Scalar, name, functools.partialmethod(lambda self, other, name: elementary(name, self, other), name=name))
    for operator, name in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
        setattr(Scalar, f"__{operator}__", unary(name))
    arithmetic = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power",
                  "floordiv": "floor_divide", "mod": "remainder", "and": "logical_and", "or": "logical_or",
                  "xor": "logical_xor"}  # fmt: skip
    for operator, name in arithmetic.items():
        setattr(Scalar, f"__{operator}__", binary(name, reflected=False))
        setattr(Scalar, f"__r{operator}__", binary(name, reflected=True))
    comparisons = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
                   "ne": "not_equal"}  # fmt: skip
    for operator, name in comparisons.items():
        setattr(Scalar, f"__{operator}__", binary(name, reflected=False))


_install_operators()
