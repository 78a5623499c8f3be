"""Figures 5.1 to 5.4: the charged particle on a sphere in electric and magnetic fields, Example 1."""

from __future__ import annotations

import numpy as np

from dalembert.draw._style import BLUE, GREEN, VERMILION, new_figure, styled
from dalembert.experiments._experiment import Checks, Data, at_least, at_most
from dalembert.experiments._figures import Figure, over_time, zero_line
from dalembert.experiments._measures import largest
from dalembert.experiments.jay1996._shared import (
    FALLS,
    JAY,
    LOBATTO,
    MANY_STEPS,
    STEPS,
    Example,
    largest_rise,
    paper_run,
    portrait_distances,
)
from dalembert.methods import RadauIIA
from dalembert.plot._panels import history
from dalembert.problems import charged_particle_on_sphere

ENERGY = 1.2**2 - np.sqrt(0.92)
MOMENTUM = -0.4


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


PARTICLE = Example(
    charged_particle_on_sphere, ENERGY, r"$H - (1.2^2 - \sqrt{0.92})$", (("x", "p_x"), ("z", "p_z")), (0, 2), exact_particle
)


@JAY.claim(
    "figure5.1",
    "Over 5000 steps of h = 0.12 the 3-stage Lobatto IIIA-IIIB method keeps the charged particle on the phase "
    "portraits (x, p_x) and (z, p_z) of the exact motion, with all constraints satisfied.",
    compute=PARTICLE.compute_portraits,
    draw=PARTICLE.draw_portraits,
    remark="The exact motion comes from the two integrals of the problem, which put (z, p_z) on the curve "
    "p_z^2 = 2 (1 - z^2) (E + z) - (L - 1 + z^2)^2.",
)
def portraits_hold(data: Data) -> Checks:
    """Both portraits are those of the exact motion; (z, p_z) is on its exact curve."""
    yield from PARTICLE.portrait_checks(data, outside=0.02, gaps=(0.08, 0.02))
    z, p_z = data["z"], data["p_z"]
    curve = 2 * (1 - z * z) * (ENERGY + z) - (MOMENTUM - 1 + z * z) ** 2
    yield at_most("largest |p_z^2 - f(z)| on the exact curve p_z^2 = f(z)", largest(p_z**2 - curve), 2e-5)


@JAY.claim(
    "figure5.2",
    "The numerical Hamiltonian of the 3-stage Lobatto IIIA-IIIB method with h = 0.12 oscillates within a fixed "
    "narrow band about the exact value 1.2^2 - sqrt(0.92) and does not drift.",
    compute=PARTICLE.compute_hamiltonian,
    draw=PARTICLE.draw_band,
    contradicts="The paper prints the exact value 1.2^2 - sqrt(0.92) as 0.4808336955; it is 0.4808336953.",
)
def hamiltonian_holds(data: Data) -> Checks:
    """H stays in a band of 1e-5 and has no slope."""
    return PARTICLE.band_checks(data, 1e-5)


# -- figure 5.3 ----------------------------------------------------------------------------------------------------------

RADAU = {"": "2-stage Radau IIA", "projected_": "2-stage Radau IIA, projected"}


def compute_radau_portraits(full: bool) -> Data:
    """Two runs of the 2-stage Radau IIA method, without and with projection, and the exact motion."""
    problem = charged_particle_on_sphere()
    plain, projected = (paper_run(problem, RadauIIA(stages=2, projected=choice)) for choice in (False, True))
    portraits = PARTICLE.portrait(plain) | PARTICLE.portrait(projected, "projected_")
    return {"t": plain.t, **portraits, **PARTICLE.exact_portrait(4 * STEPS)}


