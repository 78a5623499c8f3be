"""What follows from the states of a run, computed when it is first asked for: velocities, energies, multipliers, residuals."""

from __future__ import annotations

import numpy as np

from dalembert.compiler import observer
from dalembert.engine._spec import Controls
from dalembert.errors import DalembertError, InputError
from dalembert.runs._variables import Variables
from dalembert.systems import State
from dalembert.systems._matrices import Matrices
from dalembert.systems._newton import solve_rows
from dalembert.systems._rank import parts_of, solve_of_rank


class Observed(Variables):
    """A run that knows its model, or what was computed with it before."""

    t: np.ndarray
    h: float
    parameters: dict[str, np.ndarray]
    start: State | None
    stage_lam: np.ndarray | None
    stage_psi: np.ndarray | None
    controls: Controls | None
    _observed: dict[str, np.ndarray]

    def _observe(self, name: str) -> np.ndarray:
        if name not in self._observed:
            if self.system is None:
                raise DalembertError(
                    f"{name} is not stored with this run, which has no model: da.load(path, system) gives it one"
                )
            if name in ("lam", "psi"):
                multipliers = self._multipliers()
                m = self.system.n_holonomic
                self._observed.update(lam=multipliers[:, :m], psi=multipliers[:, m:])
            elif name == "redundant":
                self._observed[name] = np.full((len(self.t), 1), float(self._redundant_rows()))
            else:
                self._observed[name] = self._map(name, slice(None))
        return self._observed[name]

    def _map(self, name: str, rows: slice) -> np.ndarray:
        from dalembert.engine._driver import map_kernel

        assert self.system is not None
        kernels = observer(self.system)
        memory = np.zeros(kernels.memory_size)
        inputs = np.column_stack([self._thetas(rows), self.t[rows], self.states[rows]])
        first = kernels.n_theta + 1 + self.system.n_state - inputs.shape[1]
        memory[: kernels.n_theta] = self._theta
        values = np.empty((len(inputs), kernels.sizes[name]))
        map_kernel(kernels.code.addresses[f"observe_{name}"], memory, inputs, first, values, kernels.first_output)
        return values

    def _thetas(self, rows: slice) -> np.ndarray:
        """The parameters in each of these rows, if they are not the same in all of them."""
        t = np.asarray(self.t)[rows]
        if self.controls is None:
            return np.zeros((len(t), 0))
        steps = np.round((t - self.t[0]) / self.h).astype(int) // self.controls.hold
        thetas = np.tile(self._theta, (len(t), 1))
        thetas[:, self.controls.slots] = self.controls.values[np.minimum(steps, len(self.controls.values) - 1)]
        return thetas

    @property
    def has_energy(self) -> bool:
        """Whether the system states an energy."""
        return "energy" in self._observed if self.system is None else "H" in self.system.function_names

    @property
    def _theta(self) -> np.ndarray:
        return np.concatenate([np.zeros(0), *(value.ravel() for value in self.parameters.values())])

    def _redundant_rows(self) -> int:
        """How many constraints are redundant, the same number in all states of a run."""
        assert self.system is not None
        y, z = np.split(np.asarray(self.states[:1])[0], [self.system.state_blocks[0][1]])
        return self.system.redundant_rows(float(self.t[0]), y, z, self._theta)

    def _multipliers(self) -> np.ndarray:
        assert self.system is not None
        m = self.system.n_multipliers
        result = np.empty((len(self.t), m))
        if m == 0:
            return result
        if not self.system.linear_in_multipliers:
            return self._nonlinear_multipliers()
        pattern = self.system.function("multiplier_matrix").sparsity_out(0)
        each = pattern.nnz() if self.system.large else m * m
        block, redundant = max(1, 4_000_000 // max(1, each)), self._redundant_rows()
        for start in range(0, len(self.t), block):
            rows = slice(start, start + block)
            matrices = Matrices.of(pattern, self._map("multiplier_matrix", rows))
            rhs = self._map("multiplier_rhs", rows)
            if redundant and self.system.large:
                result[rows] = self._least_multipliers(rows)
            elif redundant:
                result[rows] = solve_of_rank(matrices.full(), rhs, redundant)
            else:
                result[rows] = matrices.solve_each(rhs) if self.system.large else solve_rows(matrices.full(), rhs)
        return result

    def _least_multipliers(self, rows: slice) -> np.ndarray:
        """Of a large system with redundant constraints, of which the same depend on each other in all states."""
        assert self.system is not None
        n, thetas = self.system.state_blocks[0][1], self._thetas(rows)
        start = float(self.t[0]), *np.split(np.asarray(self.states[:1])[0], [n])
        parts, found = parts_of(self.system.matrix("hidden_z", *start, theta=self._theta)), []
        for k, (t, state) in enumerate(zip(np.asarray(self.t)[rows], np.asarray(self.states[rows]), strict=True)):
            theta = thetas[k] if thetas.shape[1] else self._theta
            y, z = np.split(state, [n])
            found.append(self.system.multipliers(float(t), y, z, theta, parts=parts))
        return np.array(found)

    def _nonlinear_multipliers(self) -> np.ndarray:
        """From guesses that keep the branch of the run: the multipliers of the start, then the method's own."""
        assert self.system is not None and self.start is not None and self.stage_lam is not None and self.stage_psi is not None
        if self.controls is not None:
            raise InputError("multipliers that enter nonlinearly are not computed for runs with controls: read run.stage_lam")
        guesses = np.column_stack([self.stage_lam, self.stage_psi])
        if np.isnan(guesses[0]).any():  # the start has no last step
            guesses[0] = self.start.multipliers
        return self.system.multipliers_along(self.t, self.states, self._theta, guesses)
