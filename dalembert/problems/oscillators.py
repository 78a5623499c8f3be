"""Oscillators that a nonholonomic constraint couples: contact oscillators, particles, a continuously variable transmission.

R. McLachlan and M. Perlmutter, Integrators for nonholonomic mechanical systems, J. Nonlinear Sci. 16 (2006) 283-328; S. K.
Hilden, Numerical methods for nonholonomic mechanics, Master's thesis, NTNU (2009), sections 4.3 and 4.4."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.draw import Part, disc, line, mass, spring, trace, track
from dalembert.draw._parts import VERMILION
from dalembert.errors import InputError
from dalembert.runs._problem import Problem, energy_is_conserved
from dalembert.systems import Lagrangian

MCLACHLAN_PERLMUTTER = "McLachlan & Perlmutter (2006), J. Nonlinear Sci. 16"
POINCARE_STEP = 2 * np.sin(np.pi / 40)
"""With this step y has a period of 40 steps in the Stormer-Verlet method, to which both methods of Hilden reduce for it."""


def contact_oscillator(b: float = 1.0, E0: float = 1.5, z0: float = 0.5, vz0: float = 0.0) -> Problem:
    """Contact oscillator: three oscillators and one constraint, whose solutions are quasiperiodic.

        q = (x, y, z),   L = v.v / 2 - q.q / 2,   0 = v_x + y v_z

    y = b cos(t) moves by itself. It starts with the energy E0 from z0 and v_z = vz0, with x_0 = sqrt(2 E0 - (1 + b^2) vz0^2 -
    z0^2 - b^2) (printed for b = 1 only, (4.8)), v_x = -b vz0 and v_y = 0. With w = sqrt(1 + b^2 cos(t)^2) v_z, (x, z, w) obeys
    the linear equations (4.7) with a skew-symmetric matrix of period 2 pi: every 2 pi it has turned about a fixed axis, and
    x^2 + z^2 + w^2 is conserved. For b = 0, `exact` is known: x stays, and (z, v_z) turns with period 2 pi. At the step size h
    = 2 sin(pi/40) the discrete y has a period of 40 steps.

    Example:
        >>> import numpy as np, dalembert as da
        >>> problem = da.problems.contact_oscillator()
        >>> run = da.simulate(problem, da.McLachlanPerlmutter(), steps=4000)
        >>> np.allclose(run.q[::40, 1], 1, atol=1e-12), bool(np.ptp(run.energy) < 0.05)
        (True, True)

    """
    common = _contact_oscillator(0.0, b, E0, z0, vz0)
    x0 = common["q0"][0]

    def exact(t: Any) -> dict[str, np.ndarray]:
        sin, cos, zero = np.sin(np.asarray(t, dtype=float)), np.cos(np.asarray(t, dtype=float)), np.zeros(np.shape(t))
        q = np.stack([zero + x0, zero, z0 * cos + vz0 * sin], axis=-1)
        v = np.stack([zero, zero, vz0 * cos - z0 * sin], axis=-1)
        return {"q": q, "v": v, "p": v, "psi": (zero - x0)[..., None]}

    return Problem(
        name="contact_oscillator",
        title="contact oscillator",
        reference=f"{MCLACHLAN_PERLMUTTER}, section 5.1; Hilden (2009), section 4.3",
        system=Lagrangian(lambda q, v: v @ v / 2 - q @ q / 2, dim=3, nonholonomic=lambda q, v: [v[0] + q[1] * v[2]]),
        exact=None if b else exact,
        conserved={
            **CONSERVED,
            "radius": lambda run: np.sqrt(run.q[:, 0] ** 2 + run.q[:, 2] ** 2 + (1 + run.q[:, 1] ** 2) * run.v[:, 2] ** 2),
        },
        **common,
    )


def perturbed_contact_oscillator(
    eps: float = 0.3, b: float = 1.0, E0: float = 1.5, z0: float = 0.5, vz0: float = 0.0
) -> Problem:
    """Contact oscillator with a nonlinear perturbation, partly chaotic.

        q = (x, y, z),   L = v.v / 2 - (q.q + eps x^2 z^2) / 2,   0 = v_x + y v_z

    Started as the `contact_oscillator`, from the energy E0, with x_0 = sqrt((2 E0 - (1 + b^2) vz0^2 - z0^2 - b^2) / (1 + eps
    z0^2)) (printed for b = 1 only, (4.13)). Section 4.4 of Hilden takes eps = 0.3 and 0.8.

    Example:
        >>> import numpy as np, dalembert as da
        >>> run = da.simulate(da.problems.perturbed_contact_oscillator(eps=0.8), da.LobattoSPARK(stages=2), steps=4000)
        >>> bool(np.ptp(run.energy) < 0.05)
        True

    """
    system = Lagrangian(
        lambda q, v, eps: v @ v / 2 - (q @ q + eps * q[0] ** 2 * q[2] ** 2) / 2,
        dim=3,
        nonholonomic=lambda q, v: [v[0] + q[1] * v[2]],
        params={"eps": eps},
    )
    return Problem(
        name="perturbed_contact_oscillator",
        title="contact oscillator with a nonlinear perturbation",
        reference=f"{MCLACHLAN_PERLMUTTER}, section 5.1; Hilden (2009), section 4.4",
        system=system,
        conserved=CONSERVED,
        **_contact_oscillator(eps, b, E0, z0, vz0),
    )


CONSERVED = {
    "energy": energy_is_conserved,
    "free_energy": lambda run: (run.q[:, 1] ** 2 + run.v[:, 1] ** 2) / 2,
}
"""What both contact oscillators conserve: the energy, and that of y, which moves by itself."""


def _contact_oscillator(eps: float, b: float, E0: float, z0: float, vz0: float) -> dict[str, Any]:
    """Start, length and drawing of both contact oscillators."""
    square = (2 * E0 - (1 + b**2) * vz0**2 - z0**2 - b**2) / (1 + eps * z0**2)
    if square < 0:
        raise InputError("the energy E0 is too small for these b, z0 and vz0: x_0^2 would be negative")
    return {
        "q0": np.array([np.sqrt(square), b, z0]),
        "v0": np.array([-b * vz0, 0.0, vz0]),
        "h": POINCARE_STEP,
        "steps": 4000,
        "drawing": lambda q: [spring([0.0, 0.0, 0.0], q), mass(q)],
        "labels": ("x", "y", "z"),
    }


def nonholonomic_particles(n: int = 3, coupling: float = 1.0, spread: float = 0.7, phase: float = 0.2) -> Problem:
    """McLachlan and Perlmutter's particles: 2 n + 1 oscillators, a quartic coupling and one constraint; chaotic.

        q = (x, y_1, ..., y_n, z_1, ..., z_n)
        L = v.v / 2 - (q.q + coupling (z_1^2 z_2^2 + y_1^2 z_1^2 + ... + y_n^2 z_n^2)) / 2
        0 = v_x + y_1 v_z1 + ... + y_n v_zn

    for n >= 2: a test of long-time energy conservation without first integrals besides the energy, on which methods that are
    not reversible drift. L. O. Jay, Lagrange-d'Alembert SPARK integrators for nonholonomic Lagrangian systems (2009), compares
    on it. The initial values are our own: at rest but for the z_i, with z_i = spread cos(2 pi i / n + phase), v_zi = spread
    sin(2 pi i / n + phase), y_i = 1 and x = 0, which fixes v_x.

    Example:
        >>> import numpy as np, dalembert as da
        >>> run = da.simulate(da.problems.nonholonomic_particles(), da.LobattoSPARK(stages=2), h=0.1, steps=2000)
        >>> run.q.shape[1], bool(np.ptp(run.energy) < 0.1)
        (7, True)

    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 2:
        raise InputError(f"the particles are a whole number n of at least two; got {n!r}")
    y, z = slice(1, n + 1), slice(n + 1, 2 * n + 1)

    def L(q: Any, v: Any, coupling: Any) -> Any:
        quartic = q[z][0] ** 2 * q[z][1] ** 2 + q[y] ** 2 @ q[z] ** 2
        return v @ v / 2 - (q @ q + coupling * quartic) / 2

    angle = 2 * np.pi * np.arange(1, n + 1) / n + phase
    v_z = spread * np.sin(angle)
    return Problem(
        name="nonholonomic_particles",
        title="McLachlan and Perlmutter's particles",
        reference=f"{MCLACHLAN_PERLMUTTER}; Jay (2009)",
        system=Lagrangian(L, dim=2 * n + 1, nonholonomic=lambda q, v: [v[0] + q[y] @ v[z]], params={"coupling": coupling}),
        q0=np.concatenate([[0.0], np.ones(n), spread * np.cos(angle)]),
        v0=np.concatenate([[-v_z.sum()], np.zeros(n), v_z]),
        h=0.1,
        steps=2000,
        conserved={"energy": energy_is_conserved},
        drawing=lambda q: [
            *(part for point in zip(q[y], q[z], strict=True) for part in (spring([0.0, 0.0], point), mass(point))),
            trace([q[1], q[1 + n]]),
        ],
        labels=("x", *(f"y{i}" for i in range(1, n + 1)), *(f"z{i}" for i in range(1, n + 1))),
    )


