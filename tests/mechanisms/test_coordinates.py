"""The same mechanism in planar, quaternion and matrix coordinates moves the same, and as in coordinates of other kinds."""

from __future__ import annotations

from itertools import combinations

import casadi as ca
import numpy as np
import pytest
from compositions import ORDER_4, ORDER_6
from references import Minimal, bar, circles

import dalembert as da


def test_heavy_top_as_in_rotation_matrices():
    """The catalogue's heavy top has a rotation matrix for coordinates; a spherical joint does the same to a body."""
    tilt, spin, precession = 0.5, 6.0, 0.4
    constants = {"m": 0.7, "g": 9.81, "l": 0.3, "I1": 0.02, "I2": 0.02, "I3": 0.015}
    problem = da.problems.heavy_top(**constants, inclination=tilt, spin=spin, precession=precession, translation=True)
    m = da.Mechanism(gravity=(0, 0, -9.81))
    R = problem.q0[3:].reshape(3, 3)
    top = m.body("top", mass=0.7, inertia=(0.02, 0.02, 0.015), at=problem.q0[:3], rotation=R)
    m.spherical(m.ground, top, at=(0, 0, 0))
    omega = R @ [0.0, precession * np.sin(tilt), spin]
    run = da.simulate(m, ORDER_6, start=m.start(angular_velocities={top: omega}), h=0.005, steps=200)
    other = da.simulate(problem, ORDER_6, h=0.005, steps=200)
    np.testing.assert_allclose(run.of(top).position, other.q[:, :3], atol=1e-8)
    np.testing.assert_allclose(run.of(top).rotation, other.q[:, 3:].reshape(-1, 3, 3), atol=1e-7)


