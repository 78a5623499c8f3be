"""What the modified Hamiltonian buys: the energy of the cart-pendulum over many elastic impacts, from an ensemble of starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.experiments._experiment import Check, Data, Experiment
from dalembert.experiments.pekarek2014._shared import ALL, DOCUMENT, LABELS, SIZES, SYSTEM, xi
from dalembert.impacts import CollisionIntegrator
from dalembert.modified import ModifiedHamiltonian, modified_hamiltonian
from dalembert.simulation import simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STARTS = np.linspace(3.2, 5.2, 12)
IMPACTS, MORE_IMPACTS = {0.032: 3000, 0.01: 1000}, {0.032: 100_000, 0.01: 100_000}
ROWS = 100
"""How often the energy is looked at between the first impact and the last."""
STEPS_OF_A_PART = 100_000
SAVED = 100
"""Steps between two stored states: fewer than there are between two looks at the energy."""


def energy_over_impacts(
    method: CollisionIntegrator, kept: ModifiedHamiltonian, h: float, beta: float, impacts: int
) -> tuple[np.ndarray, np.ndarray]:
    """H~ after 0, 1, ..., ROWS hundredths of `impacts`, and the times; a long run is done in parts that are forgotten."""
    wanted = np.round(np.linspace(0, impacts, ROWS + 1))
    energies, times = np.full(ROWS + 1, np.nan), np.full(ROWS + 1, np.nan)
    start, t, count, row = xi(beta), 0.0, 0, 0
    while row <= ROWS:
        run = simulate(
            SYSTEM, method, h=h, steps=STEPS_OF_A_PART, save_every=SAVED, progress=False, on_failure="return", **start
        )
        seen = count + np.searchsorted(run.impacts.t, run.t, side="right")
        new = row + np.arange(np.sum(wanted[row:] <= seen[-1]))
        at = np.searchsorted(seen, wanted[new])
        energies[new], times[new] = kept(run.q[at], run.p[at], h), t + run.t[at]
        row, count, t = row + len(new), int(seen[-1]), t + run.t[-1]
        if run.status != "done":
            break
        start = {"q0": run.q[-1], "p0": run.p[-1]}
    return energies, times


def compute_many_impacts(full: bool) -> Data:
    """H~ by method and step size, one row a start; and the impacts and times that belong to its columns."""
    data: dict[str, np.ndarray] = {}
    for h in SIZES:
        impacts = (MORE_IMPACTS if full else IMPACTS)[h]
        data[f"impacts_{h}"] = np.round(np.linspace(0, impacts, ROWS + 1))
        for name, method in ALL.items():
            # the same measure for all: what smooth motion of their base keeps up to O(h^4)
            kept = modified_hamiltonian(SYSTEM, method.full, 4, "even")
            runs = [energy_over_impacts(method, kept, h, beta, impacts) for beta in STARTS]
            data[f"{name}_{h}"], data[f"{name}_{h}_t"] = (np.array(column) for column in zip(*runs, strict=True))
    return data
