"""Mechanisms whose exact motion is known from other coordinates: their joints' own, integrated by DOP853 to 1e-13.

Each is stated twice: as a `da.Mechanism` of bodies and joints, and by the places of its bodies as functions of its joint
coordinates u, from which CasADi derives Lagrange's equations without constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.problems import Problem

GRAVITY = 9.81


@dataclass(frozen=True)
class InAngles:
    """A mechanism as a problem, and its motion in joint coordinates."""

    problem: Problem
    places: ca.Function
    """u -> the coordinates of all bodies, as the problem has them."""
    rates: ca.Function
    """(t, u, u_dot) -> u_dot_dot."""
    u0: np.ndarray
    du0: np.ndarray

    def positions(self, t: np.ndarray, rtol: float = 3e-14) -> np.ndarray:
        """The coordinates of all bodies at increasing times from the start on."""
        n = len(self.u0)

        def flow(time: float, y: np.ndarray) -> np.ndarray:
            return np.concatenate([y[n:], np.asarray(self.rates(time, y[:n], y[n:])).ravel()])

        options = {"method": "DOP853", "rtol": rtol, "atol": rtol / 30}
        found = solve_ivp(flow, (t[0], t[-1]), np.concatenate([self.u0, self.du0]), t_eval=t, **options)
        return np.asarray(self.places.map(len(t))(found.y[:n])).T


def in_angles(
    name: str,
    m: da.Mechanism,
    start: da.State,
    h: float,
    steps: int,
    u0: list[float],
    du0: list[float],
    places: Callable[[ca.SX], list[ca.SX]],
    kinetic: Callable[[ca.SX, ca.SX], ca.SX],
    potential: Callable[[ca.SX], ca.SX],
    force: Callable[[ca.SX, ca.SX, ca.SX], list[ca.SX]],
) -> InAngles:
    """Lagrange's equations of a mechanism in coordinates u; `places` are those of the bodies up to turned axes at the start."""
    n = len(u0)
    t, u, du = ca.SX.sym("t"), ca.SX.sym("u", n), ca.SX.sym("du", n)
    T, V = kinetic(u, du), potential(u)
    momentum = ca.jacobian(T, du)
    M, acting = ca.jacobian(momentum, du), ca.vertcat(*force(t, u, du)) + ca.jacobian(T - V, u).T
    rates = ca.solve(M, acting - ca.jacobian(momentum, u) @ du)
    problem = Problem(name, name, "", m.system(), q0=start.first, p0=start.second, h=h, steps=steps)
    found = ca.Function("places", [u], [ca.vertcat(*aligned(u, places(u), np.array(u0), start.first))])
    return InAngles(problem, found, ca.Function("rates", [t, u, du], [rates]), np.array(u0), np.array(du0))


def aligned(u: ca.SX, places: list[ca.SX], u0: np.ndarray, q0: np.ndarray) -> list[ca.SX]:
    """Places of bodies whose axes at the start are those of q0: angles from there, quaternions times a constant one."""
    found, first = [], 0
    for place in places:
        now, own = np.asarray(ca.Function("place", [u], [place])(u0)).ravel(), q0[first : first + place.shape[0]]
        first += place.shape[0]
        if len(own) == 4:
            found.append(product(place, product(now * [1, -1, -1, -1], own)))
        else:
            assert np.abs(own - now)[:2].max() < 1e-12
            found.append(place + (own - now))
    return found


def product(a: ca.SX, b: ca.SX) -> ca.SX:
    """The quaternion a b."""
    return ca.vertcat(
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )  # fmt: skip


def planar(bodies: list[tuple[ca.SX, float, float]], u: ca.SX, du: ca.SX) -> ca.SX:
    """The kinetic energy of bodies (place, mass, moment of inertia), each place being x, y, angle."""
    rates = [(ca.jtimes(place, u, du), mass, inertia) for place, mass, inertia in bodies]
    return sum(m / 2 * (v[0] ** 2 + v[1] ** 2) + inertia / 2 * v[2] ** 2 for v, m, inertia in rates)


def chain_of_rods(u: ca.SX, lengths: list[float]) -> list[ca.SX]:
    """Centre and angle of rods in a row, each hinged to the one before it at its end, which lies along x where u = 0."""
    x, y, angle, found = 0.0, 0.0, 0.0, []
    for k, length in enumerate(lengths):
        angle = angle + u[k]
        across, along = length * ca.cos(angle), length * ca.sin(angle)
        found.append(ca.vertcat(x + across / 2, y + along / 2, angle))
        x, y = x + across, y + along
    return found


