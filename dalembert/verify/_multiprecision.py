"""Runs in multiprecision from the same step equations, for orders that have no window in double precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import casadi as ca
import numpy as np

from dalembert.compiler import first_guess
from dalembert.compiler._ir import instructions
from dalembert.compiler._reduction import ReducedStep, reduce_step
from dalembert.errors import InconsistentStart, InputError, StepFailed
from dalembert.methods import OneStepMethod
from dalembert.systems import System
from dalembert.systems._consistent import unpack


@dataclass(frozen=True, eq=False)
class MultiprecisionState:
    """The final state of a multiprecision run, as lists of mpmath numbers: `q` and `p`, or `y` and `z`; `lam` and `psi`."""

    t: Any
    y: list[Any]
    z: list[Any]
    lam: list[Any]
    psi: list[Any]

    @property
    def q(self) -> list[Any]:
        """The configuration."""
        return self.y

    @property
    def p(self) -> list[Any]:
        """The momentum."""
        return self.z


def _operations(mp: Any) -> dict[int, Callable]:
    return {
        ca.OP_ASSIGN: lambda x: x,
        ca.OP_ADD: lambda x, y: x + y,
        ca.OP_SUB: lambda x, y: x - y,
        ca.OP_MUL: lambda x, y: x * y,
        ca.OP_DIV: lambda x, y: x / y,
        ca.OP_NEG: lambda x: -x,
        ca.OP_SQ: lambda x: x * x,
        ca.OP_TWICE: lambda x: x + x,
        ca.OP_INV: lambda x: 1 / x,
        ca.OP_POW: lambda x, y: x**y,
        ca.OP_CONSTPOW: lambda x, y: x**y,
        ca.OP_SQRT: mp.sqrt,
        ca.OP_EXP: mp.exp,
        ca.OP_LOG: mp.log,
        ca.OP_SIN: mp.sin,
        ca.OP_COS: mp.cos,
        ca.OP_TAN: mp.tan,
        ca.OP_ASIN: mp.asin,
        ca.OP_ACOS: mp.acos,
        ca.OP_ATAN: mp.atan,
        ca.OP_ATAN2: mp.atan2,
        ca.OP_SINH: mp.sinh,
        ca.OP_COSH: mp.cosh,
        ca.OP_TANH: mp.tanh,
        ca.OP_FABS: abs,
        ca.OP_SIGN: mp.sign,
        ca.OP_LT: lambda x, y: mp.mpf(x < y),
        ca.OP_LE: lambda x, y: mp.mpf(x <= y),
        ca.OP_EQ: lambda x, y: mp.mpf(x == y),
        ca.OP_NE: lambda x, y: mp.mpf(x != y),
        ca.OP_NOT: lambda x: mp.mpf(not x),
        ca.OP_AND: lambda x, y: mp.mpf(bool(x) and bool(y)),
        ca.OP_OR: lambda x, y: mp.mpf(bool(x) or bool(y)),
        ca.OP_IF_ELSE_ZERO: lambda x, y: y if x else mp.mpf(0),
        ca.OP_FMIN: min,
        ca.OP_FMAX: max,
    }


def _evaluator(mp: Any, inputs: list[ca.SX], expression: ca.SX) -> Callable[[list[Any]], list[Any]]:
    """A CasADi expression as a function of a flat list of mpmath numbers."""
    code = instructions(ca.Function("f", [ca.vertcat(*inputs)], [ca.densify(expression)], {"cse": True}))
    operations = _operations(mp)
    unknown = {entry[0] for entry in code} - set(operations) - {ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT}
    if unknown:
        raise InputError(f"the model uses operations {sorted(unknown)} that have no multiprecision form here")
    size = expression.shape[0] * expression.shape[1]

    def evaluate(arguments: list[Any]) -> list[Any]:
        values: list[Any] = []
        result = [mp.mpf(0)] * size
        for operation, operands, constant, position in code:
            if operation == ca.OP_OUTPUT:
                result[position] = values[operands[0]]
                values.append(None)
            elif operation == ca.OP_CONST:
                values.append(mp.mpf(constant))
            elif operation == ca.OP_INPUT:
                values.append(arguments[position])
            else:
                values.append(operations[operation](*(values[i] for i in operands)))
        return result

    return evaluate


def multiprecision_run(
    system: System,
    method: OneStepMethod,
    *,
    q0: Any = None,
    p0: Any = None,
    y0: Any = None,
    z0: Any = None,
    lam0: Any = None,
    psi0: Any = None,
    h: Any,
    steps: int,
    digits: int = 50,
    t0: float = 0.0,
    params: dict[str, Any] | None = None,
) -> MultiprecisionState:
    """Run `steps` steps with `digits` decimal digits, from the same step equations with exact coefficients.

    Initial values (q0 and p0; y0 and z0 of an ODAE; y0 of an index-2 DAE) and h may be fractions, mpmath numbers or strings
    ("0.1" means one tenth); guesses for multipliers choose the branch as in `da.simulate`. Newton's iteration takes its matrix
    from double precision and its residuals from multiprecision, so that each iteration gains about ten digits.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.pendulum()
        >>> end = da.verify.multiprecision_run(problem.system, da.LobattoIIIAB(stages=3), q0=[1, 0], p0=[0, 0], h="0.1",
        ...                                    steps=2, digits=40)
        >>> bool(abs(end.q[0] ** 2 + end.q[1] ** 2 - 1) < 1e-38)
        True

    """
    import mpmath

    if method.starting is not None:
        raise InputError(f"{method} prepares its first step, which is not done in multiprecision")
    if method.substeps != ((method, 1.0),):
        raise InputError(f"{method} has coefficients in double precision only: run its basic method in multiprecision")
    given = {"q0": q0, "p0": p0, "y0": y0, "z0": z0, "lam0": lam0, "psi0": psi0}
    start = [given[name] if name else [] for name in (system.starts_from[0], system.starts_from[-1])]
    if any(part is None for part in start):
        raise InputError(
            f"give the initial values {' and '.join(n for n in (system.starts_from[0], system.starts_from[-1]) if n)}"
        )
    sizes = (system.n_holonomic, system.n_nonholonomic)
    guesses = [given[name] for name in system.guesses]
    guess = np.concatenate([np.zeros(n) if x is None else np.array(x, float) for n, x in zip(sizes, guesses, strict=True)])
    mp = mpmath.mp.clone()
    mp.dps = digits + 5
    reduced = reduce_step(method.step_equations(system, exact=True))
    constants = reduced.equations.step.constants
    symbols = [reduced.x, *reduced.data, ca.vertcat(ca.SX(0, 1), *(symbol for symbol, _ in constants))]
    values = [_number(mp, value) for _, value in constants]
    theta = [mp.mpf(float(x)) for x in system.parameters.vector(params)]
    y, z = ([_number(mp, x) for x in part] for part in start)
    h, t = _number(mp, h), mp.mpf(t0)
    _check_start(mp, system, t, y, z, theta, digits)
    residual = _evaluator(mp, symbols, reduced.residual)
    finish = _finisher(mp, reduced, symbols)
    jacobian = ca.Function("jacobian", symbols, [reduced.jacobian])
    for k in range(steps):
        now = t + k * h
        rest = [now, h, *theta, *y, *z, *values]
        state = unpack(system, float(now), _floats([*y, *z]), _floats(theta), guess)
        guess = state.multipliers  # so that the branch is kept
        x = _solve(mp, system, reduced, residual, jacobian, rest, (state, h, values), digits)
        change = finish([*x, *rest])
        n = len(y)
        y, z = [a + b for a, b in zip(y, change[:n], strict=True)], [a + b for a, b in zip(z, change[n:], strict=True)]
    end = t + steps * h
    multipliers = _multipliers(mp, system, end, y, z, theta, guess)
    lam, psi = multipliers[: system.n_holonomic], multipliers[system.n_holonomic :]
    first, second = (z, psi) if system.state_blocks[1][0] == "y" else (y, z)
    return MultiprecisionState(end, first, second, lam, psi)


def _floats(numbers: list[Any]) -> np.ndarray:
    return np.array([float(x) for x in numbers])


def _check_start(mp: Any, system: System, t: Any, y: list[Any], z: list[Any], theta: list[Any], digits: int) -> None:
    symbols = [ca.SX.sym("t"), ca.SX.sym("y", len(y)), ca.SX.sym("z", len(z)), ca.SX.sym("theta", len(theta))]
    constraints = ca.vertcat(system.function("g")(symbols[0], symbols[1], symbols[3]), system.function("hidden")(*symbols))
    worst = max((abs(x) for x in _evaluator(mp, symbols, constraints)([t, *y, *z, *theta])), default=mp.mpf(0))
    if worst > mp.mpf(10) ** (5 - digits) * (1 + max(abs(x) for x in [*y, *z])):
        raise InconsistentStart(
            f"the initial values violate a constraint by {float(worst):.1e}, which {digits} digits show: give them exactly, as "
            'fractions, mpmath numbers or strings such as "0.6"'
        )


def _number(mp: Any, x: Any) -> Any:
    return mp.mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else mp.mpf(x)


def _solve(
    mp: Any,
    system: System,
    reduced: ReducedStep,
    residual: Callable,
    jacobian: ca.Function,
    rest: list[Any],
    parts: tuple,
    digits: int,
) -> list[Any]:
    state, h, values = parts
    constants = _floats(values)
    x = [mp.mpf(value) for value in first_guess(reduced, system, state, float(h))]
    if not x:
        return x
    previous, matrix = mp.inf, np.zeros((0, 0))
    for iteration in range(60):
        if iteration < 8:
            matrix = np.asarray(jacobian(_floats(x), state.t, float(h), state.theta, state.packed, constants), float)
        f = residual([*x, *rest])
        scale = max(abs(value) for value in f)
        if scale == 0:
            return x
        # Scaled before rounding to double, so that tiny residuals keep their digits.
        increment = np.linalg.solve(matrix, np.array([float(value / scale) for value in f]))
        x = [a - scale * mp.mpf(b) for a, b in zip(x, increment, strict=True)]
        size = scale * max(abs(b) for b in increment.tolist())
        if size < mp.mpf(10) ** (-digits) or (size >= previous and iteration > 10):
            if size < mp.mpf(10) ** (-digits + 3):
                return x
            break
        previous = size
    raise StepFailed(f"the multiprecision step from t = {state.t:g} did not converge: reduce h")


def _finisher(mp: Any, reduced: ReducedStep, symbols: list[ca.SX]) -> Callable[[list[Any]], list[Any]]:
    if reduced.last is None:
        return _evaluator(mp, symbols, reduced.increment)
    last, m = reduced.last, reduced.last.y.shape[0]
    system = _evaluator(mp, symbols, ca.vertcat(ca.vec(ca.densify(last.matrix).T), last.rhs))
    increment = _evaluator(mp, [last.y, *symbols], reduced.increment)

    def finish(arguments: list[Any]) -> list[Any]:
        entries = system(arguments)
        matrix = mp.matrix([entries[i * m : (i + 1) * m] for i in range(m)])
        y = mp.lu_solve(matrix, mp.matrix(entries[m * m :]))
        return increment([*y, *arguments])

    return finish


def _multipliers(mp: Any, system: System, t: Any, y: list[Any], z: list[Any], theta: list[Any], guess: np.ndarray) -> list[Any]:
    """(lam, psi) by Newton's iteration on 0 = d/dt (g_dot, k), its matrix and start from double precision."""
    m = system.n_multipliers
    if m == 0:
        return []
    floats = [_floats(part) for part in (y, z, theta)]
    x = system.multipliers(float(t), floats[0], floats[1], floats[2], guess)
    split = [system.n_holonomic]
    hidden_z = system.evaluate("hidden_z", float(t), *floats[:2], theta=floats[2])
    matrix = -hidden_z @ system.evaluate("directions", float(t), *floats[:2], *np.split(x, split), theta=floats[2])
    sizes = (1, len(y), len(z), system.n_holonomic, system.n_nonholonomic, len(theta))
    symbols = [ca.SX.sym("s", size) for size in sizes]
    rate = _evaluator(mp, symbols, system.function("hidden_rate")(*symbols))
    result = [mp.mpf(value) for value in x]
    for _ in range(2 + mp.dps // 10):
        f = rate([t, *y, *z, *result, *theta])
        scale = max(abs(value) for value in f) or mp.mpf(1)
        increment = np.linalg.solve(matrix, np.array([float(value / scale) for value in f]))
        result = [a - scale * mp.mpf(b) for a, b in zip(result, increment.tolist(), strict=True)]
    return result
