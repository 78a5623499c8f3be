"""Figures 5.1 to 5.4: the charged particle on a sphere in electric and magnetic fields, Example 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.experiments._experiment import Check, Data, Experiment
from dalembert.experiments.jay1996._shared import (
    DOCUMENT,
    MANY_STEPS,
    STEPS,
    H,
    band_checks,
    draw_band,
    draw_portraits,
    largest_residuals,
    long_energy,
    monotone_means,
    paper_run,
    portrait_distances,
)
from dalembert.methods import LobattoIIIAB, RadauIIA
from dalembert.problems import charged_particle_on_sphere

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dalembert.runs._trajectory import Trajectory

ENERGY = 1.2**2 - np.sqrt(0.92)
MOMENTUM = -0.4
PLANES = (("x", "p_x"), ("z", "p_z"))


def exact_particle(t1: float, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """x, p_x, z, p_z of Example 1 to about eight digits, from its two integrals: z and the longitude, a method of order 8.

    With rho^2 = 1 - z^2, E = H and the axial momentum L = x p_y - y p_x,

        p_z^2 = f(z) = 2 rho^2 (E + z) - (L - rho^2)^2,   z'' = f'(z) / 2,   phi' = L / rho^2 - 1

    Example:
        >>> t, (x, p_x, z, p_z) = exact_particle(1.0, samples=3)
        >>> x[0].round(12), p_x[0].round(12), z[0].round(12), p_z[0]
        (np.float64(0.2), np.float64(1.0), np.float64(0.959166304663), np.float64(0.0))

    """
    from scipy.integrate import solve_ivp

    def motion(_: float, y: np.ndarray) -> tuple[float, float, float]:
        z, p_z, _phi = y
        rho2 = 1 - z * z
        return p_z, -2 * z * (ENERGY + z) + rho2 - 2 * z * (MOMENTUM - rho2), MOMENTUM / rho2 - 1

    t = np.linspace(0.0, t1, samples)
    start = (np.sqrt(0.92), 0.0, np.pi / 4)
    z, p_z, phi = solve_ivp(motion, (0.0, t1), start, method="DOP853", t_eval=t, rtol=1e-10, atol=1e-11).y
    rho = np.sqrt(1 - z * z)
    x, p_x = rho * np.cos(phi), -z * p_z / rho * np.cos(phi) - MOMENTUM / rho * np.sin(phi)
    return t, np.array([x, p_x, z, p_z])


def _portrait(run: Trajectory, prefix: str = "") -> dict[str, np.ndarray]:
    columns = {"x": run.q[:, 0], "p_x": run.p[:, 0], "z": run.q[:, 2], "p_z": run.p[:, 2]} | largest_residuals(run)
    return {prefix + name: values for name, values in columns.items()}


def _exact_portrait(samples: int) -> dict[str, np.ndarray]:
    t, (x, p_x, z, p_z) = exact_particle(H * STEPS, samples=samples)
    return {"exact_t": t, "exact_x": x, "exact_p_x": p_x, "exact_z": z, "exact_p_z": p_z}


# -- figure 5.1 ----------------------------------------------------------------------------------------------------------


def compute_portraits(full: bool) -> Data:
    """The run of Example 1, and the exact motion from an independent formulation; the paper's length in any case."""
    run = paper_run(charged_particle_on_sphere(), LobattoIIIAB(stages=3))
    return {"t": run.t, **_portrait(run), **_exact_portrait(20 * STEPS)}


def portraits_hold(data: Data) -> tuple[Check, ...]:
    """Every point lies on the portrait of the exact motion, and the portrait is covered; (z, p_z) is on its exact curve."""
    checks = []
    for plane, gap in zip(PLANES, (0.08, 0.02), strict=True):
        outside, missed = portrait_distances(data, plane)
        name = f"({plane[0]}, {plane[1]})"
        checks.append(Check(f"{name}: farthest point from the exact portrait, relative to its size", outside, "<=", 0.02))
        checks.append(Check(f"{name}: farthest part of the exact portrait from a point", missed, "<=", gap))
    z, p_z = data["z"], data["p_z"]
    curve = 2 * (1 - z * z) * (ENERGY + z) - (MOMENTUM - 1 + z * z) ** 2
    checks.append(
        Check("largest |p_z^2 - f(z)| on the exact curve p_z^2 = f(z)", float(np.max(np.abs(p_z**2 - curve))), "<=", 2e-5)
    )
    checks.append(Check("largest |g|", float(np.max(data["g"])), "<=", 1e-13))
    checks.append(Check("largest |g_dot|", float(np.max(data["g_dot"])), "<=", 1e-13))
    return tuple(checks)