def continuously_variable_transmission(
    J1: float = 1.0, J2: float = 1.5, k1: float = 1.0, k2: float = 0.5, m: float = 1.0, k: float = 2.0, R: float = 1.0,
    slope: float = 0.4, shift: float = 0.8, angle: float = 1.0, speed: float = 0.3,
) -> Problem:  # fmt: skip
    """Continuously variable transmission: two shafts joined by a belt on cones, which a spring moves to and fro.

        q = (a, b, s),   a and b the angles of the shafts, s the position of the belt
        L = (J1 v_a^2 + J2 v_b^2 + m v_s^2 - k1 a^2 - k2 b^2 - k s^2) / 2
        0 = (R + slope s) v_a - (R - slope s) v_b

    The belt oscillates by itself, s = `shift` cos(w t), w^2 = k / m; the constraint does not act on it. The angles and u, v_a =
    `(R - slope s) u`, v_b = `(R + slope s) u`, obey with `D = J1 (R - slope s)^2 + J2 (R + slope s)^2`

        D u' + D' u / 2 = -k1 a (R - slope s) - k2 b (R + slope s)

    It starts from a = `angle`, b = 0, u = `speed`. Energy is conserved, that of the belt apart. K. Modin, O. Verdier, What
    makes nonholonomic integrators work?, Numer. Math. 145 (2020) 405-435: reversible methods owe their energy conservation on
    such systems to reversibility and integrability, not to the discrete Lagrange-d'Alembert principle.

    Example:
        >>> import numpy as np, dalembert as da
        >>> run = da.simulate(da.problems.continuously_variable_transmission(), da.McLachlanPerlmutter())
        >>> bool(np.ptp(run.energy) < 0.01), bool(abs(run.residuals["k"]).max() < 1e-14)
        (True, True)

    """
    if not abs(slope * shift) < R:
        raise InputError(
            f"the belt runs off its cones: |slope * shift| must be less than R = {R:g}, got {abs(slope * shift):g}"
        )

    def L(q: Any, v: Any, J1: Any, J2: Any, k1: Any, k2: Any, m: Any, k: Any) -> Any:
        kinetic = J1 * v[0] ** 2 + J2 * v[1] ** 2 + m * v[2] ** 2
        return (kinetic - k1 * q[0] ** 2 - k2 * q[1] ** 2 - k * q[2] ** 2) / 2

    return Problem(
        name="continuously_variable_transmission",
        title="continuously variable transmission",
        reference="Modin & Verdier (2020), Numer. Math. 145",
        system=Lagrangian(
            L,
            dim=3,
            nonholonomic=lambda q, v, R, slope: [(R + slope * q[2]) * v[0] - (R - slope * q[2]) * v[1]],
            params={"J1": J1, "J2": J2, "k1": k1, "k2": k2, "m": m, "k": k, "R": R, "slope": slope},
        ),
        q0=np.array([angle, 0.0, shift]),
        v0=np.array([(R - slope * shift) * speed, (R + slope * shift) * speed, 0.0]),
        h=0.1,
        steps=1000,
        conserved={
            "energy": energy_is_conserved,
            "energy_of_belt": lambda run: (m * run.v[:, 2] ** 2 + k * run.q[:, 2] ** 2) / 2,
        },
        drawing=lambda q, R, slope: _cones_and_belt(q, R, slope, 1.25 * max(abs(shift), 0.1 * R)),
        labels=("a", "b", "s"),
    )


