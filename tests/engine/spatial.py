"""Mechanisms of bodies in space with all rows of their revolute joints, redundant ones included.

A body has its centre and either a unit quaternion e, or the columns of a rotation matrix. The joints of a closed loop state
more than is independent: a planar linkage has three rows too many, Bricard's mechanism one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import dalembert as da


@dataclass(frozen=True)
class Body:
    """A rigid body in its assembled pose: inertia about its centre in body axes, which are the columns of `rotation`."""

    mass: float
    inertia: np.ndarray
    centre: np.ndarray
    rotation: np.ndarray


@dataclass(frozen=True)
class Revolute:
    """A revolute joint between two bodies, by number, or a body and the ground, -1, at a point of the assembled pose."""

    first: int
    second: int
    point: np.ndarray
    axis: np.ndarray


def rod(mass: float, a: np.ndarray, b: np.ndarray, width: float) -> Body:
    """A rod with square section from a to b; its first axis lies along it."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    length = np.linalg.norm(b - a)
    along = (b - a) / length
    other = np.cross([0.0, 0.0, 1.0] if abs(along[2]) < 0.9 else [1.0, 0.0, 0.0], along)
    other /= np.linalg.norm(other)
    across = mass * (length**2 + width**2) / 12
    return Body(
        mass, np.diag([mass * width**2 / 6, across, across]), (a + b) / 2, np.stack([along, other, np.cross(along, other)], 1)
    )


def quaternion_of(R: np.ndarray) -> np.ndarray:
    """The unit quaternion of a rotation matrix."""
    values, vectors = np.linalg.eigh(
        np.array([
            [R[0, 0] + R[1, 1] + R[2, 2], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
            [R[2, 1] - R[1, 2], R[0, 0] - R[1, 1] - R[2, 2], R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]],
            [R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], R[1, 1] - R[0, 0] - R[2, 2], R[1, 2] + R[2, 1]],
            [R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], R[2, 2] - R[0, 0] - R[1, 1]],
        ])
    )  # fmt: skip
    assert abs(values[-1] - 3) < 1e-12
    return vectors[:, -1]


def matrix_of(e):
    """The rotation matrix of a unit quaternion."""
    a, b, c, d = e
    return [
        [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
        [2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)],
        [2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d],
    ]


def times(R, u):
    return [sum(R[i][k] * u[k] for k in range(3)) for i in range(3)]


