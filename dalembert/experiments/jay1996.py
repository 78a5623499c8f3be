"""Jay (1996): symplectic partitioned Runge-Kutta methods for constrained Hamiltonian systems.

L. Jay, SIAM J. Numer. Anal. 33 (1996) 368-387. Example 2 is the double pendulum (5.5)-(5.8): 5000 steps of the 3-stage
Lobatto IIIA-IIIB method with h = 0.12. Figures 5.7 and 5.8 compare it with Gauss and Radau IIA methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.experiments._experiment import Check, Data, Experiment
from dalembert.methods import LobattoIIIAB
from dalembert.problems import double_pendulum
from dalembert.simulation import simulate
from dalembert.verify import drift

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCUMENT = "Jay (1996), SIAM J. Numer. Anal. 33"
EXACT_ENERGY = -3 * np.sqrt(0.75)
H, STEPS, MANY_STEPS, FIRST = 0.12, 5000, 1_000_000, 500


# -- figure 5.5 ----------------------------------------------------------------------------------------------------------


def compute_portraits(full: bool) -> Data:
    """The run of Example 2, and the exact motion from an independent formulation in angles; the paper's length in any case."""
    run = simulate(double_pendulum(), LobattoIIIAB(stages=3), h=H, steps=STEPS, progress=False)
    t, state = exact_double_pendulum(H * STEPS, samples=20 * STEPS)
    residuals = {name: np.max(np.abs(value), axis=1) for name, value in run.residuals.items()}
    return {
        "t": run.t, "x1": run.q[:, 0], "p_x1": run.p[:, 0], "z2": run.q[:, 3], "p_z2": run.p[:, 3],
        "exact_t": t, "exact_x1": state[0], "exact_p_x1": state[1], "exact_z2": state[2], "exact_p_z2": state[3], **residuals,
    }  # fmt: skip


