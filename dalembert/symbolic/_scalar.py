"""A symbolic scalar that NumPy's functions accept.

CasADi's own SX leaves NumPy as soon as it meets an array, turns `math.sin(q[0])` into nan and prints warnings.
This thin wrapper keeps NumPy's semantics and raises a sentence with the fix where a symbol cannot do what is asked.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.symbolic._operations import add, divide, multiply, subtract, unary

NUMPY: dict[str, Callable] = {}
"""How NumPy's functions act on symbols: "ufunc" and "function", of modules built on this one, which the package writes here."""


class NotForSymbols(ModelError):
    """A function of the user did with a symbol what only numbers can do."""

    def said_of(self, what: str) -> ModelError:
        """The same of a function that has a name."""
        return ModelError(f"{what} {str(self).removeprefix('a model function ')}")


class Scalar:
    """One symbolic number; behaves like a NumPy float inside expressions."""

    __slots__ = ("_sx",)
    __hash__ = None  # type: ignore[assignment]  # == builds an expression, so a Scalar cannot be a dictionary key

    def __init__(self, value: ca.SX | float) -> None:
        self._sx = value if isinstance(value, ca.SX) else ca.SX(float(value))

    @property
    def sx(self) -> ca.SX:
        """The CasADi expression."""
        return self._sx

    def __repr__(self) -> str:
        return str(self.sx)

    def __float__(self) -> float:
        if self.sx.is_constant():
            return float(self.sx)
        raise NotForSymbols(
            "a model function asked for the number behind a symbol (float(x), a function of Python's math module, or "
            "an assignment to an element of a float array): use NumPy's functions, such as np.sin(q[0]) in place of "
            "math.sin(q[0]), and make arrays to be filled with np.zeros(n, like=q)"
        )

    def __int__(self) -> int:
        return int(float(self))

    def __index__(self) -> int:
        raise NotForSymbols(
            "a model function used a symbol as an index or a count (q[k] or range(k) with k depending on the state or "
            "on a parameter): such numbers must be plain Python integers, fixed when the model is written"
        )

    def __bool__(self) -> bool:
        if self.sx.is_constant():
            return bool(float(self.sx))
        raise NotForSymbols(
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
                result = multiply(result, x)
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


ARITHMETIC = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power", "floordiv": "floor_divide",
    "mod": "remainder", "and": "logical_and", "or": "logical_or", "xor": "logical_xor",
}  # fmt: skip
COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
"""Python's names of operators -> NumPy's."""

SAME_NAME = ("sign", "sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil")
"""Functions that NumPy and CasADi call alike."""

# NumPy's name -> what it does to CasADi expressions. The methods of these names serve NumPy's loops over object arrays.
UNARY: dict[str, Callable[[ca.SX], ca.SX]] = {
    **{name: unary(name) for name in SAME_NAME},
    **{f"arc{name}": unary(f"a{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "negative": operator.neg,
    "positive": operator.pos,
    **dict.fromkeys(("absolute", "fabs"), unary("fabs")),
    "cbrt": lambda x: ca.sign(x) * ca.fabs(x) ** (1 / 3),
    "square": lambda x: multiply(x, x),
    "reciprocal": lambda x: 1 / x,
    "exp2": lambda x: ca.exp(x * np.log(2.0)),
    "log2": lambda x: ca.log(x) / np.log(2.0),
    "log10": lambda x: ca.log(x) / np.log(10.0),
    "rint": lambda x: x - ca.remainder(x, ca.SX(1)),
    "trunc": lambda x: _where(x >= 0, ca.floor(x), ca.ceil(x)),
    **dict.fromkeys(("deg2rad", "radians"), lambda x: x * (np.pi / 180)),
    **dict.fromkeys(("rad2deg", "degrees"), lambda x: x * (180 / np.pi)),
    **dict.fromkeys(("logical_not", "invert"), ca.logic_not),
    "conjugate": lambda x: x,
}

BINARY: dict[str, Callable[[ca.SX, ca.SX], ca.SX]] = {
    **{name: getattr(operator, short) for short, name in COMPARISONS.items()},
    "add": add,
    "subtract": subtract,
    "multiply": multiply,
    **dict.fromkeys(("divide", "true_divide"), divide),
    "floor_divide": lambda x, y: ca.floor((x - _remainder(x, y)) / y + 0.5),
    "remainder": _remainder,
    "fmod": ca.fmod,
    **dict.fromkeys(("power", "float_power"), _power),
    "arctan2": ca.atan2,
    "hypot": lambda x, y: ca.sqrt(
        add(multiply(x, x), multiply(y, y))
    ),  # libm's hypot guards against overflow at ten times the cost
    **dict.fromkeys(("minimum", "fmin"), ca.fmin),
    **dict.fromkeys(("maximum", "fmax"), ca.fmax),
    "copysign": ca.copysign,
    "heaviside": lambda x, y: _where(x < 0, ca.SX(0), _where(x > 0, ca.SX(1), y)),
    **dict.fromkeys(("logical_and", "bitwise_and"), ca.logic_and),
    **dict.fromkeys(("logical_or", "bitwise_or"), ca.logic_or),
    **dict.fromkeys(("logical_xor", "bitwise_xor"), lambda x, y: ca.logic_not(x) != ca.logic_not(y)),
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
    def of_one(name: str) -> Callable[[Scalar], Any]:
        return lambda self: elementary(name, self)

    def binary(name: str, reflected: bool) -> Callable[[Scalar, Any], Any]:
        def apply(self: Scalar, other: Any) -> Any:
            operands = (other, self) if reflected else (self, other)
            if _is_number(other):
                return elementary(name, *operands)
            return getattr(np, name)(*operands) if isinstance(other, np.ndarray) else NotImplemented

        return apply

    for name in UNARY:
        if not hasattr(Scalar, name):
            setattr(Scalar, name, of_one(name))
    for name in ("arctan2", "hypot", "fmod", "copysign", "heaviside"):
        setattr(Scalar, name, functools.partialmethod(lambda self, other, name: elementary(name, self, other), name=name))
    for operator_name, name in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
        setattr(Scalar, f"__{operator_name}__", of_one(name))
    for operator_name, name in (ARITHMETIC | COMPARISONS).items():
        setattr(Scalar, f"__{operator_name}__", binary(name, reflected=False))
    for operator_name, name in ARITHMETIC.items():
        setattr(Scalar, f"__r{operator_name}__", binary(name, reflected=True))


_install_operators()
