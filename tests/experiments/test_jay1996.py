"""Data that the experiments of Jay (1996) must fail on, and the references that they rest on."""

import math

import numpy as np
import pytest
from experiment_data import broken, computed, copied, cut, exchanged, failed, plus, replaced, scaled

import dalembert as da
from dalembert import experiments
from dalembert.experiments.jay1996 import double_pendulum, orders, sphere, stiff_spring

# -- what must fail fails ------------------------------------------------------------------------------------------------


def energy(change):
    return lambda data: {"H": change(data["t"], data["H"])}


PORTRAIT_1, PORTRAIT_2 = ("x", "p_x", "z", "p_z"), ("x1", "p_x1", "z2", "p_z2")
WRONG = {
    "jay1996.figure5.1": {
        "a part of the portrait": cut(PORTRAIT_1, 300),
        "momenta 1 % too large": scaled("p_z", 1.01),
        "off the sphere": plus("g", 1e-12),
        "off the hidden constraint": plus("g_dot", 1e-12),
        "not a number": broken("x", 17),
    },
    "jay1996.figure5.2": {
        "a drift of 3 % of the band": energy(lambda t, H: H + 2.5e-10 * t),
        "the exact value as printed": energy(lambda t, H: H + 0.4808336955 - H[0]),
        "one step outside": energy(lambda t, H: np.where(t == t[2500], H + 1e-4, H)),
        "swings that grow": energy(lambda t, H: H[0] + (H - H[0]) * (1 + 0.3 * t / t[-1])),
        "not a number": energy(lambda t, H: np.where(t == t[777], np.nan, H)),
    },
    "jay1996.figure5.3": {
        "on the portrait": lambda data: {name: data["exact_" + name][::4] for name in PORTRAIT_1},
        "projected, on the portrait": lambda data: {"projected_" + name: data["exact_" + name][::4] for name in PORTRAIT_1},
        "unprojected on the hidden constraint": scaled("g_dot", 1e-10),
        "projected off the hidden constraint": copied("projected_g_dot", "g_dot"),
    },
    "jay1996.figure5.4": {
        "no drift": copied("plain", "lobatto"),
        "no drift with projection": copied("projected", "lobatto"),
        "a drift that stops": lambda data: {"plain": np.maximum(data["plain"], -0.2)},
        "projection halves the drift": lambda data: {"projected": data["projected"][0] / 2 + data["projected"] / 2},
        "Lobatto drifts": lambda data: {"lobatto": data["lobatto"] - 1e-5 * data["t"]},
    },
    "jay1996.figure5.5": {
        "a part of the portrait": cut(PORTRAIT_2, 300),
        "momenta 2 % too large": scaled("p_x1", 1.02),
        "off the links": plus("g", 1e-12),
        "not a number": broken("z2", 5),
    },
    "jay1996.figure5.6": {
        "a drift of 3 % of the band": energy(lambda t, H: H + 5e-10 * t),
        "a wrong initial value": energy(lambda t, H: H + 1e-9),
        "one step outside": energy(lambda t, H: np.where(t == t[2500], H + 1e-4, H)),
        "swings that grow": energy(lambda t, H: H[0] + (H - H[0]) * (1 + 0.3 * t / t[-1])),
        "not a number": energy(lambda t, H: np.where(t == t[777], np.nan, H)),
    },
    "jay1996.figure5.7": {
        "Gauss and Radau exchanged": exchanged("gauss", "radau"),
        "projected and unprojected Radau exchanged": exchanged("radau", "radau_projected"),
        "equal drifts": copied("radau", "radau_projected"),
        "another ranking for small h": exchanged("rate_gauss", "rate_radau"),
        "another ranking for loose iterations": exchanged("loose_radau", "loose_radau_projected"),
        "no drift": lambda data: {"gauss": data["gauss"][0] + 0 * data["gauss"]},
        "a rate of order 2": lambda data: {"rate_gauss": 1e-2 * data["h"] ** 2},
    },
    "jay1996.figure5.8": {
        "Gauss of order 3": copied("gauss_q", "radau_projected_q"),
        "p of Radau of order 3": copied("radau_p", "radau_q"),
        "Lambda_s of order 2": copied("radau_lam", "radau_p"),
        "Lobatto of order 3.8": lambda data: {"lobatto_lam": data["lobatto_lam"] * (data["h"] / data["h"][-1]) ** -0.2},
        "Lobatto less accurate than Gauss": scaled("lobatto_lam", 10.0),
        "not a number": broken("lobatto_q", 3),
    },
    "jay1996.gauss_diverges": {
        "it converges": lambda data: {"pendulum_t0": np.linspace(0, 6, 51), "pendulum_H0": np.zeros(51)},
        "it converges as h tends to 0": scaled("sphere_H3", 0.01),
        "constraints kept": scaled("pendulum_g0", 1e-12),
    },
    "jay1996.structure": {
        "Lobatto, not symplectic": replaced("sphere_symplecticity", 4, 1e-12),
        "Lobatto, not reversible": replaced("pendulum_reversibility", 0, 1e-12),
        "Radau, symplectic": lambda data: {"pendulum_symplecticity": np.minimum(data["pendulum_symplecticity"], 1e-8)},
        "not a number": broken("sphere_reversibility", 0),
    },
    "jay1996.stiff_spring": {
        "RATTLE goes on": copied("lobatto2", "midpoint"),
        "three stages go on": copied("lobatto3", "radau2"),
        "RATTLE blows up early": replaced("lobatto2", 2, np.inf),
        "Radau blows up": replaced("radau2", -1, np.inf),
    },
    "jay1996.heavy_top": {
        "vertical momentum lost": lambda data: {"lobatto_vertical": data["lobatto_vertical"] + 1e-14 * data["lobatto_t"]},
        "axial momentum lost": lambda data: {"lobatto_axial": data["lobatto_axial"] + 1e-14 * data["lobatto_t"]},
        "a drift of the energy": lambda data: {"lobatto_energy": data["lobatto_energy"] + 1e-10 * data["lobatto_t"]},
        "not a number": broken("lobatto_energy", 9),
        "Radau conserves": lambda data: {"radau_vertical": np.ones(5)},
    },
}  # fmt: skip


