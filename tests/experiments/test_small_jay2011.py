"""Data that the experiments of Small and Jay (2011) must fail on, and what they rest on."""

import numpy as np
import pytest
from experiment_data import broken, copied, plus, scaled

import dalembert as da
from dalembert.experiments.small_jay2011 import existence, orders

# -- what must fail fails ------------------------------------------------------------------------------------------------


def flatter(name, h, by):
    """Errors whose slope is lower by so much."""
    return lambda data: {name: data[name] * (data[h] / data[h][0]) ** -by}


WRONG = {
    "small_jay2011.pendulum": {
        "a drift of 3 % of the band": lambda data: {"fine_energy": data["fine_energy"] + 2e-14 * data["fine_t"]},
        "swings that grow": lambda data: {"coarse_energy": data["coarse_energy"] * (1 + 0.1 * data["coarse_t"] / 100)},
        "third order": scaled("fine_energy", 5.0),
        "positions of third order": scaled("fine_error", 5.0),
        "off the circle": plus("fine_g", 1e-13),
        "off the hidden constraint": plus("coarse_g_dot", 1e-13),
        "not a number": broken("coarse_energy", 17),
    },
    "small_jay2011.skate": {
        "one method implemented twice": lambda data: {
            name.replace("spark", "emprk"): values for name, values in data.items() if name.startswith("spark")
        },
        "the methods exchanged": lambda data: {"spark_energy": data["emprk_energy"], "emprk_energy": data["spark_energy"]},
        "EMPRK of fourth order in the energy": scaled("emprk_half_energy", 4.0),
        "off k": plus("emprk_k", 1e-13),
        "off g": plus("spark_g", 1e-13),
        "positions off by 1e-4": plus("spark_error_q", 1e-4),
        "psi of the stages": plus("spark_error_psi", 1e-4),
        "not a number": broken("spark_energy", 3),
    },
    "small_jay2011.orders": {
        "s = 2 of order 3.8 in p": flatter("spark2_p", "h2", 0.2),
        "s = 3 of order 5 in psi": flatter("emprk3_psi", "h3", 1.0),
        "s = 4 of order 7 in q": flatter("emprk4_q", "h4", 1.0),
        "one method implemented twice": copied("emprk2_q", "spark2_q"),
        "different methods for s = 1": scaled("emprk1_q", 1.1),
        "not a number": broken("spark3_q", -1),
    },
    "small_jay2011.existence": {
        "multipliers that converge although g = O(h^2)": lambda data: {"spark_g": _faster(data, "spark_g", 1)},
        "multipliers that stay bounded although k = O(1)": lambda data: {"emprk_k": _faster(data, "emprk_k", 3)},
        "no convergence although g_dot = O(h^2)": lambda data: {"spark_g_dot": _slower(data, "spark_g_dot", 1)},
        "the printed data do no harm": lambda data: {"printed_lam": np.ones_like(data["h"])},
        "the printed length is kept": lambda data: {"printed_length": np.ones_like(data["h"])},
        "not a number": broken("emprk_g", -1),
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


# -- figures -------------------------------------------------------------------------------------------------------------


def test_the_figure_of_orders_has_its_marks_and_slopes_inside_its_axes():
    h = {f"h{s}": orders.T1 / np.array(orders.STEPS[s]) for s in orders.STAGES}
    data = h | {
        f"{method}{s}_{name}": h[f"h{s}"] ** (2 * s)
        for method in ("spark", "emprk") for s in orders.STAGES for name in orders.COMPONENTS
    }  # fmt: skip
    figure = orders.draw_orders(data)
    figure.canvas.draw()
    for ax in figure.axes:
        frame = ax.get_window_extent()
        slopes = [text.get_window_extent() for text in ax.texts]
        assert len(slopes) == 4 and all(frame.x0 + 1 < box.x0 and box.x1 < frame.x1 for box in slopes)
        marks = np.concatenate([ax.transData.transform(line.get_xydata())[:, 0] for line in ax.lines])
        assert frame.x0 + 5 < marks.min() and marks.max() < frame.x1 - 5
