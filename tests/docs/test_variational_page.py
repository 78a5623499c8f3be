"""The measured table of docs/variational.md, measured again."""

import numpy as np
import pytest
from test_documentation import DOCS, table

import dalembert as da

RK4 = da.RungeKutta(
    da.Tableau.of([[0, 0, 0, 0], ["1/2", 0, 0, 0], [0, "1/2", 0, 0], [0, 0, 1, 0]], ["1/6", "1/3", "1/3", "1/6"], name="RK4")
)
METHODS = {
    "`LobattoGalerkin(3)`": da.LobattoGalerkin(3),
    "`RK4`": RK4,
    **{f'`Variational("{name}")`': da.Variational(name) for name in ("SE1", "SVC", "midpoint")},
}


@pytest.mark.parametrize(
    "row", table(DOCS / "variational.md", "against the classical Runge-Kutta method"), ids=lambda row: row[0]
)
def test_the_weakly_damped_oscillator_of_the_page(row):
    c, method = 1e-5, METHODS[row[0]]
    root = complex(-c / 2, np.sqrt(1 - c**2 / 4))
    oscillator = da.Lagrangian(lambda q, v: (v @ v - q @ q) / 2, dim=1, force=lambda v: -c * v)
    h, steps = (0.4, 25_000) if method is RK4 else (0.1, 100_000)
    run = da.simulate(oscillator, method, q0=[1.0], v0=[-c / 2], h=h, steps=steps)
    exact = np.exp(root * run.t)
    energy = (exact.real**2 + (root * exact).real ** 2) / 2
    assert -np.polyfit(run.t, np.log(run.energy), 1)[0] / c == pytest.approx(float(row[1]), rel=5e-4)
    assert np.abs(run.energy / energy - 1).max() == pytest.approx(float(row[2]), rel=0.03)


@pytest.mark.parametrize("h", [0.02, 0.01])
def test_fast_translations_stop_se1_and_sva_but_not_svc(h):
    limits = {da.Variational("SE1"): 2.0, da.Variational("SVA"): 4.0, da.LobattoIIIAB(2): 4.0}
    problem, steps = da.problems.cart_pendulum(), round(1.0 / h**2)  # to h |v| = 10
    for method, limit in limits.items():
        run = da.simulate(problem, method, h=h, steps=steps, on_failure="return")
        assert run.status == "failed"
        assert h * abs(run.v[-1, 0]) == pytest.approx(limit, rel=0.1), method
    assert da.simulate(problem, da.Variational("SVC"), h=h, steps=steps).status == "done"
