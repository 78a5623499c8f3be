"""What the experiments with impacts share: the cart-pendulum above its floor, its starts, and the methods of section 5.2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from dalembert.contact import CVA, MCVA, MCVAA, MCVAC, VCI, CollisionIntegrator
from dalembert.experiments._experiment import Document
from dalembert.experiments._measures import simulate
from dalembert.methods import Gauss
from dalembert.problems import cart_pendulum_above_floor
from dalembert.runs._trajectory import Impacts, Trajectory
from dalembert.systems import Lagrangian

PEKAREK = Document("pekarek2014", "Pekarek & Murphey (2014), Int. J. Numer. Meth. Engng")
SYSTEM = cast(Lagrangian, cart_pendulum_above_floor().system)
"""The cart-pendulum (35) above its floor y = 0 (section 5.1)."""
SIZES = (0.032, 0.01)
"""The paper's two step sizes."""
BETAS = np.linspace(3.2, 5.2, 51)
"""The paper's samples of the parameter of its starts."""
ALL: dict[str, CollisionIntegrator] = {
    "MCVAA": MCVAA(),
    "MCVA_even": MCVA("SVC", 4, "even"),
    "MCVAC": MCVAC(),
    "CVA": CVA(),
    "CVA_SVA": CVA("SVA"),
    "VCI": VCI(),
}
PAPER = {name: ALL[name] for name in ("CVA", "VCI", "MCVAA", "MCVAC")}
LABELS = {
    "CVA": "CVA",
    "VCI": "VCI",
    "MCVAA": "MCVAA",
    "MCVAC": r"MCVAC ($\eta$, $O(h^3)$)",
    "MCVA_even": "MCVA, SVC even $O(h^4)$",
    "CVA_SVA": "CVA on SVA",
}


def xi(beta: float) -> dict[str, Any]:
    """The start Xi(beta) of section 5.2: at rest at the height beta, the pendulum turning through its lowest point."""
    return {"q0": [beta, 0.0], "v0": [0.0, 3.5 - 0.18 * beta]}


T1 = 5.0
FINE = 0.002
"""The step of references, which divides those of the methods."""


def simulate_to_the_end(method: CollisionIntegrator, h: float, beta: float) -> Trajectory:
    """A run from Xi(beta) to the last multiple of h before t = 5, which is not one of 0.032."""
    return simulate(SYSTEM, method, h=h, steps=int(T1 / h + 1e-9), **xi(beta))


def reference(beta: float, refined: int = 1) -> np.ndarray:
    """Configurations at the multiples of `FINE`: Gauss's method of order 8 with exact impacts, steps of `FINE`/refined."""
    steps = refined * round(T1 / FINE)
    return simulate(SYSTEM, CVA(Gauss(stages=4)), h=FINE / refined, steps=steps, save_every=refined, **xi(beta)).q


def impacts(run: Trajectory) -> Impacts:
    """The impacts of a run by a collision integrator."""
    assert run.impacts is not None
    return run.impacts


def l2_error(run: Trajectory, exact: np.ndarray) -> float:
    """The distance of a run from a reference."""
    return l2_norm(run.q - exact[:: round(run.h / FINE)][: len(run.q)], run.h)


def l2_errors(method: CollisionIntegrator, h: float, betas: np.ndarray, references: Sequence[np.ndarray]) -> np.ndarray:
    """The distances of the runs from several starts from their references."""
    return np.array([l2_error(simulate_to_the_end(method, h, b), q) for b, q in zip(betas, references, strict=True)])


def l2_norm(difference: np.ndarray, h: float) -> float:
    """The norm in L^2[0, 5] of a function of t that is given at the multiples of h, by a sum over steps."""
    return float(np.sqrt(h * np.sum(difference**2)))
