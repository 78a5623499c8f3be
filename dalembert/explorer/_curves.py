"""Curves against time, thinned to what a screen can show."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.plot._thin import envelope
from dalembert.runs._trajectory import Trajectory

BINS, LEAST = 300, 1e-17
NAMES = {"g": "|g|", "g_dot": "|ġ|", "k": "|k|"}


def panels(run: Trajectory, coordinate: int) -> list[dict[str, Any]]:
    """The energy error, how far the run is from its constraints, and one coordinate; each is left out where there is none."""
    found = []
    if run.has_energy:
        error = run.energy - run.energy[0]
        found.append(_panel("energy", False, {"|H - H₀|": error}, run.t, float(np.max(np.abs(error)))))
    sizes = {NAMES.get(name, name): np.max(np.abs(values), axis=1) for name, values in run.residuals.items() if values.shape[1]}
    if sizes:
        largest = max(float(np.max(values)) for values in sizes.values())
        found.append(_panel("constraints", True, sizes, run.t, largest))
    values = run.y[:, coordinate % run.y.shape[1]]
    found.append(_panel("coordinate", False, {"": values}, run.t, float(np.max(np.abs(values)))))
    return found


def ranges(run: Trajectory) -> list[list[float]]:
    """The least and the largest value of every variable."""
    return np.column_stack([run.states.min(axis=0), run.states.max(axis=0)]).tolist()


def _panel(key: str, log: bool, curves: dict[str, np.ndarray], t: np.ndarray, largest: float) -> dict[str, Any]:
    series = []
    for name, values in curves.items():
        finite = np.nan_to_num(values, nan=0.0, posinf=1e300, neginf=-1e300)
        when, low, high = envelope(t, np.maximum(finite, LEAST) if log else finite, BINS // 3 if log else BINS)
        low = high if log else low  # residuals count by their largest values
        series.append({"name": name, "t": when.tolist(), "low": low.tolist(), "high": high.tolist()})
    return {"key": key, "log": log, "series": series, "largest": largest if np.isfinite(largest) else None}
