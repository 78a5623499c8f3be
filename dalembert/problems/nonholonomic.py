"""Blades and wheels, which restrict velocities: skate, knife edge, snakeboard, car with trailer, machine of Appell and Hamel.

S. Small and L. O. Jay, Discontinuous collocation methods for DAEs in mechanics (2011); A. M. Bloch, Nonholonomic Mechanics
and Control, Springer 2003. Reactions are -k_v^T psi."""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.draw import Part, body, line, mass, rod, trace
from dalembert.draw._parts import BLUE, GREY
from dalembert.errors import InputError
from dalembert.problems._geometry import heading, segment, sideways, steered_axles
from dalembert.runs._problem import Problem, energy_is_conserved
from dalembert.systems import Lagrangian

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory

SMALL_JAY = "Small & Jay (2011), Discontinuous collocation methods for DAEs in mechanics"
BLOCH = "Bloch (2003), Nonholonomic Mechanics and Control"


def skate(m: float = 1.0, l: float = 1.0, g: float = 1.0, omega: float = 1.0, speed: float = 0.0) -> Problem:
    """Skate on an inclined plane, by its two ends: one holonomic and one nonholonomic constraint.

        q = (x1, y1, x2, y2),   L = m v.v / 4 + m g (x1 + x2) / 2
        0 = ((x2 - x1)^2 + (y2 - y1)^2 - l^2) / 2,   0 = -(y2 - y1) (v_x1 + v_x2) + (x2 - x1) (v_y1 + v_y2)

    x points down the slope and g is gravity along it, gamma sin(beta) in Small and Jay. It starts with its centre at the
    origin, along x, turning at `omega` and sliding forward at `speed`. The slides print l = 2, which contradicts their
    initial values; with l = 1 these are the defaults here. `exact`, for omega != 0: the skate turns uniformly, theta = omega
    t, and its centre slides at u = speed + (g / omega) sin(theta) along it, on a cycloid if `speed` is zero, with lam = m
    omega^2 / 4 and psi = -m (g sin(theta) + u omega) / (2 l).

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.skate()
        >>> run = da.simulate(problem, da.GaussLobattoSPARK(stages=3), h=0.1, steps=100)
        >>> bool(abs(run.q[-1] - problem.exact(10.0)["q"]).max() < 1e-8)
        True

    """
    system = Lagrangian(
        lambda q, v, m, g: m * (v @ v) / 4 + m * g * (q[0] + q[2]) / 2,
        dim=4,
        holonomic=lambda q, l: [((q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - l**2) / 2],
        nonholonomic=lambda q, v: [-(q[3] - q[1]) * (v[0] + v[2]) + (q[2] - q[0]) * (v[1] + v[3])],
        params={"m": m, "l": l, "g": g},
    )

    def exact(t: Any) -> dict[str, np.ndarray]:
        theta, u, centre = _sliding(t, g, omega, speed)
        along, across = heading(theta)
        velocity = u[..., None] * along
        ends = [(centre + side * along, velocity + side * omega * across) for side in (-l / 2, l / 2)]
        q, v = (np.concatenate(parts, axis=-1) for parts in zip(*ends, strict=True))
        psi = -m * (g * np.sin(theta) + u * omega) / (2 * l)
        return {"q": q, "v": v, "p": m / 2 * v, "lam": np.full((*np.shape(theta), 1), m * omega**2 / 4), "psi": psi[..., None]}

    def drawing(q: np.ndarray) -> list[Part]:
        a, b = _downhill(q[:2]), _downhill(q[2:])
        return [rod(a, b), mass(a), mass(b), trace((a + b) / 2)]

    return Problem(
        name="skate",
        title="skate on an inclined plane",
        reference=f"{SMALL_JAY}, corrected",
        system=system,
        q0=np.array([-l / 2, 0.0, l / 2, 0.0]),
        v0=np.array([speed, -omega * l / 2, speed, omega * l / 2]),
        h=0.1,
        steps=100,
        exact=exact if omega else None,
        conserved={"energy": energy_is_conserved, "spin": _spin_of_points},
        drawing=drawing,
        labels=("x1", "y1", "x2", "y2"),
    )


def _downhill(point: np.ndarray) -> np.ndarray:
    """A point of a slope as it is drawn: x, down the slope, points down in the picture."""
    return np.array([point[1], -point[0]])


def knife_edge(m: float = 1.0, J: float = 0.25, g: float = 1.0, omega: float = 1.0, speed: float = 0.0) -> Problem:
    """Knife edge on an inclined plane: the `skate` in three coordinates, with one nonholonomic constraint.

        q = (x, y, phi),   L = m (v_x^2 + v_y^2) / 2 + J v_phi^2 / 2 + m g x,   0 = sin(phi) v_x - cos(phi) v_y

    x points down the slope and g is gravity along it. It starts at the origin, along x, turning at `omega` and sliding
    forward at `speed`. Although gravity pulls it down, it stays within a strip if `speed` is zero, and drifts across the
    slope at the mean velocity g / (2 omega). `exact`, for omega != 0: phi = omega t, u = speed + (g / omega) sin(phi) along
    the edge, and psi = m (g sin(phi) + u omega).

    Example:
        >>> import numpy as np, dalembert as da
        >>> run = da.simulate(da.problems.knife_edge(), da.GaussLobattoSPARK(stages=3), h=np.pi / 20, steps=20)
        >>> np.allclose(run.q[-1], [0, np.pi / 2, np.pi], atol=1e-6)
        True

    """
    system = Lagrangian(
        lambda q, v, m, J, g: m * (v[0] ** 2 + v[1] ** 2) / 2 + J * v[2] ** 2 / 2 + m * g * q[0],
        dim=3,
        nonholonomic=lambda q, v: [np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]],
        params={"m": m, "J": J, "g": g},
    )

    def exact(t: Any) -> dict[str, np.ndarray]:
        phi, u, centre = _sliding(t, g, omega, speed)
        v = np.concatenate([u[..., None] * heading(phi)[0], np.full((*np.shape(phi), 1), omega)], axis=-1)
        psi = m * (g * np.sin(phi) + u * omega)
        return {
            "q": np.concatenate([centre, phi[..., None]], axis=-1),
            "v": v,
            "p": v * np.array([m, m, J]),
            "psi": psi[..., None],
        }

    return Problem(
        name="knife_edge",
        title="knife edge on an inclined plane",
        reference=f"{BLOCH}, chapter 1",
        system=system,
        q0=np.zeros(3),
        v0=np.array([speed, 0.0, omega]),
        h=0.1,
        steps=1000,
        exact=exact if omega else None,
        conserved={"energy": energy_is_conserved, "spin": lambda run: run.p[:, 2]},
        drawing=lambda q: [rod(*map(_downhill, segment(q[:2], q[2], 0.25))), trace(_downhill(q[:2]))],
        labels=("x", "y", "phi"),
    )


