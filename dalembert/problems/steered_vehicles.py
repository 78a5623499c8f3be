"""Vehicles that are steered, by turning their axles or by leaning: snakeboard, car with trailer, skateboard.

Reactions are -k_v^T psi."""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw import Part, body, line, mass, rod, trace
from dalembert.draw._parts import BLUE
from dalembert.errors import InputError
from dalembert.problems._geometry import heading, segment, sideways, steered_axles
from dalembert.runs._problem import Problem, energy_is_conserved
from dalembert.systems import Lagrangian


def snakeboard(
    m: float = 1.0, J: float = 0.03, J_r: float = 0.02, J_w: float = 0.005, l: float = 0.25, steering: float = 0.5,
    rotor: float = 0.7, frequency: float = 1.0, speed: float = 0.0,
) -> Problem:  # fmt: skip
    """Snakeboard: a board on two steered axles that moves by turning a rotor to and fro.

        q = (x, y, theta, psi, phi),   theta the board; psi the rotor and +-phi the axles, against the board
        L = m (v_x^2 + v_y^2) / 2 + J v_theta^2 / 2 + J_r (v_theta + v_psi)^2 / 2 + J_w (v_theta^2 + v_phi^2)
        0 = -sin(theta + phi) v_x + cos(theta + phi) v_y + l cos(phi) v_theta                   (front axle)
        0 = -sin(theta - phi) v_x + cos(theta - phi) v_y - l cos(phi) v_theta                   (back axle)

    l is half the distance of the axles. The torques `-2 J_w steering w^2 sin(w t)` and `-J_r rotor w^2 sin(w t)`, w =
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

    def L(v: Any, m: Any, J: Any, J_r: Any, J_w: Any) -> Any:
        turning = J * v[2] ** 2 / 2 + J_r * (v[2] + v[3]) ** 2 / 2 + J_w * (v[2] ** 2 + v[4] ** 2)
        return m * (v[0] ** 2 + v[1] ** 2) / 2 + turning

    def torques(t: Any, J_r: Any, J_w: Any, steering: Any, rotor: Any, frequency: Any) -> Any:
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
    m: float = 1.0, J: float = 0.3, b: float = 0.5, l: float = 1.0, m1: float = 0.5, J1: float = 0.1, d: float = 1.2,
    steering: float = 0.4, frequency: float = 1.0, speed: float = 1.0, fold: float = 0.0,
) -> Problem:  # fmt: skip
    """Car that coasts with a trailer while its driver steers: three nonholonomic constraints, one of which depends on time.

        q = (x, y, theta, theta1),   (x, y) the middle of the rear axle, theta the car, theta1 the trailer
        0 = -sin(theta) v_x + cos(theta) v_y                                                    (rear axle)
        0 = -sin(theta + phi) v_x + cos(theta + phi) v_y + l cos(phi) v_theta                   (front axle)
        0 = -sin(theta1) v_x + cos(theta1) v_y - d v_theta1                                     (trailer's axle)

    with the steering angle `phi(t) = steering sin(frequency t)`. The car (m, J) has its centre of mass a distance b in front of
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

    def L(q: Any, v: Any, m: Any, J: Any, b: Any, m1: Any, J1: Any, d: Any) -> Any:
        car = m * ((v[0] - b * np.sin(q[2]) * v[2]) ** 2 + (v[1] + b * np.cos(q[2]) * v[2]) ** 2) + J * v[2] ** 2
        trailer = m1 * ((v[0] + d * np.sin(q[3]) * v[3]) ** 2 + (v[1] - d * np.cos(q[3]) * v[3]) ** 2) + J1 * v[3] ** 2
        return (car + trailer) / 2

    def axles(t: Any, q: Any, v: Any, l: Any, d: Any, steering: Any, frequency: Any) -> Any:
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


def skateboard(
    m: float = 1.0, l: float = 1.0, J: float = 0.1, I: float = 0.2, a: float = 0.5, k: float = 0.4, g: float = 1.0,
    pivot: float = 0.7, lean: float = 0.2, lean_rate: float = 0.0, speed: float = 1.5,
) -> Problem:  # fmt: skip
    """Skateboard with a stiff rider, which steers where it leans: two nonholonomic constraints.

        q = (x, y, theta, gamma),   (x, y) the middle of the board, theta its direction, gamma its lean to the left
        L = m |v_G|^2 / 2 + J v_gamma^2 / 2 + I v_theta^2 / 2 - k gamma^2 / 2 - m g l cos(gamma)
        0 = -sin(theta + d) v_x + cos(theta + d) v_y + a cos(d) v_theta                         (front axle)
        0 = -sin(theta - d) v_x + cos(theta - d) v_y - a cos(d) v_theta                         (back axle)

    with tan(d) = tan(pivot) sin(gamma), because the trucks turn about axes inclined by `pivot`. The rider's mass stands a
    height l above the board, G = (x, y, 0) + l (-sin(gamma) sin(theta), sin(gamma) cos(theta), cos(gamma)); a is half the
    distance of the axles and k the stiffness of the trucks. Riding straight is stable if k + m l u^2 tan(pivot) / a > m g l:
    faster boards need less stiff trucks. M. Hubbard, Lateral dynamics and stability of the skateboard, J. Appl. Mech. 46 (1979)
    931-936; A. V. Kremnev, A. S. Kuleshov, Nonlinear dynamics and stability of the skateboard, Discrete Contin. Dyn. Syst. S 3
    (2010) 85-103.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.skateboard(), da.SRK("gauss", stages=2))
        >>> bool(abs(run.q[:, 3]).max() < 0.25), bool(abs(run.energy - run.energy[0]).max() < 1e-8)
        (True, True)

    """

    def L(q: Any, v: Any, m: Any, l: Any, J: Any, I: Any, k: Any, g: Any) -> Any:
        along = np.cos(q[2]) * v[0] + np.sin(q[2]) * v[1] - l * np.sin(q[3]) * v[2]
        across = -np.sin(q[2]) * v[0] + np.cos(q[2]) * v[1] + l * np.cos(q[3]) * v[3]
        kinetic = m * (along**2 + across**2 + (l * np.sin(q[3]) * v[3]) ** 2) + J * v[3] ** 2 + I * v[2] ** 2
        return kinetic / 2 - k * q[3] ** 2 / 2 - m * g * l * np.cos(q[3])

    def axles(q: Any, v: Any, a: Any, pivot: Any) -> Any:
        d = np.arctan(np.tan(pivot) * np.sin(q[3]))
        return steered_axles(q[2], d, a, v)

    def drawing(q: np.ndarray, l: float, a: float) -> list[Part]:
        x, y, theta, gamma = q
        along, across = (np.array([*direction, 0.0]) for direction in heading(theta))
        middle, up = np.array([x, y, 0.0]), np.array([0.0, 0.0, 1.0])
        head = middle + l * (np.sin(gamma) * across + np.cos(gamma) * up)
        side = 0.3 * a * (np.cos(gamma) * across - np.sin(gamma) * up)
        ends = [middle - 1.3 * a * along, middle + 1.3 * a * along]
        board = body(ends[0] - side, ends[1] - side, ends[1] + side, ends[0] + side)
        return [board, rod(middle, head), mass(head), trace(middle)]

    if abs(pivot) >= np.pi / 2:
        raise InputError(f"the pivot axes of the trucks must be less inclined than pi/2; got pivot = {pivot:g}")
    return Problem(
        name="skateboard",
        title="skateboard with a stiff rider",
        reference="Hubbard (1979), J. Appl. Mech. 46; Kremnev & Kuleshov (2010), Discrete Contin. Dyn. Syst. S 3",
        system=Lagrangian(
            L, dim=4, nonholonomic=axles, params={"m": m, "l": l, "J": J, "I": I, "a": a, "k": k, "g": g, "pivot": pivot}
        ),
        q0=np.array([0.0, 0.0, 0.0, lean]),
        v0=np.array([speed, 0.0, speed * np.tan(pivot) * np.sin(lean) / a, lean_rate]),
        h=0.05,
        steps=400,
        conserved={"energy": energy_is_conserved},
        drawing=drawing,
        labels=("x", "y", "theta", "gamma"),
    )