def test_a_method_that_drifts_fails_figures_5_5_and_5_6():
    run = da.simulate(da.problems.double_pendulum(), da.RadauIIA(stages=2), h=0.12, steps=5000)
    assert failed("jay1996.figure5.6", {"t": run.t, "H": run.energy})
    residuals = {name: np.max(np.abs(values), axis=1) for name, values in run.residuals.items()}
    ours = {"x1": run.q[:, 0], "p_x1": run.p[:, 0], "z2": run.q[:, 3], "p_z2": run.p[:, 3], **residuals}
    names = failed("jay1996.figure5.5", dict(computed("jay1996.figure5.5")) | ours)
    assert any("farthest point" in name for name in names) and "largest |g_dot|" in names


# -- details -------------------------------------------------------------------------------------------------------------


def test_figure_5_6_is_drawn_and_written(tmp_path):
    result = experiments.run("jay1996.figure5.6", out=tmp_path, formats=("png", "pdf"))
    assert result.holds, str(result)
    assert len(result.data["t"]) == 5001 and result.data["t"][-1] == pytest.approx(600.0)
    assert [path.suffix for path in result.files] == [".png", ".pdf"]
    first, _ = result.figure.axes
    drawn = first.lines[-1].get_data()
    assert len(drawn[0]) == 501 and drawn[0][-1] == pytest.approx(60.0)
    np.testing.assert_allclose(drawn[1], result.data["H"][:501] + 3 * math.sqrt(0.75), atol=1e-15)


def test_figure_5_5_draws_the_points_of_the_run():
    data = computed("jay1996.figure5.5")
    left, right = (ax.lines[-1].get_data() for ax in experiments.find("jay1996.figure5.5").draw(data).axes)
    np.testing.assert_array_equal(left, (data["x1"], data["p_x1"]))
    np.testing.assert_array_equal(right, (data["z2"], data["p_z2"]))


def test_the_exact_motions_agree_with_a_method_of_order_ten():
    run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=6), h=0.05, steps=400)
    t, exact = double_pendulum.exact_double_pendulum(20.0, samples=401)
    np.testing.assert_allclose(t, run.t, atol=1e-12)
    np.testing.assert_allclose(exact, [run.q[:, 0], run.p[:, 0], run.q[:, 3], run.p[:, 3]], atol=1e-8)
    run = da.simulate(da.problems.charged_particle_on_sphere(), da.LobattoIIIAB(stages=6), h=0.05, steps=400)
    t, exact = sphere.exact_particle(20.0, samples=401)
    np.testing.assert_allclose(exact, [run.q[:, 0], run.p[:, 0], run.q[:, 2], run.p[:, 2]], atol=1e-8)


def test_the_reference_of_figure_5_8_agrees_with_a_method_of_order_ten():
    run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=6), h=5 / 400, steps=400, save_every=400)
    for name, value in orders.reference().items():
        np.testing.assert_allclose(value, getattr(run, name)[-1], atol=2e-12)


def test_the_exact_values_of_the_hamiltonians():
    assert f"{sphere.ENERGY:.10f}" == "0.4808336953"  # printed: 0.4808336955
    assert f"{double_pendulum.ENERGY:.10f}" == "-2.5980762114"  # printed, cut off: -2.5980762113


@pytest.mark.parametrize(("stages", "limit"), [(2, 2.0), (3, math.sqrt(8)), (4, math.sqrt(42 - 6 * math.sqrt(29)))])
def test_limits_of_linear_stability(stages, limit):
    assert stiff_spring.stability_limit(stages) == pytest.approx(limit, abs=2e-6)