def snakeboard(
    m: float = 1.0,
    J: float = 0.03,
    J_r: float = 0.02,
    J_w: float = 0.005,
    l: float = 0.25,
    steering: float = 0.5,
    rotor: float = 0.7,
    frequency: float = 1.0,
    speed: float = 0.0,
) -> Problem:
    """Snakeboard: a board on two steered axles that moves by turning a rotor to and fro.

        q = (x, y, theta, psi, phi),   theta the board; psi the rotor and +-phi the axles, against the board
        L = m (v_x^2 + v_y^2) / 2 + J v_theta^2 / 2 + J_r (v_theta + v_psi)^2 / 2 + J_w (v_theta^2 + v_phi^2)
        0 = -sin(theta + phi) v_x + cos(theta + phi) v_y + l cos(phi) v_theta                   (front axle)
        0 = -sin(theta - phi) v_x + cos(theta - phi) v_y - l cos(phi) v_theta                   (back axle)

    l is half the distance of the axles. The torques -2 J_w steering w^2 sin(w t) and -J_r rotor w^2 sin(w t), w =
    `frequency`, make phi = steering sin(w t) and theta + psi = rotor sin(w t): the gait "drive", which accelerates from rest
    or from `speed`. At phi = 90 degrees the constraints are dependent. Nothing is conserved. The board moves along itself,
    with v_theta = u tan(phi) / l and

        u' (m + (J + 2 J_w) tan(phi)^2 / l^2) = -(tan(phi) / l) ((J + 2 J_w) u phi' / (l cos(phi)^2) + torque of the rotor)

    A. Lewis, J. P. Ostrowski, R. M. Murray, J. W. Burdick, Nonholonomic mechanics and locomotion: the snakeboard example,
    Proc. IEEE Int. Conf. Robotics and Automation (1994) 2391-2397.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.snakeboard(), da.GaussLobattoSPARK(stages=2))
        >>> bool(abs(run.residuals["k"]).max() < 1e-14), bool(abs(run.q[-1, 0]) > 0.5)
        (True, True)

    """

    params = {"m": m, "J": J, "J_r": J_r, "J_w": J_w, "l": l, "steering": steering, "rotor": rotor, "frequency": frequency}

    def L(v, m, J, J_r, J_w):  # type: ignore[no-untyped-def]
        turning = J * v[2] ** 2 / 2 + J_r * (v[2] + v[3]) ** 2 / 2 + J_w * (v[2] ** 2 + v[4] ** 2)
        return m * (v[0] ** 2 + v[1] ** 2) / 2 + turning

    def torques(t, J_r, J_w, steering, rotor, frequency):  # type: ignore[no-untyped-def]
        swing = -(frequency**2) * np.sin(frequency * t)
        return [0, 0, 0, J_r * rotor * swing, 2 * J_w * steering * swing]

    def drawing(q: np.ndarray, l: float) -> list[Part]:
        ends = segment(q[:2], q[2], l)
        axes = [segment(end, q[2] + side * q[4] + np.pi / 2, l / 3) for end, side in zip(ends, (-1, 1), strict=True)]
        rotor = segment(q[:2], q[2] + q[3], l / 2)
        return [
            rod(*ends),
            *(rod(*axis, color=BLUE) for axis in axes),
            line(*rotor),
            *(mass(end, 0.08 * l) for end in rotor),
            trace(q[:2]),
        ]

    return Problem(
        name="snakeboard",
        title="snakeboard",
        reference="Lewis, Ostrowski, Murray & Burdick (1994), Proc. IEEE Int. Conf. Robotics and Automation",
        system=Lagrangian(L, dim=5, nonholonomic=lambda q, v, l: steered_axles(q[2], q[4], l, v), force=torques, params=params),
        q0=np.zeros(5),
        v0=np.array([speed, 0.0, 0.0, rotor * frequency, steering * frequency]),
        h=0.1,
        steps=400,
        drawing=drawing,
        labels=("x", "y", "theta", "psi", "phi"),
    )


