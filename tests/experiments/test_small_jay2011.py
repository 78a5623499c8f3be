"""Every experiment of Small and Jay (2011) holds, and its predicate fails on data that should fail it."""

import functools

import numpy as np
import pytest

import dalembert as da
from dalembert import experiments
from dalembert.experiments import _registry
from dalembert.experiments.small_jay2011 import existence

NAMES = [name for name in experiments.names() if name.startswith("small_jay2011.")]


@functools.cache
def computed(name):
    return experiments.find(name).compute(False)


def failed(name, data):
    return [check.name for check in experiments.find(name).holds(data) if not check.passes]


def test_the_examples_and_theorems_are_all_here():
    assert [name.split(".")[1] for name in NAMES] == ["pendulum", "skate", "orders", "existence"]


@pytest.mark.parametrize("name", NAMES)
def test_the_claim_holds_and_is_drawn(name, tmp_path):
    data, experiment = computed(name), experiments.find(name)
    checks = experiment.holds(data)
    assert len(checks) >= 4 and all(check.passes for check in checks), "\n".join(map(str, checks))
    file = _registry._write(experiment, experiment.draw(data), tmp_path, ("png",))[0]
    assert 10_000 < file.stat().st_size < 600_000


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_claim_holds_at_full_length(name):
    result = experiments.run(name, full=True)
    assert result.holds, str(result)


# -- what must fail fails ------------------------------------------------------------------------------------------------


def scaled(name, factor):
    return lambda data: {name: factor * data[name]}


def replaced(name, index, value):
    def change(data):
        changed = np.array(data[name], dtype=float)
        changed.flat[index] = value
        return {name: changed}

    return change


def flatter(name, h, by):
    """Errors whose slope is lower by so much."""
    return lambda data: {name: data[name] * (data[h] / data[h][0]) ** -by}


WRONG = {
    "small_jay2011.pendulum": {
        "a drift of 3 % of the band": lambda data: {"fine_energy": data["fine_energy"] + 2e-14 * data["fine_t"]},
        "swings that grow": lambda data: {"coarse_energy": data["coarse_energy"] * (1 + 0.1 * data["coarse_t"] / 100)},
        "third order": scaled("fine_energy", 5.0),
        "positions of third order": scaled("fine_error", 5.0),
        "off the circle": lambda data: {"fine_g": data["fine_g"] + 1e-13},
        "off the hidden constraint": lambda data: {"coarse_g_dot": data["coarse_g_dot"] + 1e-13},
        "not a number": replaced("coarse_energy", 17, np.nan),
    },
    "small_jay2011.skate": {
        "one method implemented twice": lambda data: {
            name.replace("spark", "emprk"): values for name, values in data.items() if name.startswith("spark")
        },
        "the methods exchanged": lambda data: {"spark_energy": data["emprk_energy"], "emprk_energy": data["spark_energy"]},
        "EMPRK of fourth order in the energy": scaled("emprk_half_energy", 4.0),
        "off k": lambda data: {"emprk_k": data["emprk_k"] + 1e-13},
        "off g": lambda data: {"spark_g": data["spark_g"] + 1e-13},
        "positions off by 1e-4": lambda data: {"spark_error_q": data["spark_error_q"] + 1e-4},
        "psi of the stages": lambda data: {"spark_error_psi": data["spark_error_psi"] + 1e-4},
        "not a number": replaced("spark_energy", 3, np.nan),
    },
    "small_jay2011.orders": {
        "s = 2 of order 3.8 in p": flatter("spark2_p", "h2", 0.2),
        "s = 3 of order 5 in psi": flatter("emprk3_psi", "h3", 1.0),
        "s = 4 of order 7 in q": flatter("emprk4_q", "h4", 1.0),
        "one method implemented twice": lambda data: {"emprk2_q": data["spark2_q"]},
        "different methods for s = 1": scaled("emprk1_q", 1.1),
        "not a number": replaced("spark3_q", -1, np.nan),
    },
    "small_jay2011.existence": {
        "multipliers that converge although g = O(h^2)": lambda data: {"spark_g": _faster(data, "spark_g", 1)},
        "multipliers that stay bounded although k = O(1)": lambda data: {"emprk_k": _faster(data, "emprk_k", 3)},
        "no convergence although g_dot = O(h^2)": lambda data: {"spark_g_dot": _slower(data, "spark_g_dot", 1)},
        "the printed data do no harm": lambda data: {"printed_lam": np.ones_like(data["h"])},
        "the printed length is kept": lambda data: {"printed_length": np.ones_like(data["h"])},
        "not a number": replaced("emprk_g", -1, np.nan),
    },
}  # fmt: skip


def _faster(data, name, row):
    rows = data[name].copy()
    rows[row] *= data["h"]
    return rows


def _slower(data, name, row):
    rows = data[name].copy()
    rows[row] /= data["h"]
    return rows


def test_every_experiment_is_tried_on_wrong_data():
    assert set(WRONG) == set(NAMES)


@pytest.mark.parametrize(("name", "words"), [(name, words) for name, cases in WRONG.items() for words in cases])
def test_wrong_data_fail(name, words):
    data = computed(name)
    assert failed(name, dict(data) | WRONG[name][words](data))


# -- details -------------------------------------------------------------------------------------------------------------


def test_the_perturbed_states_violate_one_constraint_by_what_is_asked_for():
    problem = da.problems.skate(speed=0.3)
    start = problem.exact(existence.START)
    for constraint in ("g", "g_dot", "k"):
        residuals = existence.perturbed(problem.system, start["q"], start["p"], constraint, 1e-3).residuals
        for name, value in residuals.items():
            assert value == pytest.approx([1e-3 if name == constraint else 0.0], abs=1e-15), (constraint, name)
        state = existence.perturbed(problem.system, start["q"], start["p"], constraint, 1e-3)
        with pytest.raises(da.InconsistentStart):
            da.simulate(problem.system, da.GaussLobattoSPARK(2), q0=state.q, p0=state.p, h=0.1, steps=1)


def test_internal_multipliers_solve_the_step_equations():
    """y_1 and z_1 of the skate for one stage, from Lambda_0, Lambda_1 and Psi_1 as the slides state the method."""
    problem, h = da.problems.skate(speed=0.3), 0.1
    start = problem.exact(existence.START)
    state = existence.perturbed(problem.system, start["q"], start["p"], "g", 0.0)
    new, Lam, Psi = existence.internal_multipliers(problem.system, da.GaussLobattoSPARK(1), state, h)
    y0, y1, z0 = state.q, new.q, state.p

    def r(y, lam):
        d = y[2:] - y[:2]
        return np.concatenate([d, -d]) * lam

    Y = (y0 + y1) / 2
    d = Y[2:] - Y[:2]
    f = np.array([0.5, 0, 0.5, 0]) - np.tile([-d[1], d[0]], 2) * Psi[0]
    Z = z0 + h / 2 * (f + r(y0, Lam[0]))
    assert np.abs(y1 - (y0 + h * 2 * Z)).max() < 1e-14  # v = 2 p
    assert np.abs(new.p - (z0 + h * f + h / 2 * (r(y0, Lam[0]) + r(y1, Lam[1])))).max() < 1e-14
