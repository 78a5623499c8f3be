"""Machines of bodies and joints, stated with `da.Mechanism`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dalembert.draw import mechanism
from dalembert.mechanisms import Box, Cylinder, Mechanism, Sphere
from dalembert.runs._problem import Problem, energy_is_conserved
from dalembert.systems import State

ENERGY: Mapping[str, Callable] = {"energy": energy_is_conserved}


def machine(m: Mechanism, start: State, name: str, title: str, reference: str, h: float, steps: int, **more: Any) -> Problem:
    """The problem of a mechanism that starts in a pose of its own."""
    return Problem(
        name,
        title,
        reference,
        m.system(),
        q0=start.q,
        v0=start.v,  # not p0: rates stay what they are when masses change
        h=h,
        steps=steps,
        drawing=mechanism(m),
        labels=m.labels,
        **more,
    )


def slider_crank(
    m_crank: float = 0.2, m_rod: float = 0.4, m_slider: float = 0.5, g: float = 9.81, angle: float = 0.7, rate: float = 8.0
) -> Problem:
    """Slider-crank: a crank of 0.1 m and a rod of 0.35 m drive a slider along x; planar bodies in (x, y, theta).

    The crank starts at `angle` from the x axis and turns at `rate`. Redundant joints: none in the plane.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.slider_crank(), da.LobattoIIIAB(stages=3), steps=200)
        >>> bool(abs(run.energy - run.energy[0]).max() < 1e-6)
        True

    """
    m = Mechanism(
        gravity=lambda g: (0.0, -g),
        coordinates="planar",
        params={"m_crank": m_crank, "m_rod": m_rod, "m_slider": m_slider, "g": g},
    )
    B, C = np.array([0.0, 0.1]), np.array([np.sqrt(0.35**2 - 0.1**2), 0.0])
    crank, rod = m.rod("crank", (0, 0), B, mass="m_crank", width=0.01), m.rod("rod", B, C, mass="m_rod", width=0.01)
    slider = m.body("slider", mass="m_slider", shape=Box(0.06, 0.04, 0.04), at=C)
    drive = m.revolute(m.ground, crank, at=(0, 0), angle=np.pi / 2)
    m.revolute(crank, rod, at=B)
    m.revolute(rod, slider, at=C)
    m.prismatic(m.ground, slider, axis=(1, 0))
    start = m.start(angles={drive: angle}, rates={drive: rate})
    title, reference = "slider-crank", "Garcia de Jalon & Bayo (1994)"
    return machine(m, start, "slider_crank", title, reference, 0.002, 1000, conserved=ENERGY)


def andrews_squeezer(mom: float = 0.033, c0: float = 4530.0, l0: float = 0.07785) -> Problem:
    """Andrews' squeezing mechanism: seven planar bodies in three closed loops, driven by the constant torque `mom`.

    A spring of stiffness `c0` and natural length `l0` pulls at the third body. There is no gravity. R. Giles, Ph.D. thesis
    (1978); D. Manning (1981); E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, section VII.7; problem A03 of
    the library of computational benchmarks of IFToMM.

    Example:
        >>> import dalembert as da
        >>> da.problems.andrews_squeezer().system
        <Hamiltonian of 21 coordinates, 20 holonomic constraints, params mom, c0, l0>

    """
    m = Mechanism(coordinates="planar", params={"mom": mom, "c0": c0, "l0": l0})
    A, B, C = np.array([-0.06934, -0.00227]), np.array([-0.03635, 0.03273]), np.array([0.014, 0.072])
    beta, gamma, phi, delta, epsilon = SQUEEZER_ANGLES
    along, across = lambda x: np.array([np.cos(x), np.sin(x)]), lambda x: np.array([np.sin(x), -np.cos(x)])
    F, G, H = 0.007 * along(beta), A + 0.04 * along(delta), A + 0.04 * across(epsilon)
    E = F - 0.028 * along(beta)
    centres = [
        0.00092 * along(beta), F - 0.0115 * along(beta), B + 0.01874 * across(gamma) + 0.01043 * along(gamma),
        G + (0.02 - 0.01421) * across(phi + delta), A + 0.02308 * along(delta) - 0.00916 * across(delta),
        H + (0.02 - 0.01421) * along(epsilon - phi), A + 0.01228 * across(epsilon) - 0.00449 * along(epsilon),
    ]  # fmt: skip
    weights = zip(SQUEEZER, centres, strict=True)
    K = [m.body(f"K{i + 1}", mass=mass, inertia=J, at=x) for i, ((mass, J), x) in enumerate(weights)]
    drive = m.revolute(m.ground, K[0], at=(0, 0), angle=beta)
    joints = [(K[0], K[1], F), (m.ground, K[2], B), (K[1], K[2], E), (K[1], K[3], E), (K[1], K[5], E), (K[3], K[4], G)]
    for first, second, place in [*joints, (K[5], K[6], H), (m.ground, K[4], A), (m.ground, K[6], A)]:
        m.revolute(first, second, at=place)
    D = B + 0.018 * across(gamma) + 0.02 * along(gamma)
    m.spring(m.ground, K[2], at=(C, D), stiffness="c0", length="l0")
    m.motor(drive, lambda mom: mom)
    title = "Andrews' squeezing mechanism"
    return machine(m, m.start(), "andrews_squeezer", title, "Hairer & Wanner II (1996), section VII.7; IFToMM A03", 3e-5, 1000)


SQUEEZER_ANGLES = (
    -0.0617138900142764496, 0.455279819163070380, 0.222668390165885885, 0.487364979543842550, 1.23054744454982119
)  # fmt: skip
"""beta, gamma, phi, delta and epsilon at the start; Theta is zero."""
SQUEEZER = (
    (0.04325, 2.194e-6), (0.00365, 4.410e-7), (0.02373, 5.255e-6), (0.00706, 5.667e-7), (0.07050, 1.169e-5),
    (0.00706, 5.667e-7), (0.05498, 1.912e-5),
)  # fmt: skip
"""Mass and moment of inertia of each body."""


def two_four_bars(g: float = 9.81, speed: float = 1.0) -> Problem:
    """Two four-bar linkages in a row: five equal links of 1 m and 1 kg that move as a parallelogram, from the upright position.

    The upper joints start with `speed`. The angle th from the vertical obeys 3 th'' = 3.5 g sin(th). Where the links lie flat
    the constraints lose rank, and the momentum decides how the motion goes on. Problem A02 of the library of computational
    benchmarks of IFToMM, with N = 2 as in OpenSim's version.

    Example:
        >>> import dalembert as da
        >>> da.problems.two_four_bars().system
        <Hamiltonian of 15 coordinates, 14 holonomic constraints, params g>

    """
    m = Mechanism(gravity=lambda g: (0.0, -g), coordinates="planar", params={"g": g})
    cranks = [m.rod(f"crank {i + 1}", (i, 0), (i, 1), mass=1.0) for i in range(3)]
    hinges = [m.revolute(m.ground, crank, at=(i, 0)) for i, crank in enumerate(cranks)]
    for i in range(2):
        coupler = m.rod(f"coupler {i + 1}", (i, 1), (i + 1, 1), mass=1.0)
        m.revolute(cranks[i], coupler, at=(i, 1))
        m.revolute(coupler, cranks[i + 1], at=(i + 1, 1))
    start = m.start(rates={hinges[0]: -speed})
    reference = "IFToMM A02; Gonzalez, Dopico, Lugris, Cuadrado (2006)"
    return machine(m, start, "two_four_bars", "two four-bar linkages", reference, 0.01, 1000, conserved=ENERGY)


def bricard(g: float = 9.81) -> Problem:
    """Bricard's mechanism: a loop of five rods and six hinges in space that moves although no count of constraints says so.

    Rods of 1 m and 1 kg with a square section of 0.1 m, axes y, z, x, y, z, x; gravity along -y; released at rest. One of the
    30 rows of its hinges is redundant. Problem A04 of the library of computational benchmarks of IFToMM.

    Example:
        >>> import dalembert as da
        >>> da.problems.bricard().system
        <Hamiltonian of 35 coordinates, 35 holonomic constraints, params g>

    """
    m = Mechanism(gravity=lambda g: (0.0, -g, 0.0), params={"g": g})
    P = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float)
    rods = [m.rod(f"rod {k + 1}", P[k], P[k + 1], mass=1.0, width=0.1) for k in range(5)]
    for k, axis in enumerate(np.eye(3)[[1, 2, 0, 1, 2, 0]]):
        m.revolute(m.ground if k == 0 else rods[k - 1], m.ground if k == 5 else rods[k], at=P[k], axis=axis)
    reference = "Bricard (1897); IFToMM A04"
    return machine(m, m.start(), "bricard", "Bricard's mechanism", reference, 0.005, 2000, conserved=ENERGY)


def gyroscope(
    m_rotor: float = 0.5, g: float = 9.81, tilt: float = 0.3, spin: float = 150.0, precession: float = 0.0
) -> Problem:
    """Gyroscope on an arm: a post that turns about the vertical carries a hinged arm, at whose end a rotor spins about it.

    The arm of 0.2 m starts at the angle `tilt` above the horizontal.

    Example:
        >>> import dalembert as da
        >>> da.problems.gyroscope().labels[:3]
        ('post.x', 'post.y', 'post.z')

    """
    m = Mechanism(gravity=lambda g: (0.0, 0.0, -g), params={"m_rotor": m_rotor, "g": g})
    post = m.body("post", mass=0.1, shape=Cylinder(0.02, 0.1))
    arm = m.rod("arm", (0, 0, 0), (0.2, 0, 0), mass=0.05, width=0.01)
    facing = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], dtype=float)  # its axis along x
    rotor = m.body("rotor", mass="m_rotor", shape=Cylinder(0.06, 0.02), at=(0.2, 0, 0), rotation=facing)
    turning = m.revolute(m.ground, post, at=(0, 0, 0), axis=(0, 0, 1))
    lifting = m.revolute(post, arm, at=(0, 0, 0), axis=(0, -1, 0))
    spinning = m.revolute(arm, rotor, at=(0.2, 0, 0), axis=(1, 0, 0))
    start = m.start(angles={lifting: tilt}, rates={spinning: spin, turning: precession, lifting: 0.0})
    title, reference = "gyroscope on an arm", "Goldstein, Poole, Safko (2002), chapter 5"
    return machine(m, start, "gyroscope", title, reference, 0.002, 1000, conserved=ENERGY)


def whipple_bicycle(g: float = 9.81, speed: float = 5.0, push: float = 0.05) -> Problem:
    """The Whipple bicycle: two wheels that roll without slipping, a frame with its rider, and a fork; nobody steers.

    It starts upright with `speed` and the lean rate `push`, and rights itself between 4.292 and 6.024 m/s. Constants of the
    benchmark of J. P. Meijaard, J. M. Papadopoulos, A. Ruina, A. L. Schwab, Proc. R. Soc. A 463 (2007) 1955-1982, with z up.

    Example:
        >>> import dalembert as da
        >>> da.problems.whipple_bicycle().system
        <Hamiltonian of 28 coordinates, 21 holonomic constraints, 4 nonholonomic constraints, params g>

    """
    m = Mechanism(gravity=lambda g: (0.0, 0.0, -g), params={"g": g})
    J = lambda xx, yy, zz, xz=0.0: [[xx, 0.0, -xz], [0.0, yy, 0.0], [-xz, 0.0, zz]]  # noqa: E731
    rear = m.body("rear wheel", mass=2.0, inertia=J(0.0603, 0.12, 0.0603), at=(0, 0, 0.3))
    frame = m.body("frame", mass=85.0, inertia=J(9.2, 11.0, 2.8, 2.4), at=(0.3, 0, 0.9))
    fork = m.body("fork", mass=4.0, inertia=J(0.05892, 0.06, 0.00708, -0.00756), at=(0.9, 0, 0.7))
    front = m.body("front wheel", mass=3.0, inertia=J(0.1405, 0.28, 0.1405), at=(1.02, 0, 0.35))
    m.revolute(frame, fork, at=(1.1, 0, 0), axis=(np.sin(np.pi / 10), 0, -np.cos(np.pi / 10)), name="steer")
    axle = m.revolute(frame, rear, at=rear.centre, axis=(0, 1, 0), name="rear axle")
    m.revolute(fork, front, at=front.centre, axis=(0, 1, 0), name="front axle")
    m.wheel(rear, radius=0.3, axis=(0, 1, 0))
    m.wheel(front, radius=0.35, axis=(0, 1, 0))
    start = m.start(rates={axle: speed / 0.3}, angular_velocities={frame: (push, 0, 0)})
    reference = "Meijaard et al. (2007), Proc. R. Soc. A 463"
    return machine(m, start, "whipple_bicycle", "Whipple bicycle", reference, 0.01, 1000, conserved=ENERGY)


def ball_on_slope(m: float = 0.2, g: float = 9.81, slope: float = 0.3, across: float = 0.4) -> Problem:
    """Ball of radius 0.1 m that rolls on an inclined plane: its centre falls with 5/7 of the acceleration along the slope.

    It starts with the velocity `across` the slope, so that its path is a parabola.

    Example:
        >>> import dalembert as da
        >>> da.problems.ball_on_slope().system
        <Hamiltonian of 7 coordinates, 2 holonomic constraints, 2 nonholonomic constraints, params m, g, slope>

    """
    params = {"m": m, "g": g, "slope": slope}
    plane = Mechanism(gravity=lambda g, slope: (g * np.sin(slope), 0.0, -g * np.cos(slope)), params=params)
    ball = plane.body("ball", mass="m", shape=Sphere(0.1), at=(0, 0, 0.1))
    plane.ball(ball, radius=0.1)
    start = plane.start(velocities={ball: (0, across, 0)})

    def exact(t: Any) -> dict[str, np.ndarray]:
        t = np.asarray(t, dtype=float)
        return {"centre": np.stack([5 / 14 * g * np.sin(slope) * t**2, across * t, 0.1 + 0 * t], axis=-1)}

    reference = "Routh (1905), Advanced Dynamics, section 189"
    return machine(plane, start, "ball_on_slope", "ball on a slope", reference, 0.01, 200, exact=exact, conserved=ENERGY)


def flyball_governor(g: float = 9.81, stiffness: float = 8e5, damping: float = 4e4, spin: float = 2 * np.pi) -> Problem:
    """Stiff flyball governor: a spinning shaft lifts two rods with 5 kg at their ends, tied to a slider by springs and dampers.

    Shaft and rods are 1 m long with a section of 1 cm, the slider is a cube of 10 cm, all of density 3000. The rods hang from
    (+-0.05, 0, 1), 30 degrees below the horizontal; springs of natural length 0.5 m lead from the slider to their middles.
    Problem A05 of the library of computational benchmarks of IFToMM.

    Example:
        >>> import dalembert as da
        >>> da.problems.flyball_governor().system
        <Hamiltonian of 34 coordinates, 30 holonomic constraints, params g, stiffness, damping>

    """
    params = {"g": g, "stiffness": stiffness, "damping": damping}
    m = Mechanism(gravity=lambda g: (0.0, 0.0, -g), params=params)
    shaft = m.rod("shaft", (0, 0, 0), (0, 0, 1), density=3000.0, width=0.01)
    slider = m.body("slider", shape=Box(0.1, 0.1, 0.1), density=3000.0, at=(0, 0, 0.5))
    turning = m.revolute(m.ground, shaft, at=(0, 0, 0), axis=(0, 0, 1))
    m.prismatic(shaft, slider, axis=(0, 0, 1), displacement=0.5, name="slide")
    for side in (1, -1):
        hinge, end = np.array([0.05 * side, 0, 1.0]), np.array([side * (0.05 + np.cos(np.pi / 6)), 0, 0.5])
        rod = m.rod(None, hinge, end, density=3000.0, width=0.01)
        m.revolute(shaft, rod, at=hinge, axis=(0, side, 0))
        m.spherical(rod, m.point(mass=5.0, at=end), at=end)
        ends = ((0.05 * side, 0, 0.5), rod.centre)
        m.spring(slider, rod, at=ends, stiffness="stiffness", length=0.5, damping="damping")
    start = m.start(rates={turning: spin})
    return machine(m, start, "flyball_governor", "stiff flyball governor", "IFToMM A05", 2e-4, 1000)