def _cones_and_belt(q: np.ndarray, R: float, slope: float, end: float) -> list[Part]:
    """Two cones on parallel shafts, cut at +-end, and the belt on them, where their radii are R + slope s and R - slope s."""
    s, apart = q[2], 1.6 * R
    cones = [(-apart, slope, q[0]), (apart, -slope, q[1])]
    rims = [track(*_arc(x, y, R + taper * y, 0.0, 2 * np.pi)) for x, taper, _ in cones for y in (-end, end)]
    sides = [
        track([x, -end, side * (R - taper * end)], [x, end, side * (R + taper * end)])
        for x, taper, _ in cones
        for side in (-1, 1)
    ]
    pulleys = []
    for x, taper, turn in cones:
        across, up = np.array([np.cos(turn), 0.0, np.sin(turn)]), np.array([-np.sin(turn), 0.0, np.cos(turn)])
        pulleys += disc([x, s, 0.0], R + taper * s, across, up)
    touch = np.arccos(slope * s / apart)  # the angle at which the straight stretches of the belt leave both pulleys
    left = _arc(-apart, s, R + slope * s, touch, 2 * np.pi - touch)
    right = _arc(apart, s, R - slope * s, -touch, touch)
    return [*rims, *sides, *pulleys, line(*left, *right, left[0], color=VERMILION), trace([-apart, s, 0.0])]


def _arc(x: float, y: float, radius: float, first: float, last: float) -> np.ndarray:
    """An arc of a circle about (x, y, 0) in a plane at right angles to the axis y."""
    turn = np.linspace(first, last, 41)
    return np.column_stack([x + radius * np.cos(turn), 0 * turn + y, radius * np.sin(turn)])
