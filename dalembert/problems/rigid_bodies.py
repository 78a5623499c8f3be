"""Rigid bodies whose coordinates are the entries of a rotation matrix.

R maps body to space; its columns r_1, r_2, r_3 are the principal axes. With the coefficients of inertia
d_j = (I_1 + I_2 + I_3)/2 - I_j, so that I_1 = d_2 + d_3 and so on, and D = diag(d_1, d_2, d_3),

    T = tr(R' D R'^T) / 2 = sum d_j |r_j'|^2 / 2,   P = R' D,   0 = R^T R - I (upper triangle: 6 constraints)

and rotations of space and of the body become linear, so that their momentum maps are bilinear in (R, P), and symplectic
partitioned Runge-Kutta methods keep them.
E. Hairer, Ch. Lubich, G. Wanner, Geometric Numerical Integration, Springer 2006, VII.5.
"""

# ruff: noqa: E741 (l and I are the letters of the literature)

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.draw import Part, body, disc, line, rod, trace
from dalembert.errors import InputError
from dalembert.runs._problem import Problem, energy_is_conserved
from dalembert.systems import Hamiltonian

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory

ENTRIES = tuple(f"R{i}{j}" for i in "123" for j in "123")


def _coefficients(I1: Any, I2: Any, I3: Any) -> list[Any]:
    """d_1, d_2, d_3 from the principal moments of inertia; numbers or symbols."""
    return [(I1 + I2 + I3) / 2 - moment for moment in (I1, I2, I3)]


def _check_inertia(I1: float, I2: float, I3: float) -> None:
    if not min(_coefficients(I1, I2, I3)) > 0:
        raise InputError(
            f"the moments of inertia I1 = {I1:g}, I2 = {I2:g}, I3 = {I3:g} are not those of a solid body: "
            "each must be less than the sum of the other two"
        )


def _orthonormal(R: Any) -> list[Any]:
    """The upper triangle of R^T R - I."""
    return [R[:, i] @ R[:, j] - (1.0 if i == j else 0.0) for i in range(3) for j in range(i, 3)]


def _hat(w: np.ndarray) -> np.ndarray:
    """The matrix of the map x -> w x x."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def _spatial_angular_momentum(run: Trajectory) -> np.ndarray:
    """The sum of r_j x p_j over the columns of R and P, and of x x p_x where there is an x: (time, 3)."""
    q, p = run.q, run.p
    R, P = (part[:, -9:].reshape(-1, 3, 3) for part in (q, p))
    turning = np.cross(R, P, axis=1).sum(axis=2)
    return turning + np.cross(q[:, :3], p[:, :3]) if q.shape[1] == 12 else turning


def _axial_angular_momentum(run: Trajectory) -> np.ndarray:
    """The angular momentum about the body's third axis, r_2.p_1 - r_1.p_2: (time,)."""
    R, P = (part[:, -9:].reshape(-1, 3, 3) for part in (run.q, run.p))
    return np.sum(R[:, :, 1] * P[:, :, 0] - R[:, :, 0] * P[:, :, 1], axis=1)


def rigid_body(I1: float = 0.6, I2: float = 0.8, I3: float = 1.0, omega: Sequence[float] = (3.0, 0.5, -0.9)) -> Problem:
    """Free rigid body about its centre of mass: n = 9 coordinates, m = 6 constraints.

        q = R row by row,   0 = R^T R - I,   H = sum |p_j|^2 / (2 d_j),   d_j = (I_1 + I_2 + I_3)/2 - I_j

    Starts at R = I with the angular velocity `omega` in the body frame. The spatial angular momentum sum r_j x p_j is
    conserved; in the frame of the body y = R^T sum r_j x p_j obeys Euler's equations y' = y x omega, omega_j = y_j / I_j. The
    defaults give y(0) = (1.8, 0.4, -0.9), as in E. Hairer, G. Vilmart, J. Phys. A 39 (2006) 13225-13235.

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.rigid_body()
        >>> run = da.simulate(problem, da.LobattoIIIAB(stages=3), steps=200)
        >>> bool(np.abs(problem.conserved["angular_momentum"](run) - [1.8, 0.4, -0.9]).max() < 1e-12)
        True

    """
    _check_inertia(I1, I2, I3)

    def H(p: Any, I1: Any, I2: Any, I3: Any) -> Any:
        P = p.reshape(3, 3)
        return sum(P[:, j] @ P[:, j] / (2 * d) for j, d in enumerate(_coefficients(I1, I2, I3)))

    system = Hamiltonian(H, dim=9, holonomic=lambda q: _orthonormal(q.reshape(3, 3)), params={"I1": I1, "I2": I2, "I3": I3})
    return Problem(
        name="rigid_body",
        title="free rigid body",
        reference="Hairer & Vilmart (2006), J. Phys. A 39; Hairer, Lubich & Wanner (2006), VII.5",
        system=system,
        q0=np.eye(3).ravel(),
        v0=_hat(np.asarray(omega, dtype=float)).ravel(),
        h=0.05,
        steps=5000,
        conserved={"energy": energy_is_conserved, "angular_momentum": _spatial_angular_momentum},
        drawing=lambda q, I1, I2, I3: _brick(np.asarray(q).reshape(3, 3), np.sqrt(_coefficients(I1, I2, I3))),
        labels=ENTRIES,
    )