def exact_double_pendulum(t1: float, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """x1, p_x1, z2, p_z2 of Example 2 to about ten digits: angles from the vertical, an explicit method of order 8.

    2 a'' + b'' cos(a-b) + b'^2 sin(a-b) + 2 sin a = 0,   b'' + a'' cos(a-b) - a'^2 sin(a-b) + sin b = 0

    Example:
        >>> t, (x1, p_x1, z2, p_z2) = exact_double_pendulum(1.0, samples=3)
        >>> x1[0].round(12), z2[0].round(12), p_x1[0]
        (np.float64(0.5), np.float64(-1.732050807569), np.float64(0.0))

    """
    from scipy.integrate import solve_ivp

    def motion(_: float, y: np.ndarray) -> tuple[float, float, float, float]:
        a, b, a_dot, b_dot = y
        c, s = np.cos(a - b), np.sin(a - b)
        left, right = -(b_dot**2) * s - 2 * np.sin(a), a_dot**2 * s - np.sin(b)
        determinant = 2 - c * c
        return a_dot, b_dot, (left - c * right) / determinant, (2 * right - c * left) / determinant

    t = np.linspace(0.0, t1, samples)
    start = (np.pi / 6, -np.pi / 6, 0.0, 0.0)
    a, b, a_dot, b_dot = solve_ivp(motion, (0.0, t1), start, method="DOP853", t_eval=t, rtol=1e-11, atol=1e-12).y
    x1, p_x1 = np.sin(a), np.cos(a) * a_dot
    z2, p_z2 = -np.cos(a) - np.cos(b), np.sin(a) * a_dot + np.sin(b) * b_dot
    return t, np.array([x1, p_x1, z2, p_z2])


def portraits_hold(data: Data) -> tuple[Check, ...]:
    """Every point lies on the portrait of the exact motion, and the portrait is covered; no constraint is left."""
    checks = []
    for position, momentum in (("x1", "p_x1"), ("z2", "p_z2")):
        ours, exact = (np.column_stack([data[prefix + position], data[prefix + momentum]]) for prefix in ("", "exact_"))
        scale = np.ptp(exact, axis=0)
        outside, missed = farthest(ours / scale, exact / scale), farthest(exact / scale, ours / scale)
        plane = f"({position}, {momentum})"
        checks.append(Check(f"{plane}: farthest point from the exact portrait, relative to its size", outside, "<=", 0.005))
        checks.append(Check(f"{plane}: farthest part of the exact portrait from a point", missed, "<=", 0.03))
    checks.append(Check("largest |g|", float(np.max(data["g"])), "<=", 1e-13))
    checks.append(Check("largest |g_dot|", float(np.max(data["g_dot"])), "<=", 1e-13))
    return tuple(checks)


def farthest(points: np.ndarray, cloud: np.ndarray) -> float:
    """The largest distance of a point from a cloud of points; nan if a point is not finite.

    Example:
        >>> farthest(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0], [1.0, 0.0]])).round(6)
        np.float64(4.472136)

    """
    from scipy.spatial import KDTree

    if not (np.all(np.isfinite(points)) and np.all(np.isfinite(cloud))):
        return float("nan")
    return np.max(KDTree(cloud).query(points)[0])


def draw_portraits(data: Data) -> Figure:
    """(x1, p_x1) and (z2, p_z2), as the paper draws them."""
    from dalembert.plot._panels import scatter
    from dalembert.plot._style import new_figure, styled

    with styled():
        figure = new_figure(6.8, 3.1)
        for k, (x, y, names) in enumerate(
            [("x1", "p_x1", ("$x_1$", "$p_{x_1}$")), ("z2", "p_z2", ("$z_2$", "$p_{z_2}$"))], start=1
        ):
            ax = figure.add_subplot(1, 2, k)
            scatter(ax, data[x], data[y])
            ax.set(xlabel=names[0], ylabel=names[1])
    return figure


# -- figure 5.6 ----------------------------------------------------------------------------------------------------------


def compute_hamiltonian(full: bool) -> Data:
    """H after every step of Example 2; `full` goes on to a million steps and stores every hundredth after the first 5000."""
    problem, method = double_pendulum(), LobattoIIIAB(stages=3)
    run = simulate(problem, method, h=H, steps=STEPS, progress=False)
    t, energy = run.t, run.energy
    if full:
        long = simulate(problem, method, h=H, steps=MANY_STEPS, save_every=100, progress=False)
        later = long.t > t[-1]
        t, energy = np.concatenate([t, long.t[later]]), np.concatenate([energy, long.energy[later]])
    return {"t": t, "H": energy}


def hamiltonian_holds(data: Data) -> tuple[Check, ...]:
    """H starts at its exact value, stays near it, does not swing wider in the end than at first, and has no slope."""
    t, error = data["t"], data["H"] - EXACT_ENERGY
    size, length = np.abs(error), t[-1] - t[0]
    early, late = size[t <= t[0] + 0.1 * length], size[t >= t[-1] - 0.1 * length]
    largest = float(np.max(size))
    return (
        Check("|H - exact value| at the start", float(size[0]), "<=", 1e-14),
        Check("largest |H - exact value|", largest, "<=", 2e-5),
        Check("largest |H - exact value| in the last tenth over that in the first", np.max(late) / np.max(early), "<=", 1.1),
        Check("|fitted slope| times length over largest |H - exact value|", abs(drift(error, t).slope) * length / largest,
              "<=", 1e-2),
    )  # fmt: skip


def draw_hamiltonian(data: Data) -> Figure:
    """The first 500 steps, as the paper draws them, and the whole run."""
    from dalembert.plot._panels import history
    from dalembert.plot._style import BLACK, new_figure, styled

    t, error = data["t"], data["H"] - EXACT_ENERGY
    with styled():
        figure = new_figure(6.8, 4.4)
        for k, (stop, title) in enumerate([(FIRST + 1, "the first 500 steps"), (len(t), "the whole run")], start=1):
            ax = figure.add_subplot(2, 1, k)
            ax.axhline(0.0, color=BLACK, linewidth=0.8, linestyle=(0, (4, 3)))
            history(ax, t[:stop], error[:stop])
            ax.set(xlabel="$t$", ylabel=r"$H + 3\sqrt{0.75}$")
            ax.set_title(title, loc="left")
            ax.grid(True)
    return figure


EXPERIMENTS = (
    Experiment(
        name="jay1996.figure5.5",
        document=DOCUMENT,
        item="figure 5.5",
        claim="Over 5000 steps of h = 0.12 the 3-stage Lobatto IIIA-IIIB method keeps the double pendulum on the phase "
        "portraits (x1, p_x1) and (z2, p_z2) of the exact motion, with all constraints satisfied.",
        compute=compute_portraits,
        draw=draw_portraits,
        holds=portraits_hold,
    ),
    Experiment(
        name="jay1996.figure5.6",
        document=DOCUMENT,
        item="figure 5.6",
        claim="The numerical Hamiltonian of the 3-stage Lobatto IIIA-IIIB method with h = 0.12 oscillates within a fixed "
        "narrow band about the exact value -3 sqrt(0.75) and does not drift.",
        compute=compute_hamiltonian,
        draw=draw_hamiltonian,
        holds=hamiltonian_holds,
    ),
)
