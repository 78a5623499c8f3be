"""Runs in multiprecision from the same step equations, for orders that have no window in double precision."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import casadi as ca
import numpy as np

from dalembert.compiler import first_guess
from dalembert.compiler._reduction import reduce_step
from dalembert.compiler._tape import read_tape
from dalembert.errors import InconsistentStart, InputError, StepFailed
from dalembert.methods import OneStepMethod
from dalembert.methods._base import refuse_varying
from dalembert.systems import State, System
from dalembert.systems._consistent import unpack
from dalembert.systems._dependency import refuse_redundant


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


SAME_NAME = ("sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "sign")
"""Operations that mpmath has a function of the same name for."""


def _operations(mp: Any) -> dict[int, Callable]:
    logical: dict[int, Callable] = {
        ca.OP_LT: operator.lt,
        ca.OP_LE: operator.le,
        ca.OP_EQ: operator.eq,
        ca.OP_NE: operator.ne,
        ca.OP_NOT: operator.not_,
        ca.OP_AND: lambda x, y: bool(x) and bool(y),
        ca.OP_OR: lambda x, y: bool(x) or bool(y),
    }
    return {
        **{getattr(ca, f"OP_{name.upper()}"): getattr(mp, name) for name in SAME_NAME},
        **{code: _as_number(mp, condition) for code, condition in logical.items()},
        ca.OP_ASSIGN: lambda x: x,
        ca.OP_ADD: operator.add,
        ca.OP_SUB: operator.sub,
        ca.OP_MUL: operator.mul,
        ca.OP_DIV: operator.truediv,
        ca.OP_NEG: operator.neg,
        ca.OP_SQ: lambda x: x * x,
        ca.OP_TWICE: lambda x: x + x,
        ca.OP_INV: lambda x: 1 / x,
        **dict.fromkeys((ca.OP_POW, ca.OP_CONSTPOW), operator.pow),
        ca.OP_FABS: abs,
        ca.OP_IF_ELSE_ZERO: lambda x, y: y if x else mp.mpf(0),
        ca.OP_FMIN: min,
        ca.OP_FMAX: max,
    }


def _as_number(mp: Any, condition: Callable) -> Callable:
    return lambda *arguments: mp.mpf(condition(*arguments))


def _evaluator(mp: Any, inputs: list[ca.SX], expression: ca.SX) -> Callable[[list[Any]], list[Any]]:
    """A CasADi expression as a function of a flat list of mpmath numbers."""
    tape = read_tape(ca.Function("f", [ca.vertcat(*inputs)], [ca.densify(expression)]))
    code, operations = list(tape.rows()), _operations(mp)
    unknown = {entry[0] for entry in code} - set(operations) - {ca.OP_CONST, ca.OP_INPUT}
    if unknown:
        raise InputError(f"the model uses operations {sorted(unknown)} that have no multiprecision form here")

    def evaluate(arguments: list[Any]) -> list[Any]:
        values: list[Any] = []
        for operation, operands, constant, position in code:
            if operation == ca.OP_CONST:
                values.append(mp.mpf(constant))
            elif operation == ca.OP_INPUT:
                values.append(arguments[position])
            else:
                values.append(operations[operation](*(values[i] for i in operands)))
        return [values[k] for k in tape.outputs]

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

    refuse_varying(method, "a run in multiprecision")
    if method.starting is not None:
        raise InputError(f"{method} prepares its first step, which is not done in multiprecision")
    if method.substeps != ((method, 1.0),):
        raise InputError(f"{method} has coefficients in double precision only: run its basic method in multiprecision")
    given = {"q0": q0, "p0": p0, "y0": y0, "z0": z0, "lam0": lam0, "psi0": psi0}
    names = system.starts_from[0], system.starts_from[-1]
    start = [given[name] if name else [] for name in names]
    if any(part is None for part in start):
        raise InputError(f"give the initial values {' and '.join(filter(None, names))}")
    sizes = (system.n_holonomic, system.n_nonholonomic)
    guesses = [given[name] for name in system.guesses]
    guess = np.concatenate([np.zeros(n) if x is None else np.array(x, float) for n, x in zip(sizes, guesses, strict=True)])
    mp = mpmath.mp.clone()
    mp.dps = digits + 5
    theta = [mp.mpf(float(x)) for x in system.parameters.vector(params)]
    y, z = ([_number(mp, x) for x in part] for part in start)
    h, t = _number(mp, h), mp.mpf(t0)
    _check_start(mp, system, t, y, z, theta, digits)
    refuse_redundant("a run in multiprecision", system, float(t), _floats(y), _floats(z), _floats(theta))
    stepper = _Stepper(mp, system, method, digits)
    for k in range(steps):
        state = unpack(system, float(t + k * h), _floats([*y, *z]), _floats(theta), guess)
        guess = state.multipliers  # so that the branch is kept
        packed = stepper.step(state, t + k * h, h, [*y, *z], theta)
        y, z = packed[: len(y)], packed[len(y) :]
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


class _Stepper:
    """The steps of a method, in multiprecision."""

    def __init__(self, mp: Any, system: System, method: OneStepMethod, digits: int) -> None:
        self.mp, self.system, self.digits = mp, system, digits
        self.reduced = reduced = reduce_step(method.step_equations(system, exact=True))
        constants = reduced.equations.step.constants
        self.symbols = [reduced.x, *reduced.data, ca.vertcat(ca.SX(0, 1), *(symbol for symbol, _ in constants))]
        self.constants = [_number(mp, value) for _, value in constants]
        self.residual = _evaluator(mp, self.symbols, reduced.residual)
        self.jacobian = ca.Function("jacobian", self.symbols, [reduced.jacobian])
        self.increment = self._increment()

    def step(self, state: State, t: Any, h: Any, packed: list[Any], theta: list[Any]) -> list[Any]:
        """The variables after one step from `packed`, which `state` is in double precision."""
        data = [t, h, *theta, *packed, *self.constants]
        return [a + b for a, b in zip(packed, self.increment([*self._solve(state, h, data), *data]), strict=True)]

    def _solve(self, state: State, h: Any, data: list[Any]) -> list[Any]:
        mp, constants = self.mp, _floats(self.constants)
        x = [mp.mpf(value) for value in first_guess(self.reduced, self.system, state, float(h))]
        if not x:
            return x
        previous, matrix = mp.inf, np.zeros((0, 0))
        for iteration in range(60):
            if iteration < 8:
                matrix = np.asarray(self.jacobian(_floats(x), state.t, float(h), state.theta, state.packed, constants), float)
            residual = self.residual([*x, *data])
            if not any(residual):
                return x
            x, size = _refined(mp, x, matrix, residual)
            if size < mp.mpf(10) ** (-self.digits) or (size >= previous and iteration > 10):
                if size < mp.mpf(10) ** (-self.digits + 3):
                    return x
                break
            previous = size
        raise StepFailed(f"the multiprecision step from t = {state.t:g} did not converge: reduce h")

    def _increment(self) -> Callable[[list[Any]], list[Any]]:
        """The change of the state as a function of unknowns and data; what enters linearly is solved for at the end."""
        mp, symbols, last = self.mp, self.symbols, self.reduced.last
        if last is None:
            return _evaluator(mp, symbols, self.reduced.increment)
        m = last.y.shape[0]
        equations = _evaluator(mp, symbols, ca.vertcat(ca.vec(ca.densify(last.matrix).T), last.rhs))
        increment = _evaluator(mp, [last.y, *symbols], self.reduced.increment)

        def finish(arguments: list[Any]) -> list[Any]:
            entries = equations(arguments)
            matrix = mp.matrix([entries[i * m : (i + 1) * m] for i in range(m)])
            return increment([*mp.lu_solve(matrix, mp.matrix(entries[m * m :])), *arguments])

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
        result, _ = _refined(mp, result, matrix, rate([t, *y, *z, *result, *theta]))
    return result


def _refined(mp: Any, x: list[Any], matrix: np.ndarray, residual: list[Any]) -> tuple[list[Any], Any]:
    """One Newton step with a matrix in double precision, and the size of its increment."""
    scale = max(abs(value) for value in residual) or mp.mpf(1)  # before rounding, so that tiny residuals keep their digits
    increment = np.linalg.solve(matrix, np.array([float(value / scale) for value in residual])).tolist()
    return [a - scale * mp.mpf(b) for a, b in zip(x, increment, strict=True)], scale * max(abs(b) for b in increment)