def heavy_top(
    m: float = 1.0, g: float = 1.0, l: float = 1.0, I1: float = 0.6, I2: float = 0.6, I3: float = 1.0,
    inclination: float = 0.5, spin: float = 4.0, precession: float = 0.0, translation: bool = False,
) -> Problem:  # fmt: skip
    """Heavy top with a fixed point, its centre of mass at x = l r_3; I1, I2, I3 are the principal moments about that centre.

    With the rotation matrix only, n = 9 and m = 6,

        q = R row by row,   0 = R^T R - I,   H = sum |p_j|^2 / (2 (d_j + m l^2 delta_j3)) + m g l R_33

    and with `translation=True`, n = 12 and m = 9, for the same motion,

        q = (x, R),   0 = x - l r_3,   0 = R^T R - I,   H = |p_x|^2 / (2m) + sum |p_j|^2 / (2 d_j) + m g x_3

    Starts with the axis r_3 inclined from the upward vertical, turning about itself at `spin` (the third component of the
    angular velocity in the body frame), and precessing about the vertical at `precession`. Conserved are H, the
    angular momentum about the vertical and, for I1 = I2 (Lagrange's top), the one about the body's axis. The default falls
    from rest of its axis and is fast enough, `(I3 spin)^2 > 4 (I1 + m l^2) m g l`, to stand upright if started so.
    V. I. Arnold, Mathematical Methods of Classical Mechanics, section 30.

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.heavy_top()
        >>> run = da.simulate(problem, da.LobattoIIIAB(stages=3), steps=200)
        >>> {name: bool(abs(f(run) - f(run)[0]).max() < 1e-12) for name, f in problem.conserved.items()}
        {'energy': False, 'vertical_angular_momentum': True, 'axial_angular_momentum': True}

    """
    _check_inertia(I1, I2, I3)

    def turning_energy(P: Any, I1: Any, I2: Any, I3: Any, extra: Any) -> Any:
        d1, d2, d3 = _coefficients(I1, I2, I3)
        return sum(P[:, j] @ P[:, j] / (2 * d) for j, d in enumerate([d1, d2, d3 + extra]))

    def H_fixed(q: Any, p: Any, m: Any, g: Any, l: Any, I1: Any, I2: Any, I3: Any) -> Any:
        return turning_energy(p.reshape(3, 3), I1, I2, I3, m * l**2) + m * g * l * q[8]

    def H_moving(q: Any, p: Any, m: Any, g: Any, I1: Any, I2: Any, I3: Any) -> Any:
        return p[:3] @ p[:3] / (2 * m) + turning_energy(p[3:].reshape(3, 3), I1, I2, I3, 0.0) + m * g * q[2]

    def attached(q: Any, l: Any) -> Any:
        R = q[3:].reshape(3, 3)
        return [*(q[:3] - l * R[:, 2]), *_orthonormal(R)]

    system = Hamiltonian(
        H_moving if translation else H_fixed,
        dim=12 if translation else 9,
        holonomic=attached if translation else lambda q: _orthonormal(q.reshape(3, 3)),
        params={"m": m, "g": g, "l": l, "I1": I1, "I2": I2, "I3": I3},
    )
    sin, cos = np.sin(inclination), np.cos(inclination)
    R = np.array([[1.0, 0.0, 0.0], [0.0, cos, -sin], [0.0, sin, cos]])
    velocity = R @ _hat(np.array([0.0, precession * sin, spin]))
    conserved = {"energy": energy_is_conserved, "vertical_angular_momentum": lambda run: _spatial_angular_momentum(run)[:, 2]}
    if I1 == I2:
        conserved["axial_angular_momentum"] = _axial_angular_momentum
    return Problem(
        name="heavy_top",
        title="heavy top" if I1 != I2 else "heavy symmetric top",
        reference="Arnold (1989), Mathematical Methods of Classical Mechanics, section 30",
        system=system,
        q0=np.concatenate([l * R[:, 2], R.ravel()]) if translation else R.ravel(),
        v0=np.concatenate([l * velocity[:, 2], velocity.ravel()]) if translation else velocity.ravel(),
        h=0.05,
        steps=5000,
        conserved=conserved,
        drawing=lambda q, l: _disc_on_axis(np.asarray(q)[-9:].reshape(3, 3), l),
        labels=("x", "y", "z", *ENTRIES) if translation else ENTRIES,
    )


def _disc_on_axis(R: np.ndarray, length: float) -> list[Part]:
    """A disc about the centre of mass, and the axis from the fixed point through it."""
    centre, end = length * R[:, 2], 1.3 * length * R[:, 2]
    return [rod(np.zeros(3), end), *disc(centre, length / 2, R[:, 0], R[:, 1]), trace(end)]


def _brick(R: np.ndarray, half: np.ndarray) -> list[Part]:
    """The homogeneous brick with these edges along the axes, which has these coefficients of inertia, and its first axis."""
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    faces = [(half * np.insert(corners, axis, side, axis=1)) @ R.T for axis in range(3) for side in (-1, 1)]
    end = 1.5 * half[0] * R[:, 0]
    return [*(body(*face) for face in faces), line(np.zeros(3), end), trace(end)]
