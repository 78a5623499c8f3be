"""What the experiments with impacts share: the cart-pendulum above its floor, its starts, and the methods of section 5.2."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.impacts import CVA, MCVA, MCVAA, MCVAC, VCI, CollisionIntegrator
from dalembert.modified import modified_hamiltonian
from dalembert.problems import cart_pendulum
from dalembert.simulation import simulate
from dalembert.systems import Lagrangian
from dalembert.trajectory import Trajectory

DOCUMENT = "Pekarek & Murphey (2014), Int. J. Numer. Meth. Engng"
SYSTEM = Lagrangian(
    lambda q, v, m1, m2, l, g: (  # noqa: E741
        (m1 + m2) * v[0] ** 2 / 2 + m2 * l * np.sin(q[1]) * v[0] * v[1] + m2 * l**2 * v[1] ** 2 / 2
        - (m1 + m2) * g * q[0] + m2 * g * l * np.cos(q[1])
    ),
    dim=2,
    unilateral=lambda q: q[0],
    params=cart_pendulum().system.params,
)  # fmt: skip
"""The cart-pendulum (35) above its floor y = 0 (section 5.1)."""
SIZES = (0.032, 0.01)
"""The paper's two step sizes."""
BETAS = np.linspace(3.2, 5.2, 51)
"""The paper's samples of the parameter of its starts."""
PAPER: dict[str, CollisionIntegrator] = {"CVA": CVA(), "VCI": VCI(), "MCVAA": MCVAA(), "MCVAC": MCVAC()}
ALL: dict[str, CollisionIntegrator] = {
    "MCVAA": MCVAA(),
    "MCVA_even": MCVA("SVC", 4, "even"),
    "MCVAC": MCVAC(),
    "CVA": CVA(),
    "CVA_SVA": CVA("SVA"),
    "VCI": VCI(),
}
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