@JAY.claim(
    "figure5.3",
    "The 2-stage Radau IIA method with h = 0.12 leaves the phase portraits of the exact motion, with and without "
    "projection onto the constraints.",
    compute=compute_radau_portraits,
    draw=lambda data: PARTICLE.draw_portraits(data, tuple(RADAU.items())),
    remark="The paper shows the unprojected method and says that the projected one looks the same. Grey: the exact motion.",
)
def radau_portraits_leave(data: Data) -> Checks:
    """Both runs leave the exact portraits by much of their size; only the projected one keeps the hidden constraint."""
    for prefix, name in (("", "unprojected"), ("projected_", "projected")):
        for plane, least in zip(PARTICLE.planes, (0.05, 0.3), strict=True):
            outside, _ = portrait_distances(data, plane, prefix)
            label = f"{name}, ({plane[0]}, {plane[1]}): farthest point from the exact portrait, relative to its size"
            yield at_least(label, outside, least)
        yield at_most(f"{name}: largest |g|", np.max(data[prefix + "g"]), 1e-13)
    yield at_least("unprojected: largest |g_dot|", np.max(data["g_dot"]), 1e-3)
    yield at_most("projected: largest |g_dot|", np.max(data["projected_g_dot"]), 1e-13)


# -- figure 5.4 ----------------------------------------------------------------------------------------------------------


def compute_radau_hamiltonian(full: bool) -> Data:
    """H of the two Radau IIA runs and of Lobatto IIIA-IIIB; `full` adds a million steps of the former."""
    problem = charged_particle_on_sphere()
    methods = {"plain": RadauIIA(stages=2), "projected": RadauIIA(stages=2, projected=True)}
    runs = {name: paper_run(problem, method) for name, method in (methods | {"lobatto": LOBATTO}).items()}
    data = {"t": runs["plain"].t, **{name: run.energy for name, run in runs.items()}}
    if full:
        for name, method in methods.items():
            long = paper_run(problem, method, MANY_STEPS, save_every=100)
            data |= {"long_t": long.t, f"long_{name}": long.energy}
    return data


def draw_radau_hamiltonian(data: Data) -> Figure:
    """H less its exact value for the three methods, on one scale, and a million steps if there are so many."""
    curves = (("lobatto", "3-stage Lobatto IIIA-IIIB", BLUE), ("plain", RADAU[""], VERMILION),
              ("projected", RADAU["projected_"], GREEN))  # fmt: skip
    prefixes = ("", "long_") if "long_t" in data else ("",)
    with styled():
        figure = new_figure(6.8, 0.4 + 2.4 * len(prefixes))
        for ax, prefix in zip(figure.subplots(len(prefixes), 1, squeeze=False)[:, 0], prefixes, strict=True):
            zero_line(ax)
            for name, label, color in curves:
                if prefix + name in data:
                    history(ax, data[prefix + "t"], data[prefix + name] - ENERGY, color=color, label=label)
            over_time(ax, ylabel=PARTICLE.energy_label)
            ax.legend(loc="lower left" if not prefix else "upper right")
    return figure


@JAY.claim(
    "figure5.4",
    "The numerical Hamiltonian of the 2-stage Radau IIA method with h = 0.12 drifts away from the exact value, roughly "
    "linearly with time, with and without projection by the same amount; beside it that of Lobatto IIIA-IIIB looks constant.",
    compute=compute_radau_hamiltonian,
    draw=draw_radau_hamiltonian,
    remark="'Roughly' is needed: the rate is 2.4e-3 over the first 500 steps and 0.9e-3 over the last 500 of 5000, and the "
    "drift ends near H = -0.95, where the particle circles the z-axis. With projection the loss is 1.5 % larger (0.910 "
    "against 0.896).",
)
def radau_hamiltonian_drifts(data: Data) -> Checks:
    """H falls throughout, roughly linearly, and by the same with and without projection; that of Lobatto stays."""
    for name in ("plain", "projected"):
        energy = data[name]
        yield at_most(f"{name}: H at the end - exact value", energy[-1] - ENERGY, -0.5)
        yield at_most(f"{name}: {FALLS}", largest_rise(energy), -0.01)
        yield at_most(f"{name}: correlation of H and t", np.corrcoef(data["t"], energy)[0, 1], -0.97)
    loss = np.ptp(data["plain"])
    apart, steady = largest(data["plain"] - data["projected"]), largest(data["lobatto"] - ENERGY)
    yield at_most("largest difference between the two, relative to the drift", apart / loss, 0.03)
    yield at_most("largest |H - exact value| of Lobatto IIIA-IIIB, relative to the drift", steady / loss, 1e-4)
    if "long_t" in data:
        last = data["long_t"] >= data["long_t"][-1] / 2
        for name in ("long_plain", "long_projected"):
            yield at_most(f"{name}: change of H over the second half million steps", np.ptp(data[name][last]), 0.02)