def normals(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors that are orthogonal to an axis and to each other."""
    first = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def joint_rows(bodies: list[Body], joints: list[Revolute], poses) -> list:
    """Five rows a joint, where `poses` are centres and rotation matrices: one point and the directions of one axis coincide."""
    rows = []
    for joint in joints:
        at = []
        for k in (joint.first, joint.second):
            if k < 0:
                at.append(([0.0] * 3, np.eye(3).tolist(), joint.point, np.eye(3)))
            else:
                own = bodies[k].rotation.T
                at.append((*poses[k], own @ (joint.point - bodies[k].centre), own))
        (x, R, s, own), (y, S, u, other) = at
        arm, reach = times(R, s), times(S, u)
        rows += [x[i] + arm[i] - y[i] - reach[i] for i in range(3)]
        axis = times(S, other @ joint.axis)
        for normal in normals(joint.axis):
            turned = times(R, own @ normal)
            rows.append(sum(turned[i] * axis[i] for i in range(3)))
    return rows


class Quaternions:
    """Seven coordinates a body: its centre and e, with e.e = 1 for one more row."""

    size, own_rows = 7, 1

    @staticmethod
    def start(bodies: list[Body]) -> np.ndarray:
        return np.concatenate([np.concatenate([body.centre, quaternion_of(body.rotation)]) for body in bodies])

    @staticmethod
    def velocity(body: Body, v: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """Of a body with this velocity of its centre and angular velocity, both in space."""
        a, *u = quaternion_of(body.rotation)
        return np.concatenate([v, [-np.dot(omega, u) / 2], (a * np.asarray(omega) + np.cross(omega, u)) / 2])

    @staticmethod
    def pose(x):
        return x[:3], matrix_of(x[3:])

    @staticmethod
    def kinetic(body: Body, p, x):
        """p_x^2 / 2m + (G p_e).J^-1 (G p_e) / 8, and (e.p_e)^2 for |e|, which makes H_pp regular."""
        a, b, c, d = x[3:]
        w, r, s, t = p[3:]
        turning = [-b * w + a * r + d * s - c * t, -c * w - d * r + a * s + b * t, -d * w + c * r - b * s + a * t]
        J = np.diag(body.inertia)
        rotation = sum(turning[i] ** 2 / J[i] for i in range(3)) + (a * w + b * r + c * s + d * t) ** 2 / np.mean(J)
        return sum(p[i] ** 2 for i in range(3)) / (2 * body.mass) + rotation / 8

    @staticmethod
    def rows(x) -> list:
        return [x[3] ** 2 + x[4] ** 2 + x[5] ** 2 + x[6] ** 2 - 1]


class Matrices:
    """Twelve coordinates a body: its centre and the columns of R, with R^T R = 1 for six more rows."""

    size, own_rows = 12, 6

    @staticmethod
    def start(bodies: list[Body]) -> np.ndarray:
        return np.concatenate([np.concatenate([body.centre, body.rotation.T.ravel()]) for body in bodies])

    @staticmethod
    def velocity(body: Body, v: np.ndarray, omega: np.ndarray) -> np.ndarray:
        return np.concatenate([v, *(np.cross(omega, body.rotation[:, k]) for k in range(3))])

    @staticmethod
    def pose(x):
        return x[:3], [[x[3 + 3 * k + i] for k in range(3)] for i in range(3)]

    @staticmethod
    def kinetic(body: Body, p, x):
        """With Euler's tensor E = tr(J)/2 - J: the mass matrix is constant."""
        E = np.trace(body.inertia) / 2 - np.diag(body.inertia)
        rotation = sum(p[3 + 3 * k + i] ** 2 / E[k] for k in range(3) for i in range(3))
        return sum(p[i] ** 2 for i in range(3)) / (2 * body.mass) + rotation / 2

    @staticmethod
    def rows(x) -> list:
        columns = [x[3:6], x[6:9], x[9:12]]
        pairs = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
        return [sum(columns[i][k] * columns[j][k] for k in range(3)) - (i == j) for i, j in pairs]


def mechanism(bodies, joints, gravity, form=Quaternions, without=(), more=lambda q: []) -> da.Hamiltonian:
    """The system with all rows, or `without` some of them; `more` adds rows of other joints."""

    def parts(q):
        return [q[form.size * k : form.size * (k + 1)] for k in range(len(bodies))]

    def H(q, p):
        energy = 0.0
        for body, x, own in zip(bodies, parts(q), parts(p), strict=True):
            energy = energy + form.kinetic(body, own, x) - body.mass * sum(gravity[i] * x[i] for i in range(3) if gravity[i])
        return energy

    def rows(q):
        own = [row for x in parts(q) for row in form.rows(x)]
        stated = [*joint_rows(bodies, joints, [form.pose(x) for x in parts(q)]), *more(q)]
        return own + [row for k, row in enumerate(stated) if k not in without]

    return da.Hamiltonian(H, dim=form.size * len(bodies), holonomic=rows)


def four_bar(angle: float = 1.2) -> tuple[list[Body], list[Revolute]]:
    """Crank 0.1 m, coupler 0.35 m and rocker 0.25 m between A = (0, 0) and D = (0.3, 0), 0.2 to 0.6 kg."""
    A, D = np.zeros(3), np.array([0.3, 0.0, 0.0])
    B = 0.1 * np.array([np.cos(angle), np.sin(angle), 0.0])
    C = meeting_point(B, D, 0.35, 0.25)
    z = np.array([0.0, 0.0, 1.0])
    bodies = [rod(0.2, A, B, 0.01), rod(0.6, B, C, 0.01), rod(0.4, D, C, 0.01)]
    return bodies, [Revolute(-1, 0, A, z), Revolute(0, 1, B, z), Revolute(1, 2, C, z), Revolute(-1, 2, D, z)]


def meeting_point(B: np.ndarray, D: np.ndarray, r: float, s: float) -> np.ndarray:
    """The upper point at distance r from B and s from D, in the plane z = 0."""
    distance = np.linalg.norm(D - B)
    along = (D - B) / distance
    x = (distance**2 + r**2 - s**2) / (2 * distance)
    return B + x * along + np.sqrt(r**2 - x**2) * np.array([-along[1], along[0], 0.0])


def bricard() -> tuple[list[Body], list[Revolute]]:
    """Five rods of 1 m and 1 kg, square section 0.1 m; axes y, z, x, y, z, x at P0 ... P5, the ends on the ground."""
    P = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], dtype=float)
    bodies = [rod(1.0, P[k], P[k + 1], 0.1) for k in range(5)]
    axes = np.eye(3)[[1, 2, 0, 1, 2, 0]]
    pairs = [(-1, 0), (0, 1), (1, 2), (2, 3), (3, 4), (4, -1)]
    return bodies, [Revolute(*pair, P[k], axes[k]) for k, pair in enumerate(pairs)]


def slider_crank(angle: float = 0.7) -> tuple[list[Body], list[Revolute]]:
    """Crank 0.1 m, rod 0.35 m, and a slider of 0.5 kg on the x axis, whose guide is stated apart (`guide`)."""
    A, B = np.zeros(3), 0.1 * np.array([np.cos(angle), np.sin(angle), 0.0])
    C = np.array([B[0] + np.sqrt(0.35**2 - B[1] ** 2), 0.0, 0.0])
    z = np.array([0.0, 0.0, 1.0])
    slider = Body(0.5, np.diag([2e-4, 3e-4, 3e-4]), C, np.eye(3))
    bodies = [rod(0.2, A, B, 0.01), rod(0.4, B, C, 0.01), slider]
    return bodies, [Revolute(-1, 0, A, z), Revolute(0, 1, B, z), Revolute(1, 2, C, z)]


def guide(q) -> list:
    """The slider of `slider_crank`, a body with a quaternion, moves along x and does not turn."""
    return [q[15], q[16], q[18], q[19], q[20]]


def spun(bodies: list[Body], centres, angles, speed: float, form=Quaternions) -> np.ndarray:
    """Velocities of a planar mechanism whose crank turns with this speed; `centres`, `angles` are rates per crank angle."""
    parts = [
        form.velocity(body, np.array([*(speed * np.asarray(v)), 0.0]), np.array([0.0, 0.0, speed * w]))
        for body, v, w in zip(bodies, centres, angles, strict=True)
    ]
    return np.concatenate(parts)