def rods(
    name: str, lengths: list[float], masses: list[float], stiffness: list[float], damping: list[float], torque: float,
    u0: list[float], du0: list[float], h: float, steps: int,
) -> InAngles:  # fmt: skip
    """Rods in a row that hang from a wall, with springs and dampers in their hinges; a motor turns the first by cos(5 t)."""
    m = da.Mechanism(gravity=(0, -GRAVITY), coordinates="planar")
    ends, before, hinges = np.concatenate([[0.0], np.cumsum(lengths)]), m.ground, []
    for k, mass in enumerate(masses):
        rod = m.rod(f"rod {k + 1}", (ends[k], 0), (ends[k + 1], 0), mass=mass)
        hinges.append(m.revolute(before, rod, at=(ends[k], 0)))
        m.torsion(hinges[-1], stiffness=stiffness[k], damping=damping[k])
        before = rod
    m.motor(hinges[0], lambda t: torque * np.cos(5 * t))
    start = m.start(angles=dict(zip(hinges, u0, strict=True)), rates=dict(zip(hinges, du0, strict=True)))

    def kinetic(u: ca.SX, du: ca.SX) -> ca.SX:
        inertias = [mass * length**2 / 12 for mass, length in zip(masses, lengths, strict=True)]
        return planar(list(zip(chain_of_rods(u, lengths), masses, inertias, strict=True)), u, du)

    def potential(u: ca.SX) -> ca.SX:
        heights = [place[1] for place in chain_of_rods(u, lengths)]
        springs = sum(k / 2 * u[i] ** 2 for i, k in enumerate(stiffness))
        return springs + GRAVITY * sum(mass * y for mass, y in zip(masses, heights, strict=True))

    def force(t: ca.SX, u: ca.SX, du: ca.SX) -> list[ca.SX]:
        del u
        return [-c * du[i] + (torque * ca.cos(5 * t) if i == 0 else 0) for i, c in enumerate(damping)]

    return in_angles(name, m, start, h, steps, u0, du0, lambda u: chain_of_rods(u, lengths), kinetic, potential, force)


def double_rod() -> InAngles:
    """Rods of 0.4 and 0.3 m swing freely."""
    return rods("double_rod", [0.4, 0.3], [0.3, 0.2], [0.0, 0.0], [0.0, 0.0], 0.0, [-1.2, -0.5], [0.0, 0.0], 0.01, 1500)


def springy_arm() -> InAngles:
    """An arm of three rods with springs and dampers, which a motor shakes."""
    stiffness, damping = [6.0, 3.0, 1.0], [0.02, 0.01, 0.005]
    return rods(
        "springy_arm", [0.25, 0.2, 0.15], [0.5, 0.3, 0.2], stiffness, damping, 1.5, [-0.2, 0.1, 0.3], [0.0] * 3, 0.005, 1500
    )


def crane() -> InAngles:
    """A trolley of 2 kg on a spring of 80 N/m is pushed to and fro; a beam of 0.8 kg and 0.6 m hangs from it."""
    m = da.Mechanism(gravity=(0, -GRAVITY), coordinates="planar")
    trolley = m.body("trolley", mass=2.0, inertia=0.01, at=(0, 0))
    beam = m.rod("beam", (0, 0), (0, -0.6), mass=0.8)
    slide, hinge = m.prismatic(m.ground, trolley, axis=(1, 0)), m.revolute(trolley, beam, at=(0, 0))
    m.torsion(slide, stiffness=80.0, damping=1.5)
    m.torsion(hinge, damping=0.01)
    m.motor(slide, lambda t: 6.0 * np.sin(3 * t))
    start = m.start(displacements={slide: 0.1}, angles={hinge: 0.8})

    def places(u: ca.SX) -> list[ca.SX]:
        return [ca.vertcat(u[0], 0, 0), ca.vertcat(u[0] + 0.3 * ca.sin(u[1]), -0.3 * ca.cos(u[1]), u[1])]

    def kinetic(u: ca.SX, du: ca.SX) -> ca.SX:
        return planar([(places(u)[0], 2.0, 0.01), (places(u)[1], 0.8, 0.8 * 0.6**2 / 12)], u, du)

    def potential(u: ca.SX) -> ca.SX:
        return 40.0 * u[0] ** 2 - 0.8 * GRAVITY * 0.3 * ca.cos(u[1])

    def force(t: ca.SX, u: ca.SX, du: ca.SX) -> list[ca.SX]:
        del u
        return [6.0 * ca.sin(3 * t) - 1.5 * du[0], -0.01 * du[1]]

    return in_angles("crane", m, start, 0.01, 1500, [0.1, 0.8], [0.0, 0.0], places, kinetic, potential, force)