def car_with_trailer(
    m: float = 1.0,
    J: float = 0.3,
    b: float = 0.5,
    l: float = 1.0,
    m1: float = 0.5,
    J1: float = 0.1,
    d: float = 1.2,
    steering: float = 0.4,
    frequency: float = 1.0,
    speed: float = 1.0,
    fold: float = 0.0,
) -> Problem:
    """Car that coasts with a trailer while its driver steers: three nonholonomic constraints, one of which depends on time.

        q = (x, y, theta, theta1),   (x, y) the middle of the rear axle, theta the car, theta1 the trailer
        0 = -sin(theta) v_x + cos(theta) v_y                                                    (rear axle)
        0 = -sin(theta + phi) v_x + cos(theta + phi) v_y + l cos(phi) v_theta                   (front axle)
        0 = -sin(theta1) v_x + cos(theta1) v_y - d v_theta1                                     (trailer's axle)

    with the steering angle phi(t) = steering sin(frequency t). The car (m, J) has its centre of mass a distance b in front of
    the rear axle, where the trailer (m1, J1) is hooked on by a bar of length d, its mass on its axle. It starts with theta =
    0 at `speed`, folded by theta1 = -`fold`. The constraints depend on time and yet do no work, being homogeneous in v, so
    that energy is conserved: u = sqrt(2 E / M) with, for a = theta - theta1, M = m + (J + m b^2) tan(phi)^2 / l^2 + m1
    cos(a)^2 + J1 sin(a)^2 / d^2. R. M. Murray, S. S. Sastry, Nonholonomic motion planning: steering using sinusoids, IEEE
    Trans. Automat. Control 38 (1993) 700-716.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.car_with_trailer(), da.GaussLobattoSPARK(stages=3))
        >>> bool(abs(run.energy - run.energy[0]).max() < 1e-6), run.psi.shape
        (True, (401, 3))

    """

    def L(q, v, m, J, b, m1, J1, d):  # type: ignore[no-untyped-def]
        car = m * ((v[0] - b * np.sin(q[2]) * v[2]) ** 2 + (v[1] + b * np.cos(q[2]) * v[2]) ** 2) + J * v[2] ** 2
        trailer = m1 * ((v[0] + d * np.sin(q[3]) * v[3]) ** 2 + (v[1] - d * np.cos(q[3]) * v[3]) ** 2) + J1 * v[3] ** 2
        return (car + trailer) / 2

    def axles(t, q, v, l, d, steering, frequency):  # type: ignore[no-untyped-def]
        phi = steering * np.sin(frequency * t)
        return [sideways(q[2], v), sideways(q[2] + phi, v) + l * np.cos(phi) * v[2], sideways(q[3], v) - d * v[3]]

    def drawing(t: float, q: np.ndarray, l: float, d: float, steering: float, frequency: float) -> list[Part]:
        (ahead, left), (ahead_1, left_1), hook = heading(q[2]), heading(q[3]), q[:2]
        front, width = q[2] + steering * np.sin(frequency * t), 0.25 * l
        car = [hook + x * l * ahead + side * width * left for x, side in ((-0.2, -1), (1.3, -1), (1.3, 1), (-0.2, 1))]
        box = [hook - x * d * ahead_1 + side * width * left_1 for x, side in ((0.7, -1), (1.3, -1), (1.3, 1), (0.7, 1))]
        axles = [(hook, left, q[2]), (hook + l * ahead, left, front), (hook - d * ahead_1, left_1, q[3])]
        wheels = [
            rod(*segment(at + side * width * across, direction, 0.12 * l))
            for at, across, direction in axles
            for side in (-1, 1)
        ]
        return [body(*car), body(*box), line(hook, hook - 0.7 * d * ahead_1), *wheels, trace(hook)]

    return Problem(
        name="car_with_trailer",
        title="car with a trailer",
        reference="Murray & Sastry (1993), IEEE Trans. Automat. Control 38",
        system=Lagrangian(
            L,
            dim=4,
            nonholonomic=axles,
            params={"m": m, "J": J, "b": b, "l": l, "m1": m1, "J1": J1, "d": d, "steering": steering, "frequency": frequency},
        ),
        q0=np.array([0.0, 0.0, 0.0, -fold]),
        v0=np.array([speed, 0.0, 0.0, speed * np.sin(fold) / d]),
        h=0.1,
        steps=400,
        conserved={"energy": energy_is_conserved},
        drawing=drawing,
        labels=("x", "y", "theta", "theta1"),
    )


