"""What all systems are: differential equations for two blocks of variables, constraints, and multipliers that enforce them.

    y' = v(t, y, z),   z' = f(t, y, z, psi) + r(t, y, z, lam),   0 = g(t, y),   0 = g_t + g_y v,   0 = k(t, y, z)

In mechanics y is the configuration q and z the momentum p. This base class holds the symbolic functions of a system and derives
what follows from the constraints: the hidden constraint of g, and the equations of the multipliers.
"""

from __future__ import annotations

import copy
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.symbolic._buffers import Numbers
from dalembert.symbolic._kept import kept
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems._matrices import Matrix, solve, sparse_matrix
from dalembert.systems._model import Constraints, Parameters, call_model, vector_expression
from dalembert.systems._newton import newton, solve_rows
from dalembert.systems._pickling import pack, unpack_system
from dalembert.systems._rank import Parts, least_solution

MOST_VARIABLES, MOST_MULTIPLIERS = 600, 300
"""Of systems whose matrices are full ones."""


class System:
    """Base class of `Hamiltonian`, `Lagrangian` and `ODAE`; not made directly.

    Functions take their arguments in the order (t, y, z, lam, psi), leaving out those that they do not depend on by nature, and
    the flat vector of parameters last. All systems have v (t,y,z); f (t,y,z,psi); r (t,y,z,lam); g and G = g_y (t,y); g_yy =
    (G^T lam)_y (t,y,lam); g_dot and k (t,y,z); hidden, which is (g_dot, k), with its derivatives hidden_y and hidden_z (t,y,z);
    z_dot and hidden_rate = d/dt hidden (t,y,z,lam,psi); directions = -d z_dot / d(lam, psi) (t,y,z,lam,psi); reaction
    (t,y,lam), which is r where r does not depend on z; and, where (lam, psi) enter linearly, multiplier_matrix and
    multiplier_rhs (t,y,z), the linear system that 0 = hidden_rate is for them.
    """

    kind = "system"
    n_unilateral = 0
    combines: Any = None
    """The system whose redundant rows are combined here, and how (`_redundant.py`); None for systems as a user states them."""
    uncombined: Any = None
    """The same with all rows of its constraints, those of walls that are touched included; None where none are combined."""
    ramps: tuple[int, ...] = ()
    """The positions of parameters that change linearly in time (`_ramped.py`); none in systems as a user states them."""
    coordinate_names: tuple[str, ...] = ()
    """What the variables y are called in figures and messages, such as "crank.theta"; none where they have no names."""
    row_names: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """What the rows of g, k and phi are called, such as {"g": ("hinge 1, row 1", ...)}."""
    title = ""
    """What the system is called in figures; none where it was not made as a problem."""
    settings: Mapping[str, Any] = MappingProxyType({})
    """Constants of the problem that differ from the usual ones; figures say so."""
    part_named: Callable[[str], Any] | None = None
    """Of a mechanism: its part of a name, for `run.of("crank")`."""

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """What coordinates ("y") and rows of constraints ("g", "k", "phi") are called, where they have names."""
        found = {"y": tuple(self.coordinate_names), **{name: tuple(rows) for name, rows in self.row_names.items()}}
        return {name: labels for name, labels in found.items() if labels}

    starts_from: tuple[str, ...] = ("y0", "z0")
    """The names of initial values, for the first and the second block of the state."""
    guesses: tuple[str, str] = ("lam0", "psi0")
    """The names of guesses for the multipliers."""
    served_by = "da.GaussLobattoSPARK(stages) or da.GaussLobattoEMPRK(stages)"
    """Methods to name where another one does not serve."""
    matrices = frozenset({"G", "g_yy", "hidden_y", "hidden_z", "directions", "multiplier_matrix"})
    """Functions whose values are matrices, sparse ones."""

    def __init__(self, params: Mapping[str, Any] | None, blocks: tuple[tuple[str, int], tuple[str, int]]) -> None:
        self.parameters = Parameters(params)
        self.state_blocks = blocks
        """The blocks of a state, (name, size), in the order in which they are stored."""
        (y, dim_y), (z, dim_z) = blocks
        self._t, self._y, self._z = ca.SX.sym("t"), ca.SX.sym(y, dim_y), ca.SX.sym(z, dim_z)
        self._symbols = {"t": self._t, "y": self._y, "z": self._z}
        self._expressions: dict[str, tuple[tuple[str, ...], ca.SX]] = {}
        self.described: dict[str, str] = {}
        """The functions that the user's model consists of, and what to call them in messages."""

    # -- what the subclasses fill in -------------------------------------------------------------------------------

    def _define(self, arguments: str, **expressions: ca.SX) -> None:
        """Define functions of some of the symbols."""
        taken = tuple(arguments.split())
        self._expressions |= {name: (taken, expression) for name, expression in expressions.items()}

    def _set_energy(self, energy: ca.SX) -> None:
        self._define("t y z", H=energy)
        self.described["H"] = "energy"

    def _constraints(self, role: str, function: Constraints, visible: Mapping[str, Any], most: float = np.inf) -> ca.SX:
        """The values of one or several model functions that state constraints, of which `most` can be independent."""
        if function is None:
            return ca.SX(0, 1)
        functions: Sequence[Any] = function if isinstance(function, (list, tuple)) else [function]
        value = ca.vertcat(*(vector_expression(role, call_model(role, f, visible, self.parameters)) for f in functions))
        if value.shape[0] == 0:
            raise ModelError(f"{role} returned an empty list; leave the argument out for a system without such constraints")
        if value.shape[0] > most:
            raise ModelError(
                f"{role} returned {value.shape[0]} constraints for {most} coordinates; at most {most} can be independent"
            )
        return value

    def _multiplier_symbols(self, g: ca.SX, k: ca.SX) -> tuple[ca.SX, ca.SX]:
        """lam for the holonomic constraints g and psi for the nonholonomic constraints k."""
        self.n_holonomic, self.n_nonholonomic = g.shape[0], k.shape[0]
        self._symbols |= {"lam": ca.SX.sym("lam", self.n_holonomic), "psi": ca.SX.sym("psi", self.n_nonholonomic)}
        return self._symbols["lam"], self._symbols["psi"]

    def _derive(
        self, *, v: ca.SX, f: ca.SX, r: ca.SX, g: ca.SX, k: ca.SX, z_dot: Callable[[ca.SX], ca.SX] = lambda force: force
    ) -> None:
        """Define all functions; `z_dot` turns the force f + r into z'."""
        t, y, z, lam, psi = (self._symbols[name] for name in ("t", "y", "z", "lam", "psi"))
        multipliers, none = ca.vertcat(lam, psi), ca.SX.zeros(self.n_multipliers, 1)
        G = ca.jacobian(g, y)
        g_dot = ca.jacobian(g, t) + G @ v
        hidden = ca.vertcat(g_dot, k)
        rate = z_dot(f + r)
        hidden_y, hidden_z = ca.jacobian(hidden, y), ca.jacobian(hidden, z)
        drift, directions = ca.jacobian(hidden, t) + hidden_y @ v, -ca.jacobian(rate, multipliers)
        self._define("t y", g=g, G=G)
        self._define("t y lam", g_yy=ca.jacobian(G.T @ lam, y), **({} if ca.depends_on(r, z) else {"reaction": r}))
        self._define("t y z", v=v, g_dot=g_dot, k=k, hidden=hidden, hidden_y=hidden_y, hidden_z=hidden_z)
        self._define("t y z psi", f=f)
        self._define("t y z lam", r=r)
        self._define("t y z lam psi", z_dot=rate, hidden_rate=drift + hidden_z @ rate, directions=directions)
        if self.linear_in_multipliers:
            rhs = drift + hidden_z @ ca.substitute(rate, multipliers, none)
            self._define("t y z", multiplier_matrix=hidden_z @ directions, multiplier_rhs=rhs)

    # -- what everything else reads --------------------------------------------------------------------------------

    @property
    def used_guesses(self) -> list[str]:
        """The names of guesses for multipliers that there are."""
        counts = (self.n_holonomic, self.n_nonholonomic)
        return [name for name, count in zip(self.guesses, counts, strict=True) if count]

    def named_residuals(self, residuals: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The residuals of the constraints under the names that the model uses."""
        return residuals

    @property
    def n_multipliers(self) -> int:
        """How many multipliers (lam, psi) the constraints need."""
        return self.n_holonomic + self.n_nonholonomic

    @property
    def n_state(self) -> int:
        """The number of variables."""
        return sum(size for _, size in self.state_blocks)

    @property
    def params(self) -> dict[str, np.ndarray]:
        """The default values of the parameters."""
        return dict(self.parameters.values)

    @property
    def may_rest(self) -> bool:
        """Whether constraints of several kinds, or friction, may hold everything at rest, where only round-off moves."""
        return bool(self.n_nonholonomic) or "r" in self.described

    @kept
    def checked_starts(self) -> dict[Any, Any]:
        """States that initial values have led to, by these."""
        return {}

    @functools.cached_property
    def linear_in_multipliers(self) -> bool:
        """Whether the forces of the constraints are affine in their multipliers."""
        _, directions = self._expressions["directions"]
        return not ca.depends_on(directions, ca.vertcat(self._symbols["lam"], self._symbols["psi"]))

    @kept
    @one_at_a_time
    def function(self, name: str) -> ca.Function:
        """The CasADi function `name`, its arguments as the class says, theta last. Matrices are sparse."""
        arguments, expression = self._expressions[name]
        value = expression if name in self.matrices else ca.densify(expression)
        return ca.Function(name, [*(self._symbols[a] for a in arguments), self.parameters.theta], [value])

    @kept
    def _numbers(self, name: str) -> Numbers:
        """The same function, of numbers."""
        return Numbers(self.function(name))

    def arguments(self, name: str) -> tuple[str, ...]:
        """What a function depends on, out of t, y, z, lam and psi."""
        return self._expressions[name][0]

    @property
    def function_names(self) -> tuple[str, ...]:
        """The names that `function` knows."""
        return tuple(self._expressions)

    def evaluate(self, name: str, *arguments: Any, theta: np.ndarray | None = None) -> np.ndarray:
        """The numbers of one function at one state, matrices as matrices and columns as vectors."""
        function, theta = self._numbers(name), self.parameters.vector() if theta is None else theta
        return function.full(*arguments, theta) if name in self.matrices else function(*arguments, theta)

    def matrix(self, name: str, *arguments: Any, theta: np.ndarray) -> Matrix:
        """A matrix at one state for `_matrices.py`: full, or of large systems sparse."""
        function = self._numbers(name)
        if not self.large:
            return function.full(*arguments, theta)
        return sparse_matrix(ca.DM(function.function.sparsity_out(0), function(*arguments, theta)))

    def motion(self, t: ca.SX, y: ca.SX, z: ca.SX, theta: ca.SX) -> ca.SX:
        """(y', z') along the motion as an expression, where multipliers enter linearly."""
        multipliers = ca.SX(0, 1)
        if self.n_multipliers:
            multipliers = self.solved(*(self.function(f"multiplier_{part}")(t, y, z, theta) for part in ("matrix", "rhs")))
        lam, psi = ca.vertsplit(multipliers, [0, self.n_holonomic, self.n_multipliers])
        return ca.vertcat(self.function("v")(t, y, z, theta), self.function("z_dot")(t, y, z, lam, psi, theta))

    def solved(self, matrix: ca.SX, rhs: ca.SX) -> ca.SX:
        """The multipliers as an expression of the matrix and right-hand side of their equations."""
        return ca.solve(matrix, rhs)

    @property
    def large(self) -> bool:
        """Whether there are so many variables or constraints that full matrices would take too long."""
        return max(size for _, size in self.state_blocks) > MOST_VARIABLES or self.n_multipliers > MOST_MULTIPLIERS

    def at(self, name: str, values: Mapping[str, Any], theta: np.ndarray) -> np.ndarray:
        """`evaluate` with the arguments that the function takes, out of values for t, y, z, lam and psi."""
        return self.evaluate(name, *(values[a] for a in self._expressions[name][0]), theta=theta)

    def numbers(self, name: str, values: Mapping[str, Any], theta: np.ndarray) -> np.ndarray:
        """The same as one column, of matrices the entries that are not zero by structure."""
        return self._numbers(name)(*(values[a] for a in self._expressions[name][0]), theta)

    def redundant_rows(self, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray) -> int:
        """How many of the constraints g_dot and k follow from others in this state; only mechanical systems may have some."""
        return int(self.null_space(t, y, z, theta).shape[1])

    def null_space(self, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray, parts: Parts | None = None) -> Matrix:
        """A basis of the multipliers without an effect in this state, one a column; none but in mechanical systems."""
        del t, y, z, theta, parts
        return np.zeros((self.n_multipliers, 0))

    def multipliers(
        self,
        t: float,
        y: np.ndarray,
        z: np.ndarray,
        theta: np.ndarray,
        guess: np.ndarray | None = None,
        parts: Parts | None = None,
    ) -> np.ndarray:
        """(lam, psi) of the hidden constraints, 0 = d/dt (g_dot, k); where they enter nonlinearly, the root next to `guess`.

        Of constraints that are redundant, those of least norm (`null_space`).
        """
        if not self.n_multipliers:
            return np.zeros(0)
        if self.linear_in_multipliers:
            matrix = self.matrix("multiplier_matrix", t, y, z, theta=theta)
            rhs, null = self.evaluate("multiplier_rhs", t, y, z, theta=theta), self.null_space(t, y, z, theta, parts)
            return least_solution(matrix, rhs, null) if null.shape[1] else solve(matrix, rhs)

        def equations(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            parts = (x[: self.n_holonomic], x[self.n_holonomic :])
            hidden_z = self.matrix("hidden_z", t, y, z, theta=theta)
            directions = self.matrix("directions", t, y, z, *parts, theta=theta)
            return self.evaluate("hidden_rate", t, y, z, *parts, theta=theta), -hidden_z @ directions

        x = newton(equations, np.zeros(self.n_multipliers) if guess is None else guess)
        if x is None:
            raise np.linalg.LinAlgError("no multipliers near the guess fulfil the hidden constraints")
        return x

    def multipliers_along(self, t: np.ndarray, states: np.ndarray, theta: np.ndarray, guesses: np.ndarray) -> np.ndarray:
        """`multipliers` at many states at once, one row each, by undamped Newton steps; nan where they are not found."""
        n, m, count = self.state_blocks[0][1], self.n_holonomic, len(t)
        y, z = states[:, :n].T, states[:, n:].T
        arguments = (t[None], y, z), np.repeat(theta[:, None], count, axis=1)
        symbols = [ca.SX.sym("s", size) for size in (1, n, self.n_state - n, m, self.n_nonholonomic, len(theta))]
        directions = self.function("directions")(*symbols)
        slope = ca.densify(-self.function("hidden_z")(*symbols[:3], symbols[5]) @ directions)
        equations = ca.Function("multipliers", symbols, [self.function("hidden_rate")(*symbols), ca.vec(slope.T)]).map(count)
        x, size = guesses.copy(), np.full(count, np.inf)
        with np.errstate(all="ignore"):  # what overflows is not finite, and looked at again below
            for _ in range(30):
                values = equations(*arguments[0], x[:, :m].T, x[:, m:].T, arguments[1])
                rate, matrix = (np.asarray(value, dtype=float).T for value in values)
                step = solve_rows(matrix.reshape(count, *slope.shape), rate)
                previous, size = size, np.max(np.abs(step), axis=1) / np.maximum(np.max(np.abs(x), axis=1), 1e-300)
                x -= step
                settled = (size == 0) | ((size < 1e-9) & (size >= previous / 2)) | ~np.isfinite(size)
                if np.all(settled):
                    break
        for row in np.flatnonzero(~(size < 1e-9)):  # damped, one by one
            try:
                x[row] = self.multipliers(t[row], states[row, :n], states[row, n:], theta, guesses[row])
            except np.linalg.LinAlgError:
                x[row] = np.nan
        return x

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of the symbolic graph: equal for equal models, whatever Python objects they came from."""
        digest = hashlib.sha256(type(self).__name__.encode())
        of_walls = [name for name in ("restitution", "friction_law") if self.n_unilateral and name in self.function_names]
        for name in (*self.described, *of_walls):
            digest.update(self.function(name).serialize().encode())
        digest.update(repr(list(self.parameters.values)).encode())
        digest.update(b"" if self.combines is None else repr(self.combines[1]).encode())
        return digest.hexdigest()

    def row_called(self, kind: str, row: int) -> str:
        """What a row of "g", "k" or "phi" is called: after the part of a mechanism that states it, or by its number."""
        role = {"g": "holonomic", "k": "nonholonomic", "phi": "unilateral"}[kind]
        names = (self.uncombined or self).row_names.get(kind, ())
        return repr(names[row]) if row < len(names) else f"{role}[{row}]"

    def called(self, **names: Any) -> System:
        """The same system under other names: `title`, `settings` or `coordinate_names`."""
        clone = copy.copy(self)
        vars(clone).update(names)
        if "coordinate_names" not in names:  # which messages repeat; all else that was derived serves both
            vars(clone)["_kept"] = vars(self).setdefault("_kept", {})
        return clone

    def __copy__(self) -> System:
        """A copy that shares its symbols, unlike one that was pickled."""
        clone = type(self).__new__(type(self))
        clone.__dict__.update(self.__dict__)
        clone.__dict__.pop("_kept", None)
        return clone

    def __reduce__(self) -> tuple[Any, ...]:
        return unpack_system, pack(self)

    def __repr__(self) -> str:
        parts = [f"<{type(self).__name__} of {self._size}"]
        for kind in ("holonomic", "nonholonomic", "unilateral"):
            count = getattr(self, f"n_{kind}")
            if count:
                parts.append(f"{count} {kind} constraint{'' if count == 1 else 's'}")
        if self.parameters.values:
            parts.append(f"params {', '.join(self.parameters.values)}")
        return ", ".join(parts) + ">"

    @property
    def _size(self) -> str:
        return " + ".join(str(size) for _, size in self.state_blocks) + " variables"