# -- figure 5.2 ----------------------------------------------------------------------------------------------------------


def compute_hamiltonian(full: bool) -> Data:
    """H after every step of Example 1; `full` goes on to a million steps."""
    t, energy = long_energy(charged_particle_on_sphere(), LobattoIIIAB(stages=3), full)
    return {"t": t, "H": energy}


# -- figure 5.3 ----------------------------------------------------------------------------------------------------------


def compute_radau_portraits(full: bool) -> Data:
    """Two runs of the 2-stage Radau IIA method, without and with projection, and the exact motion."""
    problem = charged_particle_on_sphere()
    plain, projected = (paper_run(problem, RadauIIA(stages=2, projected=choice)) for choice in (False, True))
    return {"t": plain.t, **_portrait(plain), **_portrait(projected, "projected_"), **_exact_portrait(4 * STEPS)}


def radau_portraits_leave(data: Data) -> tuple[Check, ...]:
    """Both runs leave the exact portraits by much of their size; only the projected one keeps the hidden constraint."""
    checks = []
    for prefix, name in (("", "unprojected"), ("projected_", "projected")):
        for plane, least in zip(PLANES, (0.05, 0.3), strict=True):
            outside, _ = portrait_distances(data, plane, prefix)
            label = f"{name}, ({plane[0]}, {plane[1]}): farthest point from the exact portrait, relative to its size"
            checks.append(Check(label, outside, ">=", least))
        checks.append(Check(f"{name}: largest |g|", float(np.max(data[prefix + "g"])), "<=", 1e-13))
    checks.append(Check("unprojected: largest |g_dot|", float(np.max(data["g_dot"])), ">=", 1e-3))
    checks.append(Check("projected: largest |g_dot|", float(np.max(data["projected_g_dot"])), "<=", 1e-13))
    return tuple(checks)


# -- figure 5.4 ----------------------------------------------------------------------------------------------------------


def compute_radau_hamiltonian(full: bool) -> Data:
    """H of the two Radau IIA runs and of Lobatto IIIA-IIIB; `full` adds a million steps of the former."""
    problem = charged_particle_on_sphere()
    plain, projected = (RadauIIA(stages=2, projected=choice) for choice in (False, True))
    runs = [paper_run(problem, method) for method in (plain, projected, LobattoIIIAB(stages=3))]
    data = {"t": runs[0].t, **dict(zip(("plain", "projected", "lobatto"), (run.energy for run in runs), strict=True))}
    if full:
        long = [paper_run(problem, method, MANY_STEPS, save_every=100) for method in (plain, projected)]
        data |= {"long_t": long[0].t, "long_plain": long[0].energy, "long_projected": long[1].energy}
    return data


def radau_hamiltonian_drifts(data: Data) -> tuple[Check, ...]:
    """H falls throughout, roughly linearly, and by the same with and without projection; that of Lobatto stays."""
    t = data["t"]
    checks = []
    for name in ("plain", "projected"):
        energy = data[name]
        checks += [
            Check(f"{name}: H at the end - exact value", float(energy[-1] - ENERGY), "<=", -0.5),
            Check(f"{name}: largest rise of the mean of H between tenths of the run", monotone_means(t, energy), "<=", -0.01),
            Check(f"{name}: correlation of H and t", float(np.corrcoef(t, energy)[0, 1]), "<=", -0.97),
        ]
    apart = float(np.max(np.abs(data["plain"] - data["projected"])) / np.ptp(data["plain"]))
    checks.append(Check("largest difference between the two, relative to the drift", apart, "<=", 0.03))
    steady = float(np.max(np.abs(data["lobatto"] - ENERGY)) / np.ptp(data["plain"]))
    checks.append(Check("largest |H - exact value| of Lobatto IIIA-IIIB, relative to the drift", steady, "<=", 1e-4))
    if "long_t" in data:
        last = data["long_t"] >= data["long_t"][-1] / 2
        for name in ("long_plain", "long_projected"):
            fall = float(np.ptp(data[name][last]))
            checks.append(Check(f"{name}: change of H over the second half million steps", fall, "<=", 0.02))
    return tuple(checks)


