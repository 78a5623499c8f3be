"""A few of the random mechanisms of benchmarks/random_mechanisms.py: every run is right, or refused with a reason."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from random_mechanisms import METHODS, Members, Structure, study

STRUCTURES = {
    "two pendulums that hang on the ground": Structure((-1, -1), ()),
    "a chain of three": Structure((-1, 0, 1), ()),
    "a closed chain of four": Structure((-1, 0, 1, 2), ((3, -1),)),
    "a tree with a loop": Structure((-1, 0, 0, 2), ((1, 3),)),
}


@pytest.mark.parametrize("number, name", list(enumerate(STRUCTURES)), ids=list(STRUCTURES))
def test_random_mechanisms_are_right_or_refused(number, name):
    found = study(STRUCTURES[name], list(METHODS)[number % 3], 64, seed=number)
    assert found.wrong == 0, found.examples
    assert found.refused <= 16  # those are the coarsest steps, and starts next to singular positions
    assert found.right + found.refused + found.unknown == 64


def test_the_reference_is_one():
    """In absolute angles a pendulum of two bodies has a known equation; its energy is kept where nothing drives it."""
    members = Members.random(Structure((-1, 0), ()), 8, np.random.default_rng(2))
    members.torque, members.damping = 0 * members.torque, 0 * members.damping
    y = np.concatenate([members.angles, members.rates], axis=1)
    step = 1e-6
    mass, *_ = members.equations(members.angles, members.rates)

    def potential(angles):
        height = members.centres(angles)[..., 1]
        turn = angles - np.concatenate([0 * angles[:, :1], angles[:, :1]], axis=1) - members.rest
        return 9.81 * np.sum(members.m * height, axis=1) + np.sum(members.stiffness * turn**2, axis=1) / 2

    def kinetic(angles, rates):
        return np.einsum("ni,nij,nj->n", rates, members.equations(angles, rates)[0], rates) / 2

    # d/dt (M w) - dT/dq = -dV/dq, with derivatives by differences
    acceleration = members.slope(y)[:, 2:]
    for i in range(2):
        shift = step * np.eye(2)[i]
        dT = (kinetic(members.angles + shift, members.rates) - kinetic(members.angles - shift, members.rates)) / (2 * step)
        dV = (potential(members.angles + shift) - potential(members.angles - shift)) / (2 * step)
        ahead, behind = (members.equations(members.angles + s * step * members.rates, members.rates)[0] for s in (1, -1))
        momentum_rate = np.einsum("nj,nj->n", (ahead - behind)[:, i] / (2 * step), members.rates)
        momentum_rate += np.einsum("nj,nj->n", mass[:, i], acceleration)
        scale = np.abs(momentum_rate) + np.abs(dT) + np.abs(dV)
        np.testing.assert_allclose((momentum_rate - dT + dV) / scale, 0.0, atol=1e-6)
