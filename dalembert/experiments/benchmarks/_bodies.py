"""Benchmarks as bodies and joints, for programs that take those, and their errors from the motion of bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert import problems
from dalembert.experiments.benchmarks._motion import Motion
from dalembert.experiments.benchmarks._references import reference
from dalembert.mechanisms import Box, Mechanism
from dalembert.mechanisms._coordinates import Quaternion
from dalembert.runs._problem import Problem
from dalembert.runs._starts import initial_state
from dalembert.systems import State


@dataclass(frozen=True)
class Bodies:
    """A mechanism and its start, and the error of a motion of it as the benchmark defines it."""

    build: Callable[[], tuple[Mechanism, State]]
    error: Callable[[Motion], float]


def stated_by_bodies(problem: Callable[[], Problem], body: str) -> Callable[[], tuple[Mechanism, State]]:
    """The mechanism behind a problem of the catalogue, found by one of its bodies."""

    def build() -> tuple[Mechanism, State]:
        posed = problem()
        assert posed.system.part_named is not None
        return posed.system.part_named(body).mechanism, initial_state(posed)[1]

    return build


def pendulum() -> tuple[Mechanism, State]:
    """A01; the inertia of its point is 1e-12 kg m^2."""
    m = Mechanism(gravity=(0.0, -9.81), coordinates="planar")
    m.revolute(m.ground, m.body("bob", mass=1.0, inertia=1e-12, at=(-1, 0)), at=(0, 0))
    return m, m.start()


def four_bars(loops: int) -> Callable[[], tuple[Mechanism, State]]:
    """A02."""

    def build() -> tuple[Mechanism, State]:
        m = Mechanism(gravity=(0.0, -9.81), coordinates="planar")
        cranks = [m.rod(f"crank {i}", (i, 0), (i, 1), mass=1.0) for i in range(loops + 1)]
        hinges = [m.revolute(m.ground, crank, at=(i, 0)) for i, crank in enumerate(cranks)]
        for i in range(loops):
            coupler = m.rod(f"coupler {i}", (i, 1), (i + 1, 1), mass=1.0)
            m.revolute(cranks[i], coupler, at=(i, 1))
            m.revolute(coupler, cranks[i + 1], at=(i + 1, 1))
        return m, m.start(rates={hinges[0]: -1.0})

    return build


def governor() -> tuple[Mechanism, State]:
    """A05, with each point mass as a part of its rod."""
    m = Mechanism(gravity=(0.0, 0.0, -9.81))
    shaft = m.rod("shaft", (0, 0, 0), (0, 0, 1), density=3000.0, width=0.01)
    slider = m.body("slider", shape=Box(0.1, 0.1, 0.1), density=3000.0, at=(0, 0, 0.5))
    turning = m.revolute(m.ground, shaft, at=(0, 0, 0), axis=(0, 0, 1))
    m.prismatic(shaft, slider, axis=(0, 0, 1), displacement=0.5, name="slide")
    mass, ball, width = 0.3, 5.0, 0.01
    for side in (1, -1):
        hinge, end = np.array([0.05 * side, 0, 1.0]), np.array([side * (0.05 + np.cos(np.pi / 6)), 0, 0.5])
        middle, along = (hinge + end) / 2, end - hinge
        centre = (mass * middle + ball * end) / (mass + ball)
        across = mass * (1 + width**2) / 12 + mass * ball / (mass + ball) / 4  # the ball is 1/2 m from the middle
        thin = mass * width**2 / 6
        J = across * np.eye(3) + (thin - across) * np.outer(along, along)
        rod = m.body(f"rod {side}", mass=mass + ball, inertia=J, at=centre)
        m.revolute(shaft, rod, at=hinge, axis=(0, side, 0))
        m.spring(slider, rod, at=((0.05 * side, 0, 0.5), middle), stiffness=8e5, length=0.5, damping=4e4)
    return m, m.start(rates={turning: 2 * np.pi})


# -- errors ----------------------------------------------------------------------------------------------------------------


def drift(motion: Motion) -> float:
    """max |E - E_0|."""
    return float(np.max(np.abs(motion.energy - motion.energy[0])))


P3 = (1.0, -1.0, 1.0)
"""The point of Bricard's mechanism whose track is asked for."""


def off_track(found: np.ndarray) -> float:
    """The largest error of P_3 at t = 1, 2, ..., 10, from its places at equidistant times from 0 to 10."""
    right = reference("bricard").reshape(-1, 3)
    return float(np.max(np.abs(found[(len(found) - 1) // len(right) * np.arange(1, len(right) + 1)] - right)))


def of_bricard(motion: Motion) -> float:
    """The drift of energy, and P_3 against its certified track."""
    return max(drift(motion), off_track(motion.point(motion.m.bodies[2], P3)[0]))


def balance(motion: Motion) -> float:
    """max |E - E_0 - tau (beta - beta_0)| of Andrews' mechanism."""
    return float(np.max(np.abs(motion.energy - motion.energy[0] - 0.033 * motion.angle[:, 0])))


def of_angles(motion: Motion) -> float:
    """Of the angles of Andrews' mechanism at the end, which are those of bodies against each other."""
    beta, second, gamma, fourth, delta, sixth, epsilon = motion.angle[-1]
    turned = np.array([beta, second - beta, gamma, fourth - delta, delta, sixth - epsilon, epsilon])
    return float(np.max(np.abs(problems.andrews_in_angles().q0 + turned - reference("andrews"))))


def of_first_joint(loops: int) -> Callable[[Motion], float]:
    """Position and velocity of B_0 against the exact motion."""

    def error(motion: Motion) -> float:
        exact: Any = problems.n_four_bar(loops=loops).exact
        right = exact(np.linspace(0.0, 20.0, len(motion.position)))
        found = motion.point(motion.m.bodies[0], (0.0, 1.0))
        return float(max(np.max(np.abs(x[:, :2] - right[key][:, :2])) for key, x in zip("qv", found, strict=True)))

    return error


def of_slider(motion: Motion) -> float:
    """Of the height of the governor's slider at the end."""
    return float(abs(motion.position[-1, motion.number("slider"), 2] - reference("governor")[2]))


def of_frame(name: str) -> Callable[[Motion], float]:
    """Of the place and the rotation of the bicycle's frame at the end; quaternions mean the same with either sign."""

    def error(motion: Motion) -> float:
        k, right = motion.number("frame"), reference(name)[7:14]
        found = Quaternion().start(motion.position[-1, k], motion.axes[-1, k])
        found[3:] *= np.sign(found[3:] @ right[3:])
        return float(np.max(np.abs(found - right)))

    return error
