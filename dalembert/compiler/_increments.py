"""How large an increment of Newton's iteration is: relative to the unknowns, or to what rounding leaves of them.

Sizes are energies (`_metric`), so that units do not matter, and besides plain numbers, so that a light body on a heavy one
counts as much: the sum of both. Coordinates whose velocities depend on each other through the masses
or through constraints also share their rounding errors, and are measured together. All others are measured by themselves,
however fast others are, unless they are at rest up to rounding errors from those that they are coupled with by forces.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.compiler._metric import NOTHING, components
from dalembert.compiler._reduction import ReducedStep
from dalembert.methods._step_parts import UnknownBlock
from dalembert.systems import System

LEAST_NOISE = 1e-12
"""The relative size that rounding errors may give to increments of a block that vanishes."""

GUARD = 1e7
"""How much less, squared, linear impulses of holonomic constraints weigh than the rounding error of momenta."""

REST = 1e-8**2
"""Velocities below this part of q/h, or of the velocities that they are coupled with, squared, count as rest."""

PROJECTED = 0.25
"""How much less, squared, corrections weigh than guesses: one that is larger than all else makes up the whole increment."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Which variables and multipliers are measured together, and which groups of them the step's equations couple."""

    of: dict[str, ca.DM]
    """Matrices that add up the values of a column, group by group: for the blocks of the state, "lam" and "psi"."""
    components: ca.DM
    """The same for values of groups, component by component of those that are coupled."""

    @classmethod
    def of_step(cls, reduced: ReducedStep) -> Groups:
        system = reduced.equations.step.definition
        sizes = dict(system.state_blocks) | {"lam": system.n_holonomic, "psi": system.n_nonholonomic}
        first = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
        edges = _kinematic_edges(system)
        group = components(edges, sum(sizes.values()))
        nodes = [
            group[first[b.of] + np.arange(b.symbols.shape[0]) % b.size] if b.of else np.full(b.symbols.shape[0], -1)
            for b in reduced.blocks
        ]
        rows, columns = (np.array(a, dtype=int) for a in reduced.jacobian.sparsity().get_triplet())
        node, count = np.concatenate([np.zeros(0, int), *nodes])[columns], int(group.max(initial=-1)) + 1
        rows, node = count + rows[node >= 0], node[node >= 0]
        component = components(np.vstack([rows, node]), count + reduced.residual.shape[0])[:count]
        of = {name: group[first[name] : first[name] + size] for name, size in sizes.items()}
        together = _sums(np.unique(component, return_inverse=True)[1], count)
        return cls({name: _sums(own, count) for name, own in of.items()}, together)

    def total(self, name: str, column: ca.SX) -> ca.SX:
        """The sums of a column over the groups."""
        return self.of[name] @ column

    def spread(self, name: str, values: ca.SX) -> ca.SX:
        """The value of its group for each entry of a column."""
        return self.of[name].T @ values

    def coupled(self, column: ca.SX) -> ca.SX:
        """For each group, the sum of a column over those that it is coupled with."""
        return self.components.T @ (self.components @ column)

    def number(self, name: str) -> np.ndarray:
        """The group of each entry of a column."""
        return np.array(self.of[name].sparsity().get_triplet()[0], dtype=int)

    @property
    def count(self) -> int:
        """How many groups there are."""
        return self.components.shape[1]


def _sums(labels: np.ndarray, count: int) -> ca.DM:
    return ca.DM(ca.Sparsity.triplet(count, len(labels), labels.tolist(), list(range(len(labels)))), 1.0)


def _kinematic_edges(system: System) -> np.ndarray:
    """Pairs of variables and multipliers, numbered through, of which one enters the velocity or the constraint of the other."""
    (_, n_y), (_, n_z) = system.state_blocks
    edges = [np.vstack([np.arange(n_y), n_y + np.arange(n_y)]) if n_y == n_z else np.zeros((2, 0), int)]
    rows = {"v": 0, "g": n_y + n_z, "hidden": n_y + n_z}  # the velocity y_i', the constraint of the i-th multiplier
    for name, start in rows.items():
        function = system.function(name)
        for argument, place in (("y", 0), ("z", n_y)):
            if argument not in system.arguments(name) or (name, argument) in (("v", "y"), ("hidden", "y")):
                continue
            pattern = function.jac_sparsity(0, system.arguments(name).index(argument))
            found = np.array(pattern.get_triplet(), dtype=int).reshape(2, -1)
            edges.append(found + np.array([[start], [place]]))
    return np.hstack(edges)