def draw_radau_hamiltonian(data: Data) -> Figure:
    """H less its exact value for the three methods, on one scale, and a million steps if there are so many."""
    from dalembert.draw._style import BLACK, BLUE, GREEN, VERMILION, new_figure, styled
    from dalembert.plot._panels import history

    curves = (
        ("lobatto", "3-stage Lobatto IIIA-IIIB", BLUE),
        ("plain", "2-stage Radau IIA", VERMILION),
        ("projected", "2-stage Radau IIA, projected", GREEN),
    )
    prefixes = ("", "long_") if "long_t" in data else ("",)
    with styled():
        figure = new_figure(6.8, 0.4 + 2.4 * len(prefixes))
        for ax, prefix in zip(figure.subplots(len(prefixes), 1, squeeze=False)[:, 0], prefixes, strict=True):
            ax.axhline(0.0, color=BLACK, linewidth=0.8, linestyle=(0, (4, 3)))
            for name, label, color in curves:
                if prefix + name in data:
                    history(ax, data[prefix + "t"], data[prefix + name] - ENERGY, color=color, label=label)
            ax.set(xlabel="$t$", ylabel=r"$H - (1.2^2 - \sqrt{0.92})$")
            ax.legend(loc="lower left" if not prefix else "upper right")
            ax.grid(True)
    return figure


EXPERIMENTS = (
    Experiment(
        name="jay1996.figure5.1",
        document=DOCUMENT,
        item="figure 5.1",
        claim="Over 5000 steps of h = 0.12 the 3-stage Lobatto IIIA-IIIB method keeps the charged particle on the phase "
        "portraits (x, p_x) and (z, p_z) of the exact motion, with all constraints satisfied.",
        compute=compute_portraits,
        draw=lambda data: draw_portraits(data, PLANES),
        holds=portraits_hold,
        remark="The exact motion comes from the two integrals of the problem, which put (z, p_z) on the curve "
        "p_z^2 = 2 (1 - z^2) (E + z) - (L - 1 + z^2)^2.",
    ),
    Experiment(
        name="jay1996.figure5.2",
        document=DOCUMENT,
        item="figure 5.2",
        claim="The numerical Hamiltonian of the 3-stage Lobatto IIIA-IIIB method with h = 0.12 oscillates within a fixed "
        "narrow band about the exact value 1.2^2 - sqrt(0.92) and does not drift.",
        compute=compute_hamiltonian,
        draw=lambda data: draw_band(data, ENERGY, r"$H - (1.2^2 - \sqrt{0.92})$"),
        holds=lambda data: band_checks(data, ENERGY, 1e-5),
        contradicts="The paper prints the exact value 1.2^2 - sqrt(0.92) as 0.4808336955; it is 0.4808336953.",
    ),
    Experiment(
        name="jay1996.figure5.3",
        document=DOCUMENT,
        item="figure 5.3",
        claim="The 2-stage Radau IIA method with h = 0.12 leaves the phase portraits of the exact motion, with and without "
        "projection onto the constraints.",
        compute=compute_radau_portraits,
        draw=lambda data: draw_portraits(
            data, PLANES, (("", "2-stage Radau IIA"), ("projected_", "2-stage Radau IIA, projected"))
        ),
        holds=radau_portraits_leave,
        remark="The paper shows the unprojected method and says that the projected one looks the same. Grey: the exact motion.",
    ),
    Experiment(
        name="jay1996.figure5.4",
        document=DOCUMENT,
        item="figure 5.4",
        claim="The numerical Hamiltonian of the 2-stage Radau IIA method with h = 0.12 drifts away from the exact value, "
        "roughly linearly with time, with and without projection by the same amount; beside it that of Lobatto IIIA-IIIB looks "
        "constant.",
        compute=compute_radau_hamiltonian,
        draw=draw_radau_hamiltonian,
        holds=radau_hamiltonian_drifts,
        remark="'Roughly' is needed: the rate is 2.4e-3 over the first 500 steps and 0.9e-3 over the last 500 of 5000, and the "
        "drift ends near H = -0.95, where the particle circles the z-axis. With projection the loss is 1.5 % larger (0.910 "
        "against 0.896).",
    ),
)
