"""Systems with many starts, for tests of ensembles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dalembert as da


@dataclass(frozen=True, eq=False)
class Case:
    """A system, a method, and what varies from member to member."""

    system: Any
    method: da.OneStepMethod
    h: float
    varied: dict[str, np.ndarray]
    params: dict[str, np.ndarray] = field(default_factory=dict)

    def member(self, k: int) -> dict[str, Any]:
        return {
            **{name: values[k] for name, values in self.varied.items()},
            "params": {n: v[k] for n, v in self.params.items()},
        }

    @property
    def all(self) -> dict[str, Any]:
        return {**self.varied, "params": self.params}


def hanging(angles: np.ndarray) -> np.ndarray:
    """Points of chains with links of length one that make these angles with the vertical, (member, 2 links)."""
    links = np.stack([np.sin(angles), -np.cos(angles)], axis=-1)
    return np.cumsum(links, axis=1).reshape(len(angles), -1)


def angles(members: int, links: int, width: float = 1.0) -> np.ndarray:
    return np.random.default_rng(members + links).uniform(-width, width, (members, links))


def double_pendulums(members: int, method: da.OneStepMethod, h: float = 0.12, width: float = 1.0) -> Case:
    q0 = hanging(angles(members, 2, width))
    gravity = np.linspace(0.5, 2.0, members)
    return Case(da.problems.double_pendulum(), method, h, {"q0": q0, "p0": np.zeros_like(q0)}, {"g": gravity})


def rolling_coins(members: int) -> Case:
    """A coin that rolls on an incline: nonholonomic constraints."""
    system = da.Lagrangian(
        lambda q, v, slope: v @ v / 2 - slope * q[0],
        dim=4,
        nonholonomic=lambda q, v: [v[0] - np.cos(q[2]) * v[3], v[1] - np.sin(q[2]) * v[3]],
        params={"slope": 0.3},
    )
    turn = np.linspace(0.5, 1.5, members)
    v0 = np.stack([np.ones(members), np.zeros(members), turn, np.ones(members)], axis=1)
    return Case(system, da.GaussLobattoSPARK(2), 0.05, {"q0": np.zeros((members, 4)), "v0": v0}, {"slope": turn / 4})


def sliding_blocks(members: int) -> Case:
    """Blocks that slide on a plane with dry friction: multipliers enter nonlinearly, and the last one stops on the way."""
    system = da.ODAE(
        v=lambda z: z,
        f=lambda: [0.0, -9.81],
        g=lambda y: [y[1]],
        dim_y=2,
        dim_z=2,
        r=lambda z, lam, mu: np.array([0.0, 1.0]) * lam[0] + da.forces.friction(lam[0], z, mu),
        domain=lambda z, z0, lam: [da.forces.no_reversal(z, z0), lam[0]],
        params={"mu": 0.5},
    )
    z0 = np.stack([np.linspace(4, 5, members), np.zeros(members)], axis=1)
    return Case(
        system, da.SymplecticEuler(), 0.01, {"y0": np.zeros((members, 2)), "z0": z0}, {"mu": np.linspace(0.1, 1, members)}
    )


def falling_into_a_hole(members: int) -> Case:
    """A point under the potential sqrt(1 - q): those that start to the right leave its domain at q = 1 within a few steps."""
    system = da.Hamiltonian(lambda q, p: p @ p / 2 + np.sqrt(1 - q[0]), dim=1)
    q0, p0 = np.full((members, 1), -5.0), np.full((members, 1), -1.0)
    q0[2], p0[2] = 0.5, 1.0
    q0[5], p0[5] = 0.0, 1.0
    return Case(system, da.Gauss(2), 0.05, {"q0": q0, "p0": p0})
