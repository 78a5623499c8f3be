"""Solutions of any problem to 20 digits and more: extrapolation and collocation in double-double arithmetic, compiled by g++.

CasADi writes the underlying ODE of a system (`da.reduce_index`) as C, benchmarks/double_double.cpp integrates it with 32
digits. A maximum in the model, as in a law of friction, makes its derivatives jump: max(a, b) is replaced by a + s (b - a) with
s = 0 or 1, and steps end where b - a changes its sign.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import casadi as ca
import mpmath
import numpy as np

import dalembert as da
from dalembert.compiler._tape import read_tape
from dalembert.runs._starts import initial_state
from dalembert.tableaux import Tableau
from dalembert.verify._multiprecision import _evaluator

SOURCE = Path(__file__).with_suffix(".cpp")
ROOM = 1_000_000
"""Steps at most."""
Array = ctypes.POINTER(ctypes.c_double)


@dataclass(frozen=True)
class Grid:
    """The times after the steps, and for each the modes in which the model goes on."""

    times: np.ndarray
    modes: np.ndarray

    @property
    def events(self) -> np.ndarray:
        """The times at which a mode changes."""
        return self.times[1:][np.any(np.diff(self.modes, axis=0) != 0, axis=1)]


def without_maxima(function: ca.Function) -> tuple[ca.SX, list[ca.SX], ca.SX, ca.SX]:
    """Its values as expressions in new inputs: max(a, b) becomes a + s (b - a). Values, inputs, the s, and the b - a."""
    inputs = [ca.SX.sym(function.name_in(i), function.size1_in(i)) for i in range(function.n_in())]
    flat = ca.vertcat(*inputs)
    parts = ca.vertsplit(flat, np.cumsum([0, *(x.shape[0] for x in inputs)]).tolist())
    tape = read_tape(ca.Function("f", [flat], [ca.densify(function(*parts))]))
    values: list[ca.SX] = []
    modes: list[ca.SX] = []
    switching: list[ca.SX] = []
    for operation, operands, constant, position in tape.rows():
        given = [values[k] for k in operands]
        if operation == ca.OP_CONST:
            values.append(ca.SX(constant))
        elif operation == ca.OP_INPUT:
            values.append(flat[position])
        elif operation == ca.OP_FMAX:
            modes.append(ca.SX.sym("s"))
            switching.append(given[1] - given[0])
            values.append(given[0] + modes[-1] * switching[-1])
        else:
            values.append(ca.SX.binary(operation, *given) if len(given) == 2 else ca.SX.unary(operation, *given))
    found = ca.vertcat(*(values[k] for k in tape.outputs))
    return found, inputs, ca.vertcat(ca.SX(0, 1), *modes), ca.vertcat(ca.SX(0, 1), *switching)


class DoubleDouble:
    """A problem in double-double arithmetic."""

    def __init__(self, problem: da.problems.Problem) -> None:
        self.reduced = da.reduce_index(problem)
        self.form, self.state = self.reduced.form, initial_state(problem)[1]
        self.n, self.m = self.form.n_state, self.form.n_multipliers
        self.mp = mpmath.mp.clone()
        self.mp.dps = 40

    @cached_property
    def library(self) -> ctypes.CDLL:
        """The compiled model and integrators."""
        t, y, z, lam, psi, theta = self.reduced._symbols
        x, mu = ca.vertcat(y, z), ca.vertcat(lam, psi)
        together = ca.vertcat(self.reduced._rate, self.reduced._hidden_rate)
        found, given, modes, switching = without_maxima(ca.Function("f", [t, x, mu, theta], [together]))
        inputs, H = [*given, modes], found[self.n :]
        self.switches = modes.shape[0]
        functions = (
            ca.Function("rate", inputs, [found[: self.n], switching]),
            ca.Function("algebra", inputs, [ca.densify(ca.jacobian(H, given[2])), H]),
        )
        with tempfile.TemporaryDirectory() as folder:
            generator = ca.CodeGenerator("model.c")
            for function in functions:
                generator.add(function)
            generator.generate(f"{folder}/")
            sizes = {"N_STATE": self.n, "N_MULTIPLIERS": self.m, "N_SWITCHES": self.switches}
            sizes["LINEAR"] = int(self.form.linear_in_multipliers)
            defined = {"MODEL": f'"{folder}/model.c"', "casadi_real": "dd", **sizes}
            flags = ["-O2", "-march=native", "-ffp-contract=off", "-fPIC", "-shared", "-w"]
            names = [f"-D{name}={value}" for name, value in defined.items()]
            subprocess.run(["g++", *flags, *names, str(SOURCE), "-o", f"{folder}/model.so", "-lquadmath"], check=True)
            return ctypes.CDLL(f"{folder}/model.so")

    @cached_property
    def start(self) -> list[Any]:
        """(y, z) on the constraints in multiprecision: corrections of least norm, their matrices in double precision."""
        mp, system, state = self.mp, self.form, self.state
        theta = [mp.mpf(float(x)) for x in state.theta]
        xi = self.reduced._pack(state)
        dim = system.state_blocks[0][1]
        y, z, t = [mp.mpf(float(x)) for x in xi[:dim]], [mp.mpf(float(x)) for x in xi[dim : self.n]], mp.mpf(state.t)
        if not self.m:
            return [*y, *z]
        symbols = [ca.SX.sym("s", size) for size in (1, len(y), len(z), len(theta))]
        functions = (system.function("g")(symbols[0], symbols[1], symbols[3]), system.function("hidden")(*symbols))
        g, hidden = (_evaluator(mp, symbols, expression) for expression in functions)
        slopes = [ca.jacobian(functions[0], symbols[1]), ca.jacobian(functions[1], symbols[2])]
        at = ca.Function("slopes", symbols, slopes)(float(t), xi[:dim], xi[dim : self.n], state.theta)
        G, K = (np.linalg.pinv(np.array(matrix), rcond=1e-10) if matrix.numel() else np.zeros((0, 0)) for matrix in at)
        for _ in range(8):
            if len(y) and len(G):
                y = _corrected(mp, y, G, g([t, *y, *z, *theta]))
            z = _corrected(mp, z, K, hidden([t, *y, *z, *theta]))
        return [*y, *z]

    def _begin(self) -> tuple[Any, Any]:
        """Parameters, modes and guesses in place, the start as an array, and the scale of errors."""
        library = self.library
        theta, guess = _pairs([self.mp.mpf(float(x)) for x in self.state.theta]), np.append(self.state.multipliers, 0.0)
        modes = np.zeros(self.switches + 1)
        x = _pairs(self.start)
        library.set_model(_pointer(theta), len(self.state.theta), _pointer(modes), _pointer(guess))
        library.switching_at.argtypes = [ctypes.c_double, Array, Array]
        found = np.zeros(self.switches + 1)
        library.switching_at(self.state.t, _pointer(x), _pointer(found))
        modes = (found > 0).astype(float)
        library.set_model(_pointer(theta), len(self.state.theta), _pointer(modes), _pointer(guess))
        return x, np.full(self.n, 1e-6)

    def extrapolated(self, t1: float, columns: int = 10, tolerance: float = 1e-22) -> tuple[list[Any], Grid]:
        """The state at t1 by extrapolation of the explicit midpoint rule, of the order 2 columns, and its steps."""
        x, scale = self._begin()
        times, modes = np.zeros(ROOM), np.zeros((ROOM, self.switches))
        numbers = [self.state.t, t1, 1e-4 * (t1 - self.state.t), tolerance]
        steps = self.library.extrapolate(
            _pointer(x), *map(ctypes.c_double, numbers), columns, _pointer(scale), _pointer(times), _pointer(modes), ROOM
        )
        if steps < 0:
            raise RuntimeError(f"extrapolation ends at t = {times[max(-steps - 2, 0)]:g} after {-steps - 1} steps")
        return self._numbers(x), Grid(times[:steps].copy(), modes[:steps].copy())

    def collocated(
        self, tableau: Tableau, grid: Grid, parts: int = 1, newton: bool = False, stop: float = 1e-25
    ) -> tuple[list[Any], int]:
        """The state at the end of the grid, each interval in so many equal steps, and the most iterations of a step."""
        x, scale = self._begin()
        exact, s = tableau.exact, tableau.stages
        A, b, c = ([self.mp.mpf(value) for value in matrix] for matrix in (exact.A, exact.b, exact.c))
        nodes, mp = [self.mp.mpf(0), *c], self.mp
        P = [
            mp.fprod((1 + at - other) / (node - other) for k, other in enumerate(nodes) if k != j)
            for at in c
            for j, node in enumerate(nodes)
        ]
        arrays = [_pairs(values) for values in (A, b, c, P)]
        most = self.library.collocate(
            _pointer(x), ctypes.c_double(self.state.t), _pointer(grid.times), _pointer(grid.modes), len(grid.times), parts, s,
            *map(_pointer, arrays), int(newton), ctypes.c_double(stop), _pointer(scale),
        )  # fmt: skip
        if most < 0:
            raise RuntimeError(f"the iteration of {tableau.name} {'does not converge' if most == -1 else 'passes a switch'}")
        return self._numbers(x), most

    @property
    def evaluations(self) -> int:
        """Of the right-hand side, in the last run."""
        self.library.evaluated.restype = ctypes.c_long
        return int(self.library.evaluated())

    def positions(self, x: Sequence[Any]) -> list[Any]:
        """y of a state, which is (y, z)."""
        dim = self.form.state_blocks[0][1]
        return list(x[:dim] if dim else x)

    def _numbers(self, pairs: np.ndarray) -> list[Any]:
        return [self.mp.mpf(float(high)) + self.mp.mpf(float(low)) for high, low in pairs]


def _pairs(numbers: Sequence[Any]) -> np.ndarray:
    """Each number as two doubles."""
    high = [float(x) for x in numbers]
    return np.array([(h, float(x - h)) for x, h in zip(numbers, high, strict=True)]).reshape(-1, 2)


def _pointer(array: np.ndarray) -> Any:
    return array.ctypes.data_as(Array)


def _corrected(mp: Any, x: list[Any], inverse: np.ndarray, residual: list[Any]) -> list[Any]:
    return [
        a - mp.fsum(mp.mpf(float(m)) * r for m, r in zip(row, residual, strict=True)) for a, row in zip(x, inverse, strict=True)
    ]
