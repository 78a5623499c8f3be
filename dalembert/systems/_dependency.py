"""Whether constraints that depend on each other at a start repeat each other, so that a run can combine them, or contradict.

Rows that depend on each other in one configuration need not do so in the next: a parallelogram that lies flat is in a singular
position, and two bars in one line between fixed points cannot move at all. So the rows are looked at in neighbouring assembled
configurations, too, where all of them must hold and have the same rank.
"""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np

from dalembert.errors import InconsistentStart, UnsupportedSystem
from dalembert.systems._matrices import (
    row_norms,
)
from dalembert.systems._mechanical import MechanicalSystem
from dalembert.systems._neighbourhood import Neighbourhood, names_of, rows_called
from dalembert.systems._rank import along, dependencies
from dalembert.systems._redundant import Combination
from dalembert.systems._system import System

VANISHED = 1e-9
"""What is left of a derivative, compared with its size nearby, where it vanishes."""


def combination_at(
    system: MechanicalSystem,
    t: float,
    q: np.ndarray,
    p: np.ndarray,
    theta: np.ndarray,
    known: np.ndarray | None = None,
) -> tuple[Combination, np.ndarray] | None:
    """Which rows to combine in a run from this state, and the factors of all rows; None if all are independent.

    Factors that are `known` tell which rows are small here only. Rows that contradict others are refused.
    """
    if system.surely_independent(t, q, p, theta):
        return None
    theta = np.where(_known_to_rows(system), theta, 0.0)  # so that another gravity or torque finds what was found before
    return _combination_at(system, t, *(x.tobytes() for x in (q, p, theta, np.zeros(0) if known is None else known)))


@functools.lru_cache(maxsize=16)
def _known_to_rows(system: MechanicalSystem) -> np.ndarray:
    """Which parameters constraints or masses depend on."""
    expressions = [system._expressions[name][1] for name in ("g", "k", "hidden", "H_pp")]
    return np.array(ca.which_depends(ca.veccat(*expressions), system.parameters.theta, 1), dtype=bool)


@functools.lru_cache(maxsize=16)
def _combination_at(
    system: MechanicalSystem, t: float, q: bytes, p: bytes, theta: bytes, known: bytes
) -> tuple[Combination, np.ndarray] | None:
    start = t, np.frombuffer(q), np.frombuffer(p)
    return Neighbourhood(system, start, np.frombuffer(theta)).combination(np.frombuffer(known))


def check_gradients(system: MechanicalSystem, t: float, q: np.ndarray, p: np.ndarray, theta: np.ndarray) -> None:
    """Refuse rows whose derivative vanishes where they hold, such as (|q| - 1)^2: they constrain nothing to first order."""
    random = np.random.default_rng(1788)
    around, moved = (x * (1 + 1e-3 * random.standard_normal(len(x))) for x in (q, p))

    def sizes(name: str, *place: np.ndarray) -> np.ndarray:
        return row_norms(system.matrix(name, t, *place, theta=theta))

    k_here, k_near = (sizes("hidden_z", q, x)[system.n_holonomic :] for x in (p, moved))
    for role, symbol, here, near in (
        ("holonomic", "q", sizes("G", q), sizes("G", around)),
        ("nonholonomic", "v", k_here, k_near),
    ):
        vanished = np.flatnonzero(here < VANISHED * near)
        if len(vanished):
            raise InconsistentStart(
                f"the derivative of {role}[{vanished[0]}] with respect to {symbol} vanishes at the initial values, as that of "
                "(|q| - 1)**2 does where it is zero, so that the constraint has no reaction: state it by a function that "
                "changes its sign, such as |q| - 1, or start elsewhere"
            )


def refuse_contradiction(system: MechanicalSystem, t: float, q: np.ndarray, theta: np.ndarray, bound: np.ndarray) -> None:
    """Refuse rows of g that depend on each other here, but miss, apart from what moving on could mend, by more than `bound`."""
    g = system.evaluate("g", t, q, theta=theta)
    N, factors = dependencies(system.matrix("G", t, q, theta=theta))
    missed = along(N, factors * g)
    if not np.any(np.abs(missed) > factors * bound):
        return
    worst = int(np.argmax(np.abs(missed) / np.maximum(factors * bound, 1e-300)))
    raise InconsistentStart(
        f"{names_of(system, N, worst)} contradict each other near the given configuration: they depend on each other there, "
        f"and cannot all be fulfilled ({system.row_called('g', worst)} misses by {abs(missed[worst]) / factors[worst]:.2g}): "
        "correct or remove one of them"
    )


def refuse_redundant(what: str, system: System, t: float, y: np.ndarray, z: np.ndarray, theta: np.ndarray) -> None:
    """Refuse redundant constraints where they do not serve."""
    found = combination_at(system, t, y, z, theta) if isinstance(system, MechanicalSystem) else None
    if found is not None:
        combination, _ = found
        raise UnsupportedSystem(
            f"{combination.redundant} of the {system.n_multipliers} constraints are redundant, and {what} needs independent "
            f"ones: {_advice(system, combination)}"
        )


def _advice(system: System, combination: Combination) -> str:
    """What to do about redundant rows: which parts of a mechanism state them, or which could be left out."""
    rows = [("g", k) for own in combination.holonomic for k in own.component]
    rows += [("k", k) for own in combination.nonholonomic for k in own.component]
    parts = dict.fromkeys(system.row_names[kind][k].partition(", row ")[0] for kind, k in rows if kind in system.row_names)
    if parts:
        named = ", ".join(map(repr, parts))
        return f"{named} together say some things twice; leave a joint out, or let it leave more free, as m.spherical does"
    return f"remove {combination.redundant} of them, such as {rows_called(system, combination.dropped)}"