def appell_hamel(m: float = 1.0, g: float = 1.0, a: float = 0.5, speed: float = 1.0, heading: float = 0.4) -> Problem:
    """Appell and Hamel's machine: a weight on a thread that a wheel winds up, with a constraint quadratic in the velocities.

        q = (x, y, z),   L = m v.v / 2 - m g z,   0 = (a^2 (v_x^2 + v_y^2) - v_z^2) / 2

    a is the radius of the drum over that of the wheel, whose mass and frame are neglected. Chetaev's reaction -k_v^T psi does
    no work, because k is homogeneous in v. The weight starts at the origin and falls, v_z = -a u, while the wheel rolls in
    the direction `heading` at u = `speed` > 0; at u = 0 the constraint is singular. `exact`: the direction stays, u' = a g /
    (1 + a^2), and psi = -m u' / (a^2 u), so that the weight falls as if gravity were a^2 g / (1 + a^2). P. Appell, Rend.
    Circ. Mat. Palermo 32 (1911) 48-50; Ju. I. Neimark, N. A. Fufaev, Dynamics of Nonholonomic Systems, AMS 1972.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.appell_hamel()
        >>> run = da.simulate(problem, da.GaussLobattoSPARK(stages=2), h=0.1, steps=20)
        >>> bool(abs(run.q[-1] - problem.exact(2.0)["q"]).max() < 1e-13)
        True

    """
    if not speed > 0:
        raise InputError(f"the constraint of Appell and Hamel is singular at rest: give speed > 0, not {speed:g}")
    system = Lagrangian(
        lambda q, v, m, g: m * (v @ v) / 2 - m * g * q[2],
        dim=3,
        nonholonomic=lambda v, a: [(a**2 * (v[0] ** 2 + v[1] ** 2) - v[2] ** 2) / 2],
        params={"m": m, "g": g, "a": a},
    )
    direction = np.array([np.cos(heading), np.sin(heading), -a])

    def exact(t: Any) -> dict[str, np.ndarray]:
        t = np.asarray(t, dtype=float)[..., None]
        acceleration = a * g / (1 + a**2)
        u = speed + acceleration * t
        q, v = (speed * t + acceleration * t**2 / 2) * direction, u * direction
        return {"q": q, "v": v, "p": m * v, "psi": -m * acceleration / (a**2 * u)}

    return Problem(
        name="appell_hamel",
        title="machine of Appell and Hamel",
        reference="Appell (1911), Rend. Circ. Mat. Palermo 32; Neimark & Fufaev (1972)",
        system=system,
        q0=np.zeros(3),
        v0=speed * direction,
        h=0.05,
        steps=100,
        exact=exact,
        conserved={"energy": energy_is_conserved, "heading": lambda run: np.arctan2(run.v[:, 1], run.v[:, 0])},
        drawing=lambda q: [line([q[0], q[1], 0.0], q), mass(q), trace(q), trace([q[0], q[1], 0.0], color=GREY)],
        labels=("x", "y", "z"),
    )


def _sliding(t: Any, g: float, omega: float, speed: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Direction, speed along it, and centre of a blade that turns uniformly while gravity g pulls along x."""
    theta = omega * np.asarray(t, dtype=float)
    sin, cos = np.sin(theta), np.cos(theta)
    x = speed / omega * sin + g / (2 * omega**2) * sin**2
    y = speed / omega * (1 - cos) + g / omega**2 * (theta / 2 - np.sin(2 * theta) / 4)
    return theta, speed + g / omega * sin, np.stack([x, y], axis=-1)


def _spin_of_points(run: Trajectory) -> np.ndarray:
    """The angular momentum of two equal masses about their centre, (time,)."""
    (x, y), (p_x, p_y) = ((part[:, 2:] - part[:, :2]).T for part in (run.q, run.p))
    return (x * p_y - y * p_x) / 2
