"""In which units unknowns, states and constraints are compared with each other: all of them as energies.

A velocity V_i counts as m_i V_i^2, a momentum p_i as p_i^2 / m_i, an impulse L_k as what it gives to the momenta. So lengths of
1e-9 m stand beside angles of 1 rad, and constraints in any units beside each other. The numbers are taken once, where a run
begins: they tell orders of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from dalembert.compiler._term_sizes import TermSizes
from dalembert.symbolic._buffers import Numbers
from dalembert.symbolic._kept import kept
from dalembert.systems import System
from dalembert.systems._states import States

ROUND_OFF, TOLERATED = 3e-14**2, 1e-13**2
"""How far a new state may be off a constraint before it is iterated further, and before the step counts as unsolved."""

NOTHING = 1e-250
"""A square that is zero in all units."""


@dataclass(frozen=True, eq=False)
class Metric:
    """Symbols for the numbers that a run is given once."""

    n_holonomic: int
    tolerated: ca.SX
    """How far, relative to the size of its terms, squared, a new state may be off a constraint."""
    mass: ca.SX
    """m_i of the first block of the state: m_i V_i^2 is an energy."""
    inverse_mass: ca.SX
    mobility: ca.SX
    """1/m_i for the second block."""
    inertia: ca.SX
    impulse: ca.SX
    """The energy of unit impulses of lam, then of psi."""
    terms: ca.SX
    """The size of the terms that g, then k, add up, redundant rows included: what their rounding errors are relative to."""
    per_rounding: ca.SX
    """The reciprocal squares of these rounding errors, tolerated ones at first."""

    @classmethod
    def of(cls, system: System) -> Metric:
        (_, n_y), (_, n_z) = system.state_blocks
        rows = all_rows(system).n_multipliers
        sizes = (1, n_y, n_y, n_z, n_z, system.n_multipliers, rows, rows)
        names = ("tolerated", "mass", "inverse_mass", "mobility", "inertia", "impulse", "terms", "per_rounding")
        return cls(system.n_holonomic, *(ca.SX.sym(name, size) for name, size in zip(names, sizes, strict=True)))

    @property
    def column(self) -> ca.SX:
        masses = (self.mass, self.inverse_mass, self.mobility, self.inertia)
        return ca.vertcat(self.tolerated, *masses, self.impulse, self.terms, self.per_rounding)

    @property
    def impulses(self) -> dict[str, ca.SX]:
        """`impulse` by the names of the multipliers."""
        parts = ca.vertsplit(self.impulse, [0, self.n_holonomic, self.impulse.shape[0]])
        return dict(zip(("lam", "psi"), parts, strict=True))


def all_rows(system: System) -> System:
    """The system with all rows of its constraints, where some are combinations of redundant ones."""
    return system if system.uncombined is None else system.uncombined


def metric_at(states: States) -> np.ndarray:
    """The numbers of `Metric.column` for every state, one a row.

    Masses are 1 / (v_z)_ii, for mechanics 1 / (H_pp)_ii, where that is a number; else all velocities have the same units.
    """
    system, count = states.system, len(states)
    (_, n_y), _ = system.state_blocks
    first, second = np.split(states.packed, [n_y], axis=1)
    lam, psi = np.split(states.multipliers, [system.n_holonomic], axis=1)
    values = {"t": states.t[:, None], "y": first, "z": second, "lam": lam, "psi": psi}
    places, rows = (*values.values(), states.theta), all_rows(system)
    slopes, impulses, *terms = _functions(system)
    with np.errstate(all="ignore"):
        inverse_mass, mobility = (_numbers(part) for part in np.split(np.abs(slopes.rows(*places)), [n_y], axis=1))
        impulse = _numbers(impulses.rows(*places, mobility))
        own = states.theta[:, : rows.parameters.size]
        sizes = [size(*(values[a] for a in rows.arguments(name)), own) for name, size in zip("gk", terms, strict=True)]
    added = np.nan_to_num(np.concatenate(sizes, axis=1))
    parts = (
        np.full((count, 1), ROUND_OFF),
        1 / inverse_mass,
        inverse_mass,
        mobility,
        1 / mobility,
        impulse,
        added,
        1 / (ROUND_OFF * added**2 + NOTHING),
    )
    return np.concatenate(parts, axis=1)


def _numbers(values: np.ndarray) -> np.ndarray:
    """The values, or 1 where they say nothing."""
    return np.where(np.isfinite(values) & (values > 0.0), values, 1.0)


@kept
def _functions(system: System) -> tuple[Numbers, Numbers, TermSizes, TermSizes]:
    """1/m of both blocks, the energies of unit impulses, which take the mobilities, too, and the sizes of g and k."""
    (_, n_y), (_, n_z) = system.state_blocks
    sizes = (1, n_y, n_z, system.n_holonomic, system.n_nonholonomic, system.parameters.size)
    t, y, z, lam, psi, theta = symbols = [ca.SX.sym("s", size) for size in sizes]
    mobility = ca.SX.sym("mobility", n_z)
    slope = ca.jacobian(system.function("v")(t, y, z, theta), z)
    both = [ca.diag(slope)] * 2 if n_y == n_z else [ca.SX.ones(n_y, 1), ca.sum1(slope * slope).T]
    directions = ca.sparsify(system.function("directions")(t, y, z, lam, psi, theta))
    energies = (directions * directions).T @ mobility
    rows = all_rows(system)
    return (
        Numbers(ca.Function("slopes", symbols, [ca.densify(ca.vertcat(*both))])),
        Numbers(ca.Function("impulses", [*symbols, mobility], [ca.densify(energies)])),
        TermSizes(rows.function("g")),
        TermSizes(rows.function("k")),
    )


def components(edges: np.ndarray, size: int) -> np.ndarray:
    """The connected component of every node of a graph."""
    matrix = coo_matrix((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(size, size))
    return connected_components(matrix, directed=False)[1]
