"""Problems with friction against their equations of motion in one coordinate, written here by hand and solved by SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy import cos, sin
from problem_table import assert_same, end_of
from scipy.integrate import simpson, solve_ivp

import dalembert as da

METHOD = da.compose(da.SymplecticEuler(), 8)


def solve(f: Callable[[float, np.ndarray], Any], y0: Any, t1: float, **options: Any) -> Any:
    return solve_ivp(
        lambda t, y: np.asarray(f(t, y)), (0.0, t1), np.asarray(y0, float), "DOP853", rtol=1e-13, atol=1e-13, **options
    )


# -- the friction law ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("r_f", [0.85, 1.0, 1.3])
def test_friction_is_as_large_as_the_power_of_the_normal_force_and_opposes_the_velocity(r_f: float) -> None:
    normal, velocity = np.array([1.0, -2.0, 2.0]), np.array([-3.0, 0.5, 4.0])
    force = da.forces.friction(normal, velocity, 0.2, r_f)
    assert np.linalg.norm(force) == pytest.approx(0.2 * 3.0**r_f, rel=1e-15)
    assert force @ velocity == pytest.approx(-np.linalg.norm(force) * np.linalg.norm(velocity), rel=1e-15)
    for size in (3.0, -3.0, [3.0], [-3.0]):
        np.testing.assert_allclose(da.forces.friction(size, velocity, 0.2, r_f), force, rtol=1e-15)
    np.testing.assert_allclose(da.forces.friction(normal, 5 * velocity, 0.2, r_f), force, rtol=1e-15)  # whatever the speed


def incline(r_f: float = 1.0, **options: Any) -> da.ODAE:
    """A block on a plane inclined by 1/2, with constants as parameters of the run; the normal has length 1."""
    n = np.array([-sin(0.5), cos(0.5)])
    return da.ODAE(
        v=lambda z: z,
        f=lambda: [0.0, -9.81],
        r=lambda z, lam, mu, r_f: n * lam[0] + da.forces.friction(lam[0], z, mu, r_f),
        g=lambda y: [n @ y],
        dim_y=2,
        dim_z=2,
        params={"mu": 0.3, "r_f": r_f},
        **options,
    )


@pytest.mark.parametrize(("mu", "r_f", "lam0"), [(0.3, 1.0, None), (0.8, 1.0, [-5.0]), (0.3, 0.85, [1.0]), (0.2, 1.4, [3.0])])
def test_a_block_on_an_incline_is_uniformly_accelerated(mu: float, r_f: float, lam0: Any) -> None:
    # Its speed s obeys s' = g sin(1/2) - mu (g cos(1/2))^r_f, so that even Euler's method finds it exactly.
    down = -np.array([cos(0.5), sin(0.5)])
    start = {"y0": [0.0, 0.0], "z0": 10 * down, "lam0": lam0}
    run = da.simulate(incline(), da.SymplecticEuler(), h=0.05, steps=20, params={"mu": mu, "r_f": r_f}, **start)
    speed = 10 + (9.81 * sin(0.5) - mu * (9.81 * cos(0.5)) ** r_f) * run.t
    np.testing.assert_allclose(run.z, np.outer(speed, down), atol=1e-13)
    np.testing.assert_allclose(run.lam[:, 0], 9.81 * cos(0.5), rtol=1e-14)


def test_a_block_that_stops_ends_the_run_where_it_stops() -> None:
    mu, up = 0.8, np.array([cos(0.5), sin(0.5)])
    stops = 5 / (9.81 * (sin(0.5) + mu * cos(0.5)))
    model = incline(domain=lambda z, z0: [da.forces.no_reversal(z, z0)])
    arguments = {"y0": [0.0, 0.0], "z0": 5 * up, "h": 1e-3, "steps": 1000, "params": {"mu": mu}}
    run = da.simulate(model, da.SymplecticEuler(), on_failure="return", **arguments)
    assert run.status == "failed" and "domain[0]" in run.message
    assert stops - 1e-3 <= run.t[-1] <= stops
    # Without the domain the steps go on, though the block should stay where it is, for mu > tan(1/2).
    beyond = da.simulate(incline(), da.SymplecticEuler(), on_failure="return", **arguments)
    assert beyond.t[-1] > stops + 0.01


# -- (4.1) ---------------------------------------------------------------------------------------------------------------


def test_the_stated_solution_of_4_1_solves_4_1() -> None:
    problem = da.problems.nonlinear_multiplier()
    assert problem.exact is not None
    system, step = problem.system, 1e-3
    for t in (0.0, 0.4, 1.0):
        before, here, after = (problem.exact(t + k * step) for k in (-1, 0, 1))
        rate = {name: (after[name] - before[name]) / (2 * step) for name in ("y", "z")}
        values = {"t": t, **here, "psi": np.zeros(0)}
        v, f, r = (system.at(name, values, np.zeros(0)) for name in ("v", "f", "r"))
        np.testing.assert_allclose(v, rate["y"], rtol=1e-6)
        np.testing.assert_allclose(f + r, rate["z"], rtol=1e-6)
        for name in ("g", "g_dot"):
            assert np.max(np.abs(system.at(name, values, np.zeros(0)))) < 1e-14


def test_the_run_of_4_1_has_its_exact_solution_all_along() -> None:
    problem = da.problems.nonlinear_multiplier()
    run = da.simulate(problem, METHOD, h=0.02, steps=50)
    assert problem.exact is not None
    for name, value in problem.exact(run.t).items():
        assert value.shape == getattr(run, name).shape
        np.testing.assert_allclose(getattr(run, name), value, rtol=1e-12)


def test_the_other_root_of_the_multiplier_is_another_solution() -> None:
    problem = da.problems.nonlinear_multiplier()
    for guess, root in ((-0.4, 1.0), (-0.6, -2.0)):  # of lam^2 + lam = 2, on either side of -1/2
        state = da.consistent(problem.system, y0=[1, 1], z0=[1, 1], lam0=[guess])
        assert state.lam[0] == pytest.approx(root, abs=1e-14)


# -- (4.2) ---------------------------------------------------------------------------------------------------------------


def test_mass_on_surface_has_the_constants_and_initial_values_of_the_paper() -> None:
    problem = da.problems.mass_on_surface()
    assert problem.system.params == {"m": 1.0, "b": 0.01, "g": 9.81, "c_f": 0.1, "r_f": 0.85}
    np.testing.assert_allclose(problem.y0, [10.0, 10.0], rtol=1e-15)
    np.testing.assert_allclose(problem.z0, [-3.6, -10.8], rtol=1e-15)
    np.testing.assert_allclose(problem.lam0, [1.7586], rtol=1e-15)
    assert problem.h * problem.steps == 1.0


@pytest.mark.parametrize("r_f", [0.7, 1.0])
def test_mass_on_surface_against_its_abscissa(r_f: float) -> None:
    m, b, g, c_f, x, speed, t1 = 1.3, 0.03, 7.0, 0.2, 6.0, 2.5, 0.9

    def multiplier(x: float, u: float) -> float:
        return m * (g + 6 * b * x * u**2) / (1 + 9 * b**2 * x**4)

    def f(t: float, s: np.ndarray) -> list[float]:
        length, lam = np.sqrt(1 + 9 * b**2 * s[0] ** 4), multiplier(*s)
        return [s[1], (-3 * b * s[0] ** 2 * lam + c_f * (length * lam) ** r_f / length) / m]  # z_1 < 0

    x1, u1 = solve(f, [x, -speed], t1).y[:, -1]
    assert x1 < 2.5
    problem = da.problems.mass_on_surface(m=m, b=b, g=g, c_f=c_f, r_f=r_f, x=x, speed=speed)
    reference = {"y": [x1, b * x1**3], "z": [u1, 3 * b * x1**2 * u1], "lam": [multiplier(x1, u1)]}
    assert_same(end_of(problem, t1, 100, METHOD), **reference)


def test_the_mass_leaves_the_surface_where_its_multiplier_vanishes() -> None:
    b, g, c_f, r_f = 0.01, 9.81, 0.1, 0.85

    def f(t: float, s: np.ndarray) -> list[float]:
        length = np.sqrt(1 + 9 * b**2 * s[0] ** 4)
        lam = max(g + 6 * b * s[0] * s[1] ** 2, 0.0) / length**2
        return [s[1], -3 * b * s[0] ** 2 * lam + c_f * (length * lam) ** r_f / length]

    def takes_off(t: float, s: np.ndarray) -> float:
        return g + 6 * b * s[0] * s[1] ** 2

    (found,) = solve(f, [10.0, -3.6], 2.0, events=takes_off).t_events[0][:1]
    problem = da.problems.mass_on_surface()
    run = da.simulate(problem, da.compose(da.SymplecticEuler(), 2), h=1e-3, steps=2000, on_failure="return")
    assert run.status == "failed" and "domain[0]" in run.message
    assert abs(run.t[-1] - found) < 2e-3
    assert np.all(run.lam > 0) and np.all(np.diff(run.energy) < 0)


# -- the pendulum --------------------------------------------------------------------------------------------------------

PENDULUM = {"m": 1.3, "l": 0.8, "g": 1.7, "mu": 0.4, "radius": 0.15, "angle": 0.6, "rate": 6.0}


def test_pendulum_with_friction_against_its_angle() -> None:
    m, l, g, mu, radius, angle, rate = PENDULUM.values()  # noqa: E741
    t1 = 4.0

    def tension(theta: float, u: float) -> float:
        return m * l * u**2 + m * g * cos(theta)

    def f(t: float, s: np.ndarray) -> list[float]:
        return [s[1], (-m * g * l * sin(s[0]) - mu * radius * tension(*s)) / (m * l**2)]

    theta, u = solve(f, [angle, rate], t1).y[:, -1]
    assert theta > 5.0 and tension(theta, u) > 0
    along, across = np.array([sin(theta), -cos(theta)]), np.array([cos(theta), sin(theta)])
    measured = end_of(da.problems.pendulum_with_friction(**PENDULUM), t1, 200, METHOD)
    assert_same(measured, y=l * along, z=l * u * across, lam=[tension(theta, u)])


def test_the_integral_of_the_turning_pendulum() -> None:
    """d(theta'^2)/d theta = -2 omega^2 sin theta - 2 k (theta'^2 + omega^2 cos theta) is linear, with this integral."""
    problem = da.problems.pendulum_with_friction(**PENDULUM)
    run = da.simulate(problem, METHOD, h=0.02, steps=200)
    _, l, g, mu, radius, *_ = PENDULUM.values()  # noqa: E741
    k = mu * radius / l
    A, B = g / l * np.array([2 - 4 * k**2, -6 * k]) / (1 + 4 * k**2)
    theta = np.unwrap(np.arctan2(run.y[:, 0], -run.y[:, 1]))
    w = np.sum(run.z**2, axis=1) / l**2
    integral = (w - A * cos(theta) - B * sin(theta)) * np.exp(2 * k * theta)
    assert run.lam.min() > 0 and theta[-1] - theta[0] > 2 * np.pi
    assert np.max(np.abs(integral / integral[0] - 1)) < 1e-11


def test_the_pendulum_ends_where_it_would_swing_back() -> None:
    problem = da.problems.pendulum_with_friction(rate=1.8)  # not enough to go round
    run = da.simulate(problem, da.compose(da.SymplecticEuler(), 2), on_failure="return")
    assert run.status == "failed" and "domain[0]" in run.message and np.linalg.norm(run.z[-1]) < 0.02
    assert np.all(np.diff(run.energy) < 0)


# -- the bead ------------------------------------------------------------------------------------------------------------


def bead_reference(
    t1: float, m: float, g: float, b: float, omega: float, mu: float, rho: float, speed: float
) -> dict[str, Any]:
    def forces(rho: float, u: float) -> tuple[float, float]:
        """Across the wire (Coriolis), and normal to it in its own plane (weight, centrifugal force, curvature)."""
        W = np.sqrt(1 + b**2 * rho**2)
        return 2 * m * omega * u, m * (g + b * omega**2 * rho**2 + b * u**2) / W

    def f(t: float, s: np.ndarray) -> list[float]:
        W = np.sqrt(1 + b**2 * s[0] ** 2)
        friction = mu * np.hypot(*forces(*s)) / m
        return [s[1], ((omega**2 - g * b) * s[0] - b**2 * s[0] * s[1] ** 2 - friction * W) / W**2]

    x, u = solve(f, [rho, speed], t1).y[:, -1]
    assert u > 0.1
    e, n = np.array([cos(omega * t1), sin(omega * t1), 0]), np.array([-sin(omega * t1), cos(omega * t1), 0])
    up = np.array([0.0, 0.0, 1.0])
    across, normal = forces(x, u)
    return {
        "y": x * e + b * x**2 / 2 * up,
        "z": u * e + omega * x * n + b * x * u * up,
        "lam": [across, normal / np.sqrt(1 + b**2 * x**2)],
    }


BEAD = {"m": 1.3, "g": 7.0, "b": 0.4, "omega": 3.0, "mu": 0.15, "rho": 0.8, "speed": 0.6}


@pytest.mark.parametrize("change", [{}, {"b": 0.0}, {"b": -0.3}, {"omega": -3.0}, {"g": 0.0}])
def test_bead_on_rotating_wire_against_its_distance_from_the_axis(change: dict[str, float]) -> None:
    constants = BEAD | change
    problem = da.problems.bead_on_rotating_wire(**constants)
    assert problem.exact is None
    assert_same(end_of(problem, 0.8, 60, METHOD), **bead_reference(0.8, **constants))


def test_the_straight_wire_has_its_exact_solution() -> None:
    problem = da.problems.bead_on_rotating_wire(**(BEAD | {"b": 0.0, "g": 0.0}))
    assert problem.exact is not None
    exact = problem.exact(0.8)
    for name, value in bead_reference(0.8, **(BEAD | {"b": 0.0, "g": 0.0})).items():
        np.testing.assert_allclose(exact[name], value, atol=1e-11)
    run = da.simulate(problem, METHOD, h=0.01, steps=80)
    for name, value in problem.exact(run.t).items():
        assert value.shape == getattr(run, name).shape
        np.testing.assert_allclose(getattr(run, name), value, atol=1e-10)


# -- natural and true on friction ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["true", "natural"])
def test_only_the_true_method_converges_on_the_bead(variant: str) -> None:
    problem = da.problems.bead_on_rotating_wire(**BEAD)
    study = da.verify.order(
        problem, da.SymplecticEuler(variant), t1=0.8, steps=[800, 1600, 3200, 6400], reference=bead_reference(0.8, **BEAD)
    )
    if variant == "true":
        assert study.slopes == pytest.approx({"y": 1.0, "z": 1.0, "lam": 1.0}, abs=0.1)
    else:
        assert min(study.errors["z"]) > 3e-2 and study.errors["z"][-1] > 0.7 * study.errors["z"][0]


@pytest.mark.parametrize(("rate", "same"), [(6.0, True), (1.8, False)])
def test_the_natural_method_sees_that_coulomb_friction_is_only_piecewise_linear(rate: float, same: bool) -> None:
    """From the top of the circle: lam > 0 for l rate^2 > g, but the natural method's own Psi_0 only for l rate^2 > 2 g."""
    problem = da.problems.pendulum_with_friction(**(PENDULUM | {"angle": np.pi, "rate": rate}))
    end = end_of(problem, 0.2, 40, METHOD)
    reference = {name: getattr(end, name)[-1] for name in ("y", "z", "lam")}
    natural, true = (
        da.verify.order(problem, da.SymplecticEuler(variant), t1=0.2, steps=[1000, 4000], reference=reference).errors["z"]
        for variant in ("natural", "true")
    )
    if same:
        np.testing.assert_allclose(natural, true, rtol=1e-6)  # Theorem 3.2: r is affine where all multipliers are positive
    else:
        assert true[1] < 0.3 * true[0] and natural[1] > 0.9 * natural[0] > 10 * true[0]


