"""What the experiments of Small and Jay (2011) share."""

from __future__ import annotations

import numpy as np

from dalembert.methods import GaussLobattoEMPRK, GaussLobattoSPARK
from dalembert.runs._trajectory import Trajectory

DOCUMENT = "Small & Jay (2011), Discontinuous collocation methods for DAEs in mechanics"
FAMILIES: dict[str, type[GaussLobattoSPARK] | type[GaussLobattoEMPRK]] = {
    "spark": GaussLobattoSPARK,
    "emprk": GaussLobattoEMPRK,
}
NAMES = {"spark": "SPARK", "emprk": "EMPRK"}
CONSTRAINTS = {"g": "$g$", "g_dot": r"$\dot g$", "k": "$k$"}


def largest_residuals(run: Trajectory) -> dict[str, np.ndarray]:
    """The largest violation of each constraint by state; none where there is no such constraint."""
    return {name: np.max(np.abs(value), axis=1) for name, value in run.residuals.items() if value.shape[1]}


def largest(values: np.ndarray) -> float:
    """The largest absolute value; nan if one of them is."""
    return float(np.max(np.abs(values)))
