"""Methods and models on which derivatives are compared with multiprecision: all smooth rows of the table of methods."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "methods"))
import method_models
from method_table import ROWS

import dalembert as da

__all__ = ["cases", "method_models", "mixed"]

DEFAULT = {
    ("LobattoIIIAB(stages=3)", "varying_length"), ("Shake()", "double_pendulum"), ("GaussLobattoSPARK(stages=2)", "sleigh"),
    ("Gauss(stages=2, projected=False)", "double_pendulum_in_angles"), ("Variational(L_d='midpoint')", "magnetic_surface"),
    ("compose(da.Rattle(), 'suzuki-4')", "double_pendulum"), ("McLachlanPerlmutter(variable_mass=True)", "nonlinear_k"),
}  # fmt: skip
"""Those that are not slow tests: forces, time, a first step that is prepared, nonholonomic constraints, a composition."""


def models_of(row):
    names = [*row.models[:2]] if row.steps else []
    names += list(row.nonholonomic_models[:2]) if row.nonholonomic_steps else []
    names += ["varying_length"] if row.id == "LobattoIIIAB(stages=3)" else []
    return list(dict.fromkeys(names or [row.unconstrained_model]))


def cases(left_out=()):
    """(method, name of a model) as parameters of a test; models that are `left_out` are slow tests, too."""
    pairs = [(row, name) for row in ROWS if row.method.driver == "smooth" for name in models_of(row)]
    known = {(row.id, name) for row, name in pairs}
    assert known >= DEFAULT, f"no rows of the table: {DEFAULT - known}"
    assert len({type(row.method) for row, _ in pairs}) >= 20
    for row, name in pairs:
        marks = [] if (row.id, name) in DEFAULT and name not in left_out else pytest.mark.slow
        yield pytest.param(row.method, name, id=f"{row.id}-{name}", marks=marks)


def mixed():
    """A rolling blade on a turning slope with drag: holonomic, nonholonomic, forces, time, SI-like parameters."""
    return da.Lagrangian(
        lambda q, v, m, J, a: m * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2) / 2 + J * v[3] ** 2 / 2 - 9.81 * m * q[2],
        dim=4,
        holonomic=lambda q, a: [q[2] - a * q[0] - 0.1 * np.sin(q[1])],
        nonholonomic=lambda q, v: [np.sin(q[3]) * v[0] - np.cos(q[3]) * v[1]],
        force=lambda t, v, c: -c * v + np.array([0.05 * np.cos(3 * t), 0, 0, 1e-5]),
        params={"m": 0.2, "J": 1e-4, "a": 0.3, "c": np.array([0.1, 0.1, 0.1, 1e-5])},
    )