# -- energy --------------------------------------------------------------------------------------------------------------


def test_energy_is_lost_by_the_work_of_friction_alone() -> None:
    surface = da.simulate(da.problems.mass_on_surface(), METHOD)
    normal = np.sqrt(1 + 9 * 0.01**2 * surface.y[:, 0] ** 4) * surface.lam[:, 0]
    turning = da.simulate(da.problems.pendulum_with_friction(**PENDULUM), METHOD)
    lever = PENDULUM["mu"] * PENDULUM["radius"] / PENDULUM["l"]
    for run, force, initial in (
        (surface, 0.1 * normal**0.85, (3.6**2 + 10.8**2) / 2 + 9.81 * 10),
        (turning, lever * turning.lam[:, 0], 1.3 * (0.8 * 6.0) ** 2 / 2 - 1.3 * 1.7 * 0.8 * cos(0.6)),
    ):
        assert run.energy[0] == pytest.approx(initial, rel=1e-14)
        work = simpson(force * np.linalg.norm(run.z, axis=1), x=run.t)
        assert run.energy[0] - run.energy[-1] == pytest.approx(work, rel=1e-6)


def test_the_wire_does_work_on_the_bead() -> None:
    run = da.simulate(da.problems.bead_on_rotating_wire(**BEAD), METHOD)
    rho = np.hypot(run.y[:, 0], run.y[:, 1])
    W = np.sqrt(1 + BEAD["b"] ** 2 * rho**2)
    along = np.sqrt(np.sum(run.z**2, axis=1) - (BEAD["omega"] * rho) ** 2)  # the speed relative to the wire
    normal = np.hypot(run.lam[:, 0], W * run.lam[:, 1])
    power = run.lam[:, 0] * BEAD["omega"] * rho - BEAD["mu"] * normal * along
    assert run.energy[-1] - run.energy[0] == pytest.approx(simpson(power, x=run.t), rel=1e-6)
    start = 0.6**2 * (1 + 0.4**2 * 0.8**2) + (3.0 * 0.8) ** 2
    assert run.energy[0] == pytest.approx(1.3 * start / 2 + 1.3 * 7.0 * 0.4 * 0.8**2 / 2, rel=1e-14)
