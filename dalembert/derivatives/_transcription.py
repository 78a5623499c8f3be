"""An optimal control problem as a nonlinear program, whose constraints are the steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.compiler import first_guess, reduced_step
from dalembert.compiler._independence import independent
from dalembert.derivatives._given import finite, limits, names_of
from dalembert.errors import InputError, StepFailed
from dalembert.runs._controls import PiecewiseLinear, parameter_slots, with_ramps
from dalembert.runs._simulate import simulate
from dalembert.runs._trajectory import Trajectory
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import State, System
from dalembert.systems._consistent import unpack
from dalembert.systems._ramped import ramped
from dalembert.systems._state_function import state_function

if TYPE_CHECKING:
    from dalembert.derivatives._optimal_control import OptimalControl


@dataclass(frozen=True, eq=False)
class OptimalRun:
    """What `da.OptimalControl.solve` found: `controls` by name, one row a step (or one more), the `cost`, and the `run`.

    `defect` says how far the states of the optimisation are from those of the run, which `da.simulate` made; `h` is the step
    size, which was sought if the final time was free.
    """

    run: Trajectory = field(repr=False)
    controls: dict[str, np.ndarray] = field(repr=False)
    cost: float
    h: float
    defect: float
    iterations: int
    message: str


class Transcription:
    """The optimisation problem: variables, constraints and cost of all steps."""

    @one_at_a_time
    def __init__(self, task: OptimalControl, system: System, state: State) -> None:
        self.task, self.original, self.start = task, system, state
        self.names = names_of("controls names parameters of the model", task.controls, 'controls=("u", "F")')
        self.slots = np.concatenate([parameter_slots(system, name, "controls") for name in self.names])
        moving = ramped(system, tuple(self.slots.tolist())) if task.linear else system
        start = with_ramps(moving, state) if task.linear else state
        assert isinstance(start, State)
        self.system, self.combined = independent(moving, start)
        self.bounds = limits(task.bounds, {name: system.parameters.values[name].shape for name in self.names}, "no control")
        n = self.system.n_state
        self.h = ca.MX.sym("h") if task.t1 is not None else ca.MX(task.h)
        self.states = ca.MX.sym("states", n, task.steps + 1)
        self.u = ca.MX.sym("u", len(self.slots), task.steps + task.linear)
        substeps = [(reduced_step(self.system, method), fraction) for method, fraction in task.method.substeps]
        self.pieces = [_step(reduced) for reduced, _ in substeps]
        self.reduced, self.fractions = [r for r, _ in substeps], [f for _, f in substeps]
        self.x = [ca.MX.sym("x", piece.size1_in(0), task.steps) for piece in self.pieces]
        self.between = [ca.MX.sym("s", n, task.steps) for _ in self.pieces[1:]]

    def theta(self, ends: bool = False) -> ca.MX:
        """Parameters of all steps, one column each, controls as at the beginning of a step or at its end."""
        steps, first = self.task.steps, self.original.parameters.size
        columns = ca.MX(ca.repmat(ca.DM(self.combined.theta), 1, steps))
        columns[self.slots.tolist(), :] = self.u[:, 1:] if ends and self.task.linear else self.u[:, :steps]
        if self.task.linear:
            columns[first : first + len(self.slots), :] = (self.u[:, 1:] - self.u[:, :-1]) / self.h
            columns[first + len(self.slots), :] = self.times
        return columns

    @property
    def times(self) -> ca.MX:
        """When steps begin."""
        return self.start.t + ca.MX(np.arange(self.task.steps)[None]) * self.h

    def constraints(self) -> list[ca.MX]:
        """The step equations of all steps."""
        steps, theta, times = self.task.steps, self.theta(), self.times
        sizes = ca.repmat(self.h, 1, steps)
        points = [self.states[:, :-1], *self.between, self.states[:, 1:]]
        found, done = [], 0.0
        for k, (piece, fraction) in enumerate(zip(self.pieces, self.fractions, strict=True)):
            each = piece.map(steps)
            residual, end = each(self.x[k], times + done * sizes, fraction * sizes, theta, points[k])
            found += [ca.vec(residual), ca.vec(points[k + 1] - end)]
            done += fraction
        return found

    def of_state(self, role: str, function: Callable, scalar: bool) -> ca.Function:
        """A user's function of a state, as (t, state, theta)."""
        quantity, n = state_function(role, function, self.original, scalar), self.original.state_blocks[0][1]
        t, state, theta = ca.SX.sym("t"), ca.SX.sym("state", self.original.n_state), self.original.parameters.theta
        return ca.Function("of_state", [t, state, theta], [quantity(t, state[:n], state[n:], theta)])

    def own(self, theta: ca.MX) -> ca.MX:
        """The model's own parameters, without those of combined constraints."""
        return theta[: self.original.parameters.size, :]

    def cost(self) -> ca.MX:
        """The cost of all steps and of the end; the final time, if nothing else is asked for."""
        task, steps = self.task, self.task.steps
        total, ends = ca.MX(0), self.own(self.theta(ends=True))
        if task.cost is not None:
            cost = self.of_state("cost", task.cost, True).map(steps)
            sums = [ca.sum2(cost(self.times, self.states[:, :-1], self.own(self.theta())))]
            if task.linear:
                sums.append(ca.sum2(cost(self.times + self.h, self.states[:, 1:], ends)))
            total += self.h * sum(sums) / len(sums)
        if task.final_cost is not None:
            total += self.of_state("final_cost", task.final_cost, True)(self.end, self.states[:, -1], ends[:, -1])
        return steps * self.h if task.cost is None and task.final_cost is None else total

    @property
    def end(self) -> ca.MX:
        """The final time."""
        return self.start.t + self.task.steps * self.h

    def solve(self, guess: dict[str, Any], tolerance: float, most: int, verbose: bool) -> OptimalRun:
        """Let IPOPT solve, then simulate with the controls that it found."""
        task = self.task
        equalities, theta = self.constraints(), self.own(self.theta(ends=True))
        if task.final is not None:
            equalities.append(self.of_state("final", task.final, False)(self.end, self.states[:, -1], theta[:, -1]))
        positive_ones = []
        if task.path is not None:
            inside = self.of_state("path", task.path, False)
            positive_ones = [ca.vec(inside.map(task.steps)(self.times + self.h, self.states[:, 1:], theta))]
            if task.linear:  # where the first of the controls, which are at the ends of steps, has its value
                positive_ones.append(inside(self.start.t, self.states[:, 0], self.own(self.theta())[:, 0]))
        equal, above = (ca.vertcat(ca.MX(0, 1), *parts) for parts in (equalities, positive_ones))
        variables = [self.states, self.u, *self.x, *self.between, *([self.h] if task.t1 is not None else [])]
        first = self.guess(guess)
        lower, upper = self.limits(first)
        quiet = {"ipopt.print_level": 5 if verbose else 0, "print_time": False, "ipopt.sb": "yes"}
        options = quiet | {"ipopt.tol": tolerance, "ipopt.constr_viol_tol": 1e-12, "ipopt.max_iter": most}
        problem = {"x": ca.vertcat(*(ca.vec(v) for v in variables)), "f": self.cost(), "g": ca.vertcat(equal, above)}
        solver = ca.nlpsol("optimal_control", "ipopt", problem, options)
        bounds = {"lbg": 0.0, "ubg": np.concatenate([np.zeros(equal.shape[0]), np.full(above.shape[0], np.inf)])}
        result = solver(x0=_column(first), lbx=_column(lower), ubx=_column(upper), **bounds)
        stats = solver.stats()
        if not stats["success"]:
            raise StepFailed(
                f"IPOPT found no optimal control ({stats['return_status']} after {stats['iter_count']} iterations): give a "
                "better guess=, wider bounds or more time"
            )
        return self._found(np.asarray(result["x"], dtype=float).ravel(), float(result["f"]), stats)

    def _found(self, x: np.ndarray, cost: float, stats: dict[str, Any]) -> OptimalRun:
        task, n, count = self.task, self.system.n_state, self.task.steps
        h = float(x[-1]) if task.t1 is not None else float(task.h or 0.0)
        states = x[: n * (count + 1)].reshape(count + 1, n)
        u = x[n * (count + 1) :][: self.u.numel()].reshape(-1, len(self.slots))
        controls, first = {}, 0
        for name in self.names:
            shape = self.original.parameters.values[name].shape
            size = int(np.prod(shape))
            controls[name] = u[:, first : first + size].reshape(len(u), *shape)
            first += size
        given = {name: PiecewiseLinear(rows) for name, rows in controls.items()} if task.linear else controls
        own: dict[str, Any] = {"start": self.start, "h": h, "steps": count, "controls": given, "params": task.params}
        run = simulate(self.original, task.method, progress=False, **own)
        scale = np.max(np.abs(states), axis=0) + 1e-12
        defect = float(np.max(np.abs(run.states - states) / np.max(scale)))
        return OptimalRun(run, controls, cost, h, defect, int(stats["iter_count"]), stats["return_status"])

    def guess(self, given: dict[str, Any]) -> list[np.ndarray]:
        """Where IPOPT begins: states on a line, unknowns of steps from these, controls as given or as in the model."""
        task, steps = self.task, self.task.steps
        dim = self.system.state_blocks[0][1]
        known = {*self.names, "q", "y"}
        unknown = next((name for name in given if name not in known), None)
        if unknown is not None:
            raise InputError(f"guess names {unknown!r}; it may name {', '.join(sorted(known))}")
        h = float(np.mean(task.t1)) / steps if task.t1 is not None else float(task.h or 0.0)
        states = np.tile(self.start.packed, (steps + 1, 1))
        path = given.get("q", given.get("y"))
        if path is not None:
            along, begin = np.linspace(0, 1, steps + 1)[:, None], self.start.first
            rows = finite("the guess of a path", path, (steps + 1, dim))
            states[:, :dim] = rows if np.ndim(path) == 2 else begin + along * (rows - begin)
        u = np.zeros((steps + task.linear, len(self.slots)))
        base, first = self.original.parameters.unflatten(self.start.theta), 0
        for name in self.names:
            values = finite(f"the guess of {name!r}", given.get(name, base[name]), (len(u), *base[name].shape))
            u[:, first : first + base[name].size] = values.reshape(len(u), -1)
            first += base[name].size
        x = [
            np.array([self._unknowns(r, f * h, s) for s in states[:-1]])
            for r, f in zip(self.reduced, self.fractions, strict=True)
        ]
        between = [states[:-1] for _ in self.between]
        return [states, u, *x, *between, *([np.array([[h]])] if task.t1 is not None else [])]

    def _unknowns(self, reduced: Any, h: float, packed: np.ndarray) -> np.ndarray:
        """A guess for the unknowns of a step; the last ones, which enter linearly, from zero."""
        state = unpack(self.system, self.start.t, packed, self.combined.theta)
        x = first_guess(reduced, self.system, state, h)
        last = 0 if reduced.last is None else reduced.last.y.shape[0]
        return np.nan_to_num(np.concatenate([x, np.zeros(last)]))

    def limits(self, guess: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Bounds of all variables: the start is fixed, controls and the final time are bounded."""
        task = self.task
        sides = []
        for side, infinite in ((0, -np.inf), (1, np.inf)):
            parts = [np.full(part.shape, infinite) for part in guess]
            parts[0][0] = self.start.packed
            parts[1][:] = _column([self.bounds[name][side] for name in self.names])
            if task.t1 is not None:
                parts[-1][:] = task.t1[side] / task.steps
            sides.append(parts)
        return sides[0], sides[1]


def _column(parts: list[np.ndarray]) -> np.ndarray:
    """All variables in one vector, step by step as CasADi stacks columns."""
    return np.concatenate([part.ravel() for part in parts])


def _step(reduced: Any) -> ca.Function:
    """One step as (unknowns, t, h, theta, state) -> (residual, new state)."""
    last = reduced.last
    unknowns = ca.vertcat(reduced.x, ca.SX(0, 1) if last is None else last.y)
    residual = reduced.residual if last is None else ca.vertcat(reduced.residual, last.matrix @ last.y - last.rhs)
    time, h, theta, state = reduced.data
    return ca.Function("step", [unknowns, time, h, theta, state], [residual, state + reduced.increment])
