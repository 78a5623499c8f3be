"""Identification of masses and damping from noisy data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import binom, chi2
from scipy.stats import f as f_distribution
from scipy.stats import t as student

import dalembert as da

METHOD, H, STEPS = da.GaussLobattoSPARK(2), 0.01, 120
TRUE = {"m1": 0.2, "m2": 0.35, "c": 0.05}


def four_bar():
    """Points A and B of a crank (0.1 m), a coupler (0.4 m) and a rocker (0.3 m), 0.4 m apart; a known spring pulls at A."""
    return da.Lagrangian(
        lambda q, v, m1, m2: (
            (m1 * v[:2] @ v[:2] + m2 * v[2:] @ v[2:]) / 2 - 9.81 * (m1 * q[1] + m2 * q[3]) - 20 * q[0] ** 2 / 2
        ),
        dim=4,
        holonomic=lambda q: [
            q[0] ** 2 + q[1] ** 2 - 0.1**2,
            (q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 0.4**2,
            (q[2] - 0.4) ** 2 + q[3] ** 2 - 0.3**2,
        ],
        force=lambda v, c: np.array([-c * v[0], -c * v[1], -c * v[2], -c * v[3]]),
        params=TRUE,
    )


START = da.consistent(four_bar(), q0=[0.09, -0.04, 0.4, 0.3], v0=[0.0, 0.0, 0.0, 0.0])


def measured(seed, noise=2e-4):
    run = da.simulate(four_bar(), METHOD, q0=START.q, v0=START.v, h=H, steps=STEPS)
    return run.t[::4], run.q[::4] + noise * np.random.default_rng(seed).standard_normal(run.q[::4].shape)


def identified(seed):
    t, data = measured(seed)
    guess = {"m1": 0.25, "m2": 0.3, "c": 0.1}
    return da.fit(four_bar(), METHOD, t, data, params=guess, q0=START.q, v0=START.v, h=H)


def test_masses_and_damping_of_a_four_bar(tmp_path):
    """True values within the 95 % intervals in most cases, and the noise is found as well."""
    inside = []
    for seed in range(4):
        found = identified(seed)
        ends = found.confidence(0.95)
        inside += [bool(ends[name][0] < TRUE[name] < ends[name][1]) for name in TRUE]
        assert abs(found.sigma - 2e-4) < 4e-5
        assert all(abs(found.values[name] - TRUE[name]) < 5 * found.std[name] < 0.05 * TRUE[name] for name in TRUE)
    assert sum(inside) >= 9  # fewer than that of 12 have a probability of 2e-3
    assert found.plot(tmp_path / "fit.png").axes[0].get_xlabel() == "t"


@pytest.mark.slow
def test_confidence_in_a_thousand_cases():
    """Intervals of 95 % for each number, and the joint region, contain the truth in 95 % of cases, as far as 1000 can tell.

    How many of 1000 do is binomial; each of the four counts is outside of these bounds with a probability of 0.2 % if the
    covariance is right. The errors in units of their standard deviations have the variance of Student's t.
    """
    counts, errors = dict.fromkeys([*TRUE, "joint"], 0), []
    for seed in range(5000, 6000):
        found = identified(seed)
        ends = found.confidence(0.95)
        for name in TRUE:
            counts[name] += bool(ends[name][0] < TRUE[name] < ends[name][1])
        counts["joint"] += found.contains(TRUE)
        errors.append([(found.values[name] - TRUE[name]) / found.std[name] for name in TRUE])
    print(counts, np.mean(errors, axis=0), np.std(errors, axis=0))
    least, most = binom.ppf([0.001, 0.999], 1000, 0.95)
    assert all(least <= count <= most for count in counts.values()), counts
    assert np.abs(np.mean(errors, axis=0)).max() < 4 / np.sqrt(1000)
    assert np.abs(np.var(errors, axis=0) - 1).max() < 5 * np.sqrt(2 / 1000)


def line(noise=0.0):
    """Free motion q = v0 t with 11 data, a linear problem whose confidence is known exactly."""
    free = da.Lagrangian(lambda v, m: m * v @ v / 2, dim=1, params={"m": 0.2})
    t = np.arange(11) * 0.1
    return free, t, 3.0 * t[:, None] + noise * np.array([1.0, -1, 1, 1, -1, 1, -1, -1, 1, -1, 1])[:, None]


def test_intervals_and_regions_of_a_straight_line():
    """std = sigma / |t| for a slope; the region of two numbers is bounded by 2 F(2, 9), that of a known sigma by chi^2."""
    free, t, data = line(0.01)
    given = dict(q0=[0.0], h=0.1)
    found = da.fit(free, da.Gauss(1), t, data, params={"v0": [2.0]}, **given)
    slope = t @ data[:, 0] / (t @ t)
    sigma = np.sqrt(np.sum((data[:, 0] - slope * t) ** 2) / 10)
    np.testing.assert_allclose(
        [found.values["v0"][0], found.sigma, found.std["v0"][0]], [slope, sigma, sigma / np.linalg.norm(t)]
    )
    assert found.misfit == pytest.approx(1.0)
    half = student.ppf(0.975, 10) * sigma / np.linalg.norm(t)
    np.testing.assert_allclose(found.confidence()["v0"], [[slope - half], [slope + half]])
    assert found.contains({"v0": [slope + 0.999 * half]}) and not found.contains({"v0": [slope - 1.001 * half]})
    both = da.fit(free, da.Gauss(1), t, data, params={"v0": [2.0], "q0": [0.1]}, h=0.1)
    A = np.column_stack([np.ones(11), t])
    (start, slope), squares = np.linalg.lstsq(A, data[:, 0])[:2]
    for factor, inside in ((0.999, True), (1.001, False)):
        d = np.array([0.6, -0.8])
        d *= factor * np.sqrt(2 * f_distribution.ppf(0.9, 2, 9) * squares[0] / 9 / (d @ A.T @ A @ d))
        assert both.contains({"q0": [start + d[0]], "v0": [slope + d[1]]}, level=0.9) is inside
        known = da.fit(free, da.Gauss(1), t, data, params={"v0": [2.0], "q0": [0.1]}, h=0.1, sigma=0.01)
        d *= np.sqrt(chi2.ppf(0.9, 2) * 0.01**2 / (2 * f_distribution.ppf(0.9, 2, 9) * squares[0] / 9))
        assert known.contains({"q0": [start + d[0]], "v0": [slope + d[1]]}, level=0.9) is inside
    for wrong in ({"m": 1.0}, {}, {"v0": [1.0, 2.0]}):
        with pytest.raises(da.InputError):
            both.contains(wrong)
    with pytest.raises(da.InputError, match="probability"):
        both.contains({"v0": [1.0]}, level=95)


def test_residuals_that_contradict_sigma_are_said():
    """sigma three times too small, right, and a hundred times too large."""
    free, t, data = line(0.01)
    given = dict(params={"v0": [2.0]}, q0=[0.0], h=0.1)
    with pytest.warns(UserWarning, match="the model does not describe the data") as warned:
        found = da.fit(free, da.Gauss(1), t, data, sigma=0.003, **given)
    assert warned[0].filename == __file__
    assert found.misfit == pytest.approx(np.sqrt(np.sum(found.residuals**2) / 10) / 0.003)
    with pytest.warns(UserWarning, match="sigma is too large"):
        da.fit(free, da.Gauss(1), t, data, sigma=1.0, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        da.fit(free, da.Gauss(1), t, data, sigma=0.01, **given)


def test_a_start_gives_positions_and_velocities():
    """A thrown mass that is braked: the velocity is known, whatever the mass that is sought; parameters come with the start."""
    braked = da.Lagrangian(
        lambda q, v, m, g: m * v @ v / 2 - m * g * q[0], dim=1, force=lambda v, c: -c * v, params={"m": 0.3, "g": 1.0, "c": 0.1}
    )
    start = da.consistent(braked, q0=[1.0], v0=[4.0], t0=2.0, params={"g": 9.81})
    run = da.simulate(braked, da.Gauss(3), q0=[1.0], v0=[4.0], t0=2.0, params={"m": 0.2, "g": 9.81}, h=0.05, steps=20)
    for model in ({"start": start}, {"q0": [1.0], "v0": [4.0], "t0": 2.0, "fixed": {"g": 9.81}}):
        found = da.fit(braked, da.Gauss(3), run.t, run.q, params={"m": 0.3}, h=0.05, **model)
        assert abs(found.values["m"] - 0.2) < 1e-10
    with pytest.raises(da.InputError, match="either start="):
        da.fit(braked, da.Gauss(3), run.t, run.q, params=["m"], h=0.05, start=start, q0=[1.0])
    with pytest.raises(da.InputError, match=r"that da\.consistent returned"):
        da.fit(braked, da.Gauss(3), run.t, run.q, params=["m"], h=0.05, start=[1.0, 2.0])


def test_restitution_is_identified_from_bounces():
    """A dropped ball: e from the heights after its impact, by derivatives through it."""
    ball = da.Lagrangian(
        lambda q, v, g: 0.1 * v @ v - 0.2 * g * q[0], dim=1, unilateral=lambda q: q[0], restitution=lambda e: e,
        params={"g": 9.81, "e": 0.9},
    )  # fmt: skip
    t, z0, e = np.arange(71) * 0.01, 1.0, 0.7
    bounce, speed = np.sqrt(2 * z0 / 9.81), np.sqrt(2 * 9.81 * z0)
    after = np.maximum(t - bounce, 0.0)
    data = np.where(t < bounce, z0 - 9.81 * t**2 / 2, e * speed * after - 9.81 * after**2 / 2)
    found = da.fit(ball, da.CVA(da.Gauss(2)), t, data, params={"e": 0.8, "g": 9.5}, q0=[z0], v0=[0.0], h=0.01)
    assert abs(found.values["e"] - e) < 1e-9 and abs(found.values["g"] - 9.81) < 1e-8


def test_lengths_and_initial_values():
    """A length of the constraints moves the start; with exact data the fit finds everything to round-off."""
    pendulum = da.Lagrangian(
        lambda q, v, g: v @ v / 2 - g * q[1], dim=2, holonomic=lambda q, r: [q @ q - r**2], params={"r": 0.5, "g": 1.0}
    )
    start = da.consistent(pendulum, q0=[0.3, -0.4], v0=[1.0, 0.75], params={"g": 9.81})
    run = da.simulate(pendulum, da.LobattoIIIAB(3), start=start, params={"g": 9.81}, h=0.02, steps=100)
    found = da.fit(
        pendulum,
        da.LobattoIIIAB(3),
        run.t,
        run.q[:, 0],
        params={"r": 0.55, "v0": [0.8, 0.6]},
        observe=lambda q: q[:1],
        bounds={"r": (0.4, 0.7)},
        fixed={"g": 9.81},
        q0=[0.3, -0.4],
        h=0.02,
    )
    assert abs(found.values["r"] - 0.5) < 1e-10
    moved = da.consistent(pendulum, q0=[0.3, -0.4], v0=found.values["v0"], params={"r": 0.5, "g": 9.81})
    np.testing.assert_allclose(moved.v, [1.0, 0.75], atol=1e-9)  # the part that leaves the circle has no effect


def test_what_data_do_not_determine_is_said():
    """Free motion depends on the ratio of masses alone; two data do not suffice; times must be ends of steps."""
    free = da.Lagrangian(
        lambda q, v, m1, m2: (m1 * v[0] ** 2 + m2 * v[1] ** 2) / 2 - m1 * q[0] * q[1], dim=2, params={"m1": 1.0, "m2": 2.0}
    )
    given = dict(q0=[1.0, 0.5], v0=[0.0, 0.0], h=0.1)
    run = da.simulate(free, da.Gauss(2), steps=20, **given)
    with pytest.raises(da.InputError, match="do not determine"):
        da.fit(free, da.Gauss(2), run.t, run.q, params=["m1", "m2"], **given)
    with pytest.raises(da.InputError, match="more data"):
        da.fit(free, da.Gauss(2), run.t[1:2], run.q[1:2, :1], params={"m1": 1.1, "m2": 2.0}, observe=lambda q: q[:1], **given)
    with pytest.raises(da.InputError, match="ends of steps"):
        da.fit(free, da.Gauss(2), [0.05], run.q[:1], params=["m1"], **given)
    with pytest.raises(da.InputError, match="shape"):
        da.fit(free, da.Gauss(2), run.t, run.q[:, :1], params=["m1"], **given)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"params": 3}, "each once"),
        ({"params": {"k": "stiff"}}, "guess of 'k'"),
        ({"params": {"k": [1.0, 2.0]}}, "guess of 'k'"),
        ({"params": {"k": np.nan}}, "guess of 'k'"),
        ({"params": {"q0": [1.0, 2.0]}}, "q0"),
        ({"params": {"q0": "x"}}, "q0"),
        ({"bounds": {"k": (5.0, 6.0)}}, "not within its bounds"),
        ({"bounds": {"k": (6.0, 2.0)}}, "must not exceed"),
        ({"bounds": {"k": (3.0, 3.0)}}, "no choice"),
        ({"bounds": {"k": 5.0}}, "pair"),
        ({"bounds": {"k": ("a", "b")}}, "bound of 'k'"),
        ({"bounds": {"m": (0.0, 1.0)}}, "not sought"),
        ({"bounds": 5.0}, "bounds maps"),
        ({"data": "cos"}, "data"),
        ({"data": np.full((21, 1), np.nan)}, "data must be finite"),
        ({"t": "now"}, "times t"),
        ({"t": [0.0, np.inf]}, "times t"),
        ({"t": [[0.0], [0.1]]}, "ends of steps"),
        ({"t0": "x"}, "t0"),
        ({"sigma": 0.0}, "positive"),
        ({"sigma": -1.0}, "positive"),
        ({"sigma": [0.1, 0.2]}, "sigma"),
        ({"sigma": "small"}, "sigma"),
        ({"sigma": np.nan}, "sigma"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(change, words):
    spring = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 3.0})
    t = np.arange(21) * 0.1
    given = {"t": t, "data": np.cos(2 * t)[:, None], "params": ["k"], "q0": [1.0], "p0": [0.0], "h": 0.1} | change
    with pytest.raises(da.DalembertError, match=words):
        da.fit(spring, da.Gauss(2), **given)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"t": [0.0, 0.1, 1e308], "h": 0.05}, "steps of h"),
        ({"h": 5e-324}, "steps of h"),
        ({"sigma": 5e-324}, "sigma has the units"),
        ({"sigma": 1e-300}, "sigma has the units"),
        ({"params": np.array("k")}, "params names what is sought"),
    ],
    ids=str,
)
def test_numbers_that_overflow_are_refused(change, words):
    spring = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 3.0})
    given = {"t": [0.0, 0.1, 0.2], "data": [1.0, 0.9, 0.8], "params": ["k"], "q0": [1.0], "p0": [0.0], "h": 0.1} | change
    with pytest.raises(da.InputError, match=words):
        da.fit(spring, da.Gauss(1), **given)


@pytest.mark.parametrize("wrong", [None, 1.0, [None], [[1, 2], [3, 4]]], ids=str)
def test_values_of_a_region_are_given_by_name(wrong):
    spring = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 3.0})
    t = np.arange(0.0, 1.0, 0.1)
    found = da.fit(spring, da.Gauss(1), t, np.cos(2 * t) + 1e-3 * np.sin(50 * t), params=["k"], q0=[1.0], p0=[0.0], h=0.1)
    with pytest.raises(da.InputError, match="values by name"):
        found.contains(wrong)