def small_press() -> InAngles:
    """A slider-crank of 40 and 120 mm with a heavy crank, which presses a piston of 0.3 kg against a spring of 4 kN/m."""
    crank, rod, high = 0.04, 0.12, np.sqrt(0.12**2 - 0.04**2)
    m = da.Mechanism(gravity=(0, -GRAVITY), coordinates="planar")
    wheel = m.body("crank", mass=0.5, inertia=2e-3, at=(0, 0))
    coupler = m.rod("coupler", (0, crank), (high, 0), mass=0.15)
    piston = m.body("piston", mass=0.3, inertia=1e-4, at=(high, 0))
    shaft = m.revolute(m.ground, wheel, at=(0, 0))
    m.revolute(wheel, coupler, at=(0, crank))
    m.revolute(coupler, piston, at=(high, 0))
    slide = m.prismatic(m.ground, piston, axis=(1, 0))
    m.torsion(slide, stiffness=4000.0)
    m.torsion(shaft, damping=0.002)
    m.motor(shaft, lambda t: 0.3 + 0 * t)
    start = m.start(rates={shaft: 60.0})

    def pin(u: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Crank pin and the place of the piston; u is the angle of the crank from its upright position."""
        x, y = -crank * ca.sin(u[0]), crank * ca.cos(u[0])
        return x, y, x + ca.sqrt(rod**2 - y**2)

    def places(u: ca.SX) -> list[ca.SX]:
        x, y, end = pin(u)
        tilt = np.arcsin(crank / rod) - ca.asin(y / rod)
        return [ca.vertcat(0, 0, u[0]), ca.vertcat((x + end) / 2, y / 2, tilt), ca.vertcat(end, 0, 0)]

    def kinetic(u: ca.SX, du: ca.SX) -> ca.SX:
        each = [(0.5, 2e-3), (0.15, 0.15 * rod**2 / 12), (0.3, 1e-4)]
        return planar([(place, *of) for place, of in zip(places(u), each, strict=True)], u, du)

    def potential(u: ca.SX) -> ca.SX:
        return 2000.0 * (pin(u)[2] - high) ** 2 + 0.15 * GRAVITY * pin(u)[1] / 2

    def force(t: ca.SX, u: ca.SX, du: ca.SX) -> list[ca.SX]:
        del t, u
        return [0.3 - 0.002 * du[0]]

    return in_angles("small_press", m, start, 0.001, 1500, [0.0], [60.0], places, kinetic, potential, force)


def furuta() -> InAngles:
    """Furuta's pendulum in space: a rod of 0.3 m swings about the end of an arm of 0.2 m that turns about the vertical."""
    m = da.Mechanism(gravity=(0, 0, -GRAVITY))
    J_arm, J_rod = (2e-4, 1.5e-3, 1.5e-3), (1.2e-3, 1.2e-3, 1e-4)
    arm = m.body("arm", mass=0.3, inertia=np.diag(J_arm), at=(0.1, 0, 0))
    rod = m.body("rod", mass=0.15, inertia=np.diag(J_rod), at=(0.2, 0, -0.15))
    turning = m.revolute(m.ground, arm, at=(0, 0, 0), axis=(0, 0, 1))
    swinging = m.revolute(arm, rod, at=(0.2, 0, 0), axis=(1, 0, 0))
    m.torsion(swinging, damping=5e-4)
    start = m.start(angles={turning: 0.0, swinging: 1.0}, rates={turning: 4.0, swinging: 0.0})

    def places(u: ca.SX) -> list[ca.SX]:
        c, s, half = ca.cos(u[0]), ca.sin(u[0]), (u[0] / 2, u[1] / 2)
        side, down = 0.15 * ca.sin(u[1]), -0.15 * ca.cos(u[1])
        turn = ca.vertcat(ca.cos(half[0]), 0, 0, ca.sin(half[0]))
        both = ca.vertcat(
            ca.cos(half[0]) * ca.cos(half[1]), ca.cos(half[0]) * ca.sin(half[1]),
            ca.sin(half[0]) * ca.sin(half[1]), ca.sin(half[0]) * ca.cos(half[1]),
        )  # fmt: skip
        centre = ca.vertcat(0.2 * c - side * s, 0.2 * s + side * c, down)
        return [ca.vertcat(0.1 * c, 0.1 * s, 0), turn, centre, both]

    def kinetic(u: ca.SX, du: ca.SX) -> ca.SX:
        v = [ca.jtimes(places(u)[k], u, du) for k in (0, 2)]
        omega = ca.vertcat(du[1], ca.sin(u[1]) * du[0], ca.cos(u[1]) * du[0])  # of the rod, in its own axes
        turning = J_arm[2] * du[0] ** 2 + ca.dot(ca.DM(J_rod), omega**2)
        return (0.3 * ca.sumsqr(v[0]) + 0.15 * ca.sumsqr(v[1]) + turning) / 2

    def potential(u: ca.SX) -> ca.SX:
        return -0.15 * GRAVITY * 0.15 * ca.cos(u[1])

    def force(t: ca.SX, u: ca.SX, du: ca.SX) -> list[ca.SX]:
        del t, u
        return [ca.SX(0), -5e-4 * du[1]]

    return in_angles("furuta", m, start, 0.01, 1500, [0.0, 1.0], [4.0, 0.0], places, kinetic, potential, force)


IN_ANGLES = {each.__name__: each for each in (double_rod, springy_arm, crane, small_press, furuta)}