@dataclass(frozen=True, eq=False)
class Measure:
    """How increments are measured: the square of each times a weight, which is the same for all stages of a coordinate.

    `first` says for every unknown where the first stage of its coordinate lies; it is -1 for unknowns that are not measured.
    """

    groups: Groups
    first: np.ndarray

    @classmethod
    def of_step(cls, reduced: ReducedStep) -> Measure:
        first, begin = [np.zeros(0, int)], 0
        for block in reduced.blocks:
            count = block.symbols.shape[0]
            first.append(begin + np.arange(count) % max(1, block.size) if measured(block) else np.full(count, -1))
            begin += count
        return cls(Groups.of_step(reduced), np.concatenate(first))

    def size(self, reduced: ReducedStep, weights: ca.SX, step: ca.SX, explicit: ca.SX) -> ca.SX:
        """The squared size of an increment `step` of the unknowns."""
        some = np.flatnonzero(self.first >= 0)
        last = ca.jtimes(explicit, reduced.x, step) if len(some) and explicit.shape[0] else ca.SX(0, 1)
        changes = ca.vertcat(step[some.tolist()], last)
        sums = _sums(np.concatenate([self.first[some], np.arange(last.shape[0])]), len(self.first))
        return ca.dot(weights, sums @ changes**2)

    def correction(self, reduced: ReducedStep) -> ca.SX:
        """The squared part of the new position's increment that is due to carried unknowns, such as those of a projection.

        Their increments in Newton's iteration are not measured, but a projection may end on another branch, too. Groups are
        measured by themselves; the largest counts. What velocities at the start contribute to the increment does not: on a
        carriage that moves fast a jump would be a small part of the way.
        """
        carried = ca.vertcat(ca.SX(0, 1), *(block.symbols for block in reduced.blocks if block.kind == "carried"))
        if not carried.shape[0]:
            return ca.SX(0)
        name, y = next(iter(reduced.equations.step.state.items()))
        moved = reduced.increment[: y.shape[0]]
        corrected, largest = ca.jtimes(moved, carried, carried), ca.SX(0)
        step = reduced.equations.step
        v = step.definition.function("v")(step.time_symbol, *step.state.values(), step.theta)
        for unit in (reduced.metric.mass, ca.SX.ones(y.shape[0], 1)):
            parts = (corrected, moved - step.h_symbol * v, y)
            size, by, place = (self.groups.total(name, unit * part**2) for part in parts)
            by += REST * place  # at rest all are rounding errors
            largest = ca.fmax(largest, ca.mmax(size / (by + REST * ca.sum1(by) + 1e-300)))
        return PROJECTED * largest


def measured(block: UnknownBlock) -> bool:
    """Whether the increments of a block decide when Newton's iteration has converged."""
    return block.kind != "carried"


def weights_and_noise(reduced: ReducedStep, measure: Measure, delta: ca.SX) -> tuple[ca.SX, ca.SX]:
    """A weight for each unknown, and the size that rounding gives to increments.

    Weights are m_i w + w', w and w' being 1 / |X|^2 for each group of a measured block X in the metric and in plain numbers.
    To the first block belongs an eliminated last stage, for which the last step's increment `delta` of the state stands. X has
    a floor far below the rounding error of the state. Rounding errors come amplified by the stage equations: measured, about 10
    times with 3 stages and 400 times with 11. Where the step constrains positions, momenta also carry those of the multipliers:
    positions are known to eps |q|, so V to eps |q|/h and the momentum to m times that, however small its own increments are.
    Impulses must converge too: a motion that does not feel them at all may still be constrained by them. Those
    of holonomic constraints that enter linearly are usually as right as the increments, and weigh so little that their rounding
    errors, which are larger, do not decide.
    """
    step, metric = reduced.equations.step, reduced.metric
    h, (y, z) = step.h_symbol, step.state
    groups, mass, mobility = measure.groups, metric.mass, metric.mobility
    at_y, at_z = step.state[y] ** 2 / h**2, step.state[z] ** 2
    positions, momenta = groups.total(y, mass * at_y), groups.total(z, mobility * at_z)
    constrained = int(step.constrains_positions)
    weights, noise, first, resisted = [], ca.SX(0), True, ca.SX.zeros(positions.shape)
    for block in reduced.blocks:
        if block.kind == "impulse":  # a body that is held at rest moves by what rounding leaves of the forces that hold it
            squares = ca.sum2(ca.reshape(block.symbols, block.size, len(block.nodes)) ** 2)
            resisted += groups.total(block.of, metric.impulses[block.of] * squares)
    for block in reduced.blocks:
        if not measured(block):
            weights.append(ca.SX.zeros(block.symbols.shape[0], 1))
            continue
        rounding = (20 * (len(block.nodes) + 1) ** 2 * np.finfo(float).eps) ** 2
        own = ca.sum2(ca.reshape(block.symbols, block.size, len(block.nodes)) ** 2)
        if first and reduced.explicit_stage.shape[0]:
            own += delta[: block.size] ** 2 / (h * h if block.per_h else 1)
        floor = REST if first else 16 if constrained and block.of != y else rounding / LEAST_NOISE**2
        none, per = ca.SX.zeros(block.size, 1), ca.SX(1)
        if block.kind == "impulse":
            floor = GUARD if block.of == "lam" and step.definition.linear_in_multipliers else floor
            measures = [(metric.impulses[block.of], momenta + constrained * positions)]
        elif block.of == y:
            per = per if block.per_h else 1 / h**2
            measures = [(mass, positions + resisted), (none + 1, groups.total(y, at_y) + resisted)]
        else:
            per, carried = h**2 if block.per_h else per, constrained * (not first)
            plain = groups.total(z, at_z) + (groups.total(y, mass**2 * at_y) if carried else 0)
            measures = [(mobility, momenta + carried * positions), (none + 1, plain)]
        number = groups.number(block.of)
        measures = measures[: 1 + (len(set(number.tolist())) < len(number))]  # alone, a coordinate needs no metric
        own_weights = none
        for unit, scale in measures:
            size = per * groups.total(block.of, unit * own) + floor * scale
            coupled = groups.coupled(size)
            # A group that has nothing to do with others may be at rest, but for what rounding left in its start.
            still = REST * ca.sum1(size) + NOTHING
            inverse = 1 / (size + ca.if_else(size < REST * coupled, coupled, 0) + still)
            own_weights = own_weights + unit * groups.spread(block.of, per * inverse)
            noise += rounding * ca.dot(scale + coupled, inverse)
        weights.append(ca.repmat(own_weights, len(block.nodes), 1))
        first = False
    return ca.vertcat(ca.SX(0, 1), *weights), noise
