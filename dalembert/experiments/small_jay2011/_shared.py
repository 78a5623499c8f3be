"""What the experiments of Small and Jay (2011) share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dalembert.draw._style import CYCLE
from dalembert.experiments._experiment import Data, Document
from dalembert.experiments._figures import Axes
from dalembert.methods import GaussLobattoEMPRK, GaussLobattoSPARK

SMALL_JAY = Document("small_jay2011", "Small & Jay (2011), Discontinuous collocation methods for DAEs in mechanics")
FAMILIES: dict[str, type[GaussLobattoSPARK] | type[GaussLobattoEMPRK]] = {
    "spark": GaussLobattoSPARK,
    "emprk": GaussLobattoEMPRK,
}
NAMES = {"spark": "SPARK", "emprk": "EMPRK"}
CONSTRAINTS = {"g": "$g$", "g_dot": r"$\dot g$", "k": "$k$"}


def draw_violations(ax: Axes, t: np.ndarray, data: Data, run: str, constraints: Iterable[str], size: float) -> None:
    """The violation of each constraint by one of the runs against time, on a logarithmic axis."""
    for constraint, color in zip(constraints, CYCLE, strict=False):
        values = np.maximum(data[f"{run}_{constraint}"], 1e-18)
        ax.plot(t, values, ".", markersize=size, color=color, label=CONSTRAINTS[constraint])
    ax.set(yscale="log", ylim=(1e-18, 1e-13), xlabel="$t$")
    ax.grid(True)