@pytest.mark.parametrize("coordinates", ["planar", "quaternion", "matrix", "mixed"])
def test_same_linkage_in_all_coordinates(coordinates):
    """A four-bar in the plane and in space, where three of its rows are redundant, by the angle of its crank."""
    q = ca.SX.sym("q", 1)
    A, D, B = ca.SX([0, 0]), ca.SX([0.3, 0]), 0.1 * ca.vertcat(ca.cos(q), ca.sin(q))
    C = circles(B, D, 0.35, 0.25, 1)
    bodies = [bar(m, P, Q, r, 0.01) for m, P, Q, r in ((0.2, A, B, 0.1), (0.6, B, C, 0.35), (0.4, D, C, 0.25))]
    reference = Minimal(q, bodies, (0, -9.81, 0))
    kinds = ("planar", "quaternion", "matrix") if coordinates == "mixed" else (coordinates,) * 3
    m = da.Mechanism(gravity=(0, -9.81))
    at = {name: np.asarray(ca.evalf(ca.substitute(x, q, 1.2)))[:, 0] for name, x in zip("ABCD", (A, B, C, D), strict=True)}
    links = ((0.2, "A", "B"), (0.6, "B", "C"), (0.4, "D", "C"))
    rods = [
        m.rod(P + Q, at[P], at[Q], mass=mass, width=0.01, coordinates=kind)
        for kind, (mass, P, Q) in zip(kinds, links, strict=True)
    ]
    pairs = ((m.ground, rods[0]), (rods[0], rods[1]), (rods[1], rods[2]), (m.ground, rods[2]))
    hinges = [m.revolute(*pair, at=at[P]) for pair, P in zip(pairs, "ABCD", strict=True)]
    run = da.simulate(m, ORDER_4, start=m.start(rates={hinges[0]: 8.0}), h=5e-4, t1=0.5, save_every=100)
    angle, centres = reference.motion([1.2], [8.0], run.t)
    np.testing.assert_allclose(run.of(hinges[0]).angle, angle[:, 0] - 1.2, atol=1e-8)
    for k, rod in enumerate(rods):
        np.testing.assert_allclose(run.of(rod).position, centres[:, k], atol=1e-9)
    assert run.lam_unique == (coordinates == "planar")
    given = dict(start=m.start(rates={hinges[0]: 8.0}), t1=0.5)
    coarse = [da.simulate(m, ORDER_4, h=0.5 / n, save_every=n // 5, **given) for n in (125, 250, 500)]
    angle, centres = reference.motion([1.2], [8.0], coarse[0].t)
    for measured, exact in (
        (lambda r: r.of(hinges[0]).angle, angle[:, 0] - 1.2),
        (lambda r: r.of(rods[1]).position, centres[:, 1]),
    ):
        errors = [np.max(np.abs(measured(r) - exact)) for r in coarse]
        np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 4, atol=0.3)


def slopes_of_differences(runs):
    """log2 of the ratios by which two lists of positions or velocities, from steps that are halved, come closer."""
    differences = [np.max(np.abs(one - other)) for one, other in zip(*runs, strict=True)]
    assert differences[0] < 0.01 * np.max(np.abs(runs[0][0]))
    return np.log2(np.divide(differences[:-1], differences[1:]))


def double_rod(coordinates):
    """Two rods under each other, with a spring between them: 20 and 30 cm, 0.2 and 0.35 kg."""
    m = da.Mechanism(gravity=(0, -9.81), coordinates=coordinates)
    upper = m.rod("upper", (0, 0), (0.12, -0.16), mass=0.2, width=0.01)
    lower = m.rod("lower", (0.12, -0.16), (0.42, -0.16), mass=0.35, width=0.01)
    pivot = m.revolute(m.ground, upper, at=(0, 0))
    m.torsion(m.revolute(upper, lower, at=(0.12, -0.16)), stiffness=0.3)
    return m, m.start(rates={pivot: 3.0}), lower, 0.4


def swinging_shaft(coordinates):
    """A shaft of 0.5 kg in a universal joint, and a plate of 0.3 kg that hangs at its end in a spherical one."""
    m = da.Mechanism(gravity=(0, 0, -9.81), coordinates=coordinates)
    shaft = m.rod("shaft", (0, 0, 0), (0.3, 0, 0), mass=0.5, width=0.03)
    plate = m.body("plate", mass=0.3, shape=da.mechanisms.Box(0.1, 0.16, 0.02), at=(0.3, 0.05, -0.1))
    m.universal(m.ground, shaft, at=(0, 0, 0), axes=((0, 1, 0), (0, 0, 1)))
    m.spherical(shaft, plate, at=(0.3, 0, 0))
    return m, m.start(angular_velocities={plate: (2.0, -1.0, 5.0)}), plate, 0.3


@pytest.mark.parametrize(
    ("mechanism", "method", "steps", "kinds"),
    [
        (double_rod, da.Rattle(), 80, ("planar", "quaternion", "matrix")),
        (double_rod, LOBATTO_3 := da.LobattoIIIAB(3), 20, ("planar", "quaternion", "matrix")),
        (swinging_shaft, LOBATTO_3, 30, ("quaternion", "matrix")),
    ],
)
def test_coordinates_differ_by_the_order_of_the_method(mechanism, method, steps, kinds):
    """Each choice of coordinates has errors of its own, so that what two of them differ by falls with h^order, q and v."""
    found = {}
    for kind in kinds:
        m, start, body, t1 = mechanism(kind)
        runs = [da.simulate(m, method, start=start, h=t1 / n, steps=n, save_every=n) for n in (steps, 2 * steps, 4 * steps)]
        for what in ("position", "velocity", "angular_velocity"):
            found[kind, what] = [getattr(run.of(body), what)[-1] for run in runs]
    for kind, other in combinations(kinds, 2):
        for what, of in (("position", "q"), ("velocity", "p"), ("angular_velocity", "p")):
            slopes = slopes_of_differences([found[kind, what], found[other, what]])
            np.testing.assert_allclose(slopes, method.order[of], atol=0.2, err_msg=f"{kind}, {other}, {what}")
