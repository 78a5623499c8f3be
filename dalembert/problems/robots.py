"""Robots of bodies and joints: an arm, a platform on six legs, a walking leg."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalembert.mechanisms import Cylinder, Mechanism
from dalembert.problems.machines import ENERGY, machine
from dalembert.runs._problem import Problem


def jansens_leg(g: float = 9.81, rate: float = 4.0) -> Problem:
    """A leg of Jansen's beach animals: a crank, two triangles and four bars of his eleven lengths, 1 cm and 10 g for each unit.

    The crank starts along x and turns at `rate`; the foot draws a flat stride. T. Jansen, The Great Pretender, 010 Publishers
    2007.

    Example:
        >>> import dalembert as da
        >>> da.problems.jansens_leg().system
        <Hamiltonian of 21 coordinates, 20 holonomic constraints, params g>

    """
    A, B, C = np.zeros(2), np.array([-0.38, -0.078]), np.array([0.15, 0.0])
    D, E = _meeting(C, B, 0.5, 0.415), _meeting(B, C, 0.393, 0.619)
    F = _meeting(D, B, 0.558, 0.401)
    G = _meeting(F, E, 0.394, 0.367)
    foot = _meeting(G, E, 0.657, 0.49)
    m = Mechanism(gravity=lambda g: (0.0, -g), coordinates="planar", params={"g": g})
    bars = {"crank": (A, C), "upper bar": (C, D), "lower bar": (C, E), "guide": (B, E), "side bar": (F, G)}
    crank, upper, lower, guide, side = (m.rod(name, *ends, mass=_length(*ends), width=0.02) for name, ends in bars.items())
    hip, shin = _triangle(m, "hip", B, D, F), _triangle(m, "shin", E, G, foot)
    drive = m.revolute(m.ground, crank, at=A)
    joints = [(crank, upper, C), (crank, lower, C), (upper, hip, D), (lower, guide, E), (guide, shin, E), (m.ground, hip, B)]
    for first, second, place in [*joints, (m.ground, guide, B), (hip, side, F), (side, shin, G)]:
        m.revolute(first, second, at=place)
    start = m.start(rates={drive: rate})
    return machine(m, start, "jansens_leg", "leg of a beach animal", "Jansen (2007)", 0.005, 1000, conserved=ENERGY)


def _meeting(P: np.ndarray, Q: np.ndarray, r: float, s: float) -> np.ndarray:
    """The point at distance r from P and s from Q, on the right of the way from P to Q."""
    way = Q - P
    distance = np.linalg.norm(way)
    along = (r**2 - s**2 + distance**2) / (2 * distance)
    return P + (along * way + np.sqrt(r**2 - along**2) * np.array([way[1], -way[0]])) / distance


def _length(P: np.ndarray, Q: np.ndarray) -> float:
    return float(np.linalg.norm(Q - P))


def _triangle(m: Mechanism, name: str, *corners: np.ndarray) -> Any:
    """Three bars of 1 kg a metre, welded together."""
    ends = [(corners[i - 1], corners[i]) for i in range(3)]
    masses = np.array([_length(*pair) for pair in ends])
    middles = np.array([(P + Q) / 2 for P, Q in ends])
    centre = masses @ middles / masses.sum()
    J = float(masses @ (masses**2 / 12 + np.sum((middles - centre) ** 2, axis=1)))
    return m.body(name, mass=float(masses.sum()), inertia=J, at=centre)


def six_axis_arm(g: float = 9.81, payload: float = 2.0, friction: float = 0.5) -> Problem:
    """An industrial arm with six hinges that falls when its motors fail: base, upper arm, forearm, and a wrist of three.

    It starts at rest, bent, with a `payload` in kg at its end; `friction` in Nms brakes every hinge.

    Example:
        >>> import dalembert as da
        >>> da.problems.six_axis_arm().system
        <Hamiltonian of 42 coordinates, 36 holonomic constraints, params g, payload, friction>

    """
    m = Mechanism(gravity=lambda g: (0.0, 0.0, -g), params={"g": g, "payload": payload, "friction": friction})
    link = m.ground
    for k, (P, Q, axis, mass, width) in enumerate(ARM):
        rod = m.rod(f"link {k + 1}", P, Q, mass="payload" if k == 5 else mass, width=width)
        m.torsion(m.revolute(link, rod, at=P, axis=axis, name=f"axis {k + 1}"), damping="friction")
        link = rod
    return machine(m, m.start(), "six_axis_arm", "six-axis arm", "Craig (1989), chapter 3", 0.002, 500)


ARM: list[tuple[tuple, tuple, tuple, float, float]] = [
    ((0, 0, 0), (0, 0, 0.4), (0, 0, 1), 20.0, 0.15),
    ((0, 0, 0.4), (0.25, 0, 0.8), (0, 1, 0), 12.0, 0.1),
    ((0.25, 0, 0.8), (0.6, 0, 0.7), (0, 1, 0), 8.0, 0.08),
    ((0.6, 0, 0.7), (0.7, 0, 0.65), (1, 0, -0.5), 3.0, 0.06),
    ((0.7, 0, 0.65), (0.75, 0.05, 0.6), (0, 1, 0.2), 2.0, 0.05),
    ((0.75, 0.05, 0.6), (0.8, 0.12, 0.55), (0.3, 0.2, -1), 1.0, 0.05),
]
"""Of each link: from, to, axis at its beginning, mass, width."""


def stewart_platform(stroke: float = 0.1, w: float = 3.0, g: float = 9.81) -> Problem:
    """Stewart platform: six legs of prescribed lengths carry a plate through a given motion.

    The lengths are those of the motion x = stroke (sin(w t), 1 - cos(w t), sin(2 w t)), turned about x by `3 stroke sin(w t)`.
    D. Stewart, Proc. Inst. Mech. Eng. 180 (1965) 371-386.

    Example:
        >>> import dalembert as da
        >>> da.problems.stewart_platform().system
        <Hamiltonian of 7 coordinates, 7 holonomic constraints, params stroke, w, g>

    """
    m = Mechanism(gravity=lambda g: (0.0, 0.0, -g), params={"stroke": stroke, "w": w, "g": g})
    height = np.array([0.0, 0.0, 0.7])
    plate = m.body("plate", mass=5.0, shape=Cylinder(0.3, 0.04), at=height)
    for k in range(6):
        below, above = (np.pi / 3 * (k + k % 2) + sign * 0.15 * (-1) ** k for sign in (1, -1))
        base = 0.5 * np.array([np.cos(below), np.sin(below), 0.0])
        top = 0.3 * np.array(
            [np.cos(above + np.pi / 3 * (1 - 2 * (k % 2))), np.sin(above + np.pi / 3 * (1 - 2 * (k % 2))), 0.0]
        )
        m.distance(m.ground, plate, at=(base, height + top), length=_leg(base, top, height), name=f"leg {k + 1}")
    reference = "Stewart (1965), Proc. Inst. Mech. Eng. 180"
    return machine(m, m.start(), "stewart_platform", "Stewart platform", reference, 0.01, 400)


def _leg(base: np.ndarray, top: np.ndarray, height: np.ndarray) -> Callable[..., Any]:
    """The length of a leg as a function of time."""

    def length(t: Any, stroke: Any, w: Any) -> Any:
        angle = 3 * stroke * np.sin(w * t)
        x = height[0] + stroke * np.sin(w * t) + top[0] - base[0]
        y = height[1] + stroke * (1 - np.cos(w * t)) + np.cos(angle) * top[1] - base[1]
        z = height[2] + stroke * np.sin(2 * w * t) + np.sin(angle) * top[1] - base[2]
        return np.sqrt(x**2 + y**2 + z**2)

    return length
