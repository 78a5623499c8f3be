"""Methods for DAEs of index 2 and nonholonomic constraints: orders, coincidences, reversibility, small theorems, refusals.

Equation numbers refer to S. K. Hilden, Numerical methods for nonholonomic mechanics, Master's thesis, NTNU (2009).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import method_models as models
import mpmath
import numpy as np
import pytest
from method_table import ladder
from numpy import cos, sin, sqrt
from scipy.optimize import least_squares

import dalembert as da
from dalembert import tableaux
from dalembert.systems._consistent import unpack

GROWTH, PARTS = da.problems.index_two_growth(), da.problems.index_two_growth_in_parts()
OSCILLATOR = da.problems.perturbed_contact_oscillator(eps=0.8, vz0=0.3)
SLEIGH = da.problems.chaplygin_sleigh(speed=0.4, turning=0.6)
EULER_2 = da.compose(da.NonholonomicEuler(), 2)
TOLERANCE = 0.15


def identity(x: Any) -> str:
    return getattr(x, "name", str(x)).removeprefix("da.")


def reference(problem: da.problems.Problem) -> dict[str, np.ndarray]:
    """The solution at t = 3 (1 for the DAEs): exact, or that of the model of the table."""
    return problem.exact(1.0) if problem.exact else (models.sleigh() if problem is SLEIGH else models.oscillator()).reference


def measured(problem: da.problems.Problem, method: da.OneStepMethod, steps: tuple[int, ...]) -> da.verify.OrderStudy:
    known, t1 = reference(problem), 1.0 if problem.exact else 3.0
    return da.verify.order(problem, method, reference=known, t1=t1, steps=steps, points=4, round_off=6e-13)


# -- orders --------------------------------------------------------------------------------------------------------------

T = tableaux
ORDERS = [  # on DAEs of index 2; those on mechanical systems are measured by the table of methods
    # Theorem 2.5: Lobatto SPARK, 2s - 2
    (PARTS, da.LobattoSPARK(2), 2, ladder(80, 320)),
    (PARTS, da.LobattoSPARK(3), 4, ladder(80, 300)),
    (PARTS, da.LobattoSPARK(4), 6, ladder(8, 40)),
    (GROWTH, da.LobattoSPARK(3), 4, ladder(40, 160)),
    # Theorem 2.7: SRK Gauss, 2s, and SRK Radau IA, 2s - 1 (s = 4 in multiprecision below)
    (GROWTH, da.SRK("gauss", 1), 2, ladder(80, 320)),
    (GROWTH, da.SRK("gauss", 2), 4, ladder(40, 160)),
    (GROWTH, da.SRK("gauss", 3), 6, ladder(10, 50)),
    (GROWTH, da.SRK("radau-ia", 2), 3, ladder(40, 200)),
    (PARTS, da.SRK("radau-ia", 3), 5, ladder(14, 60)),
    # table 2.1: (2.15) with Gauss, s + 1 or s; Radau IA, s; Radau IIA, 2s - 1; Lobatto IIIA and IIIC, 2s - 2
    (GROWTH, da.Gauss(1), 2, ladder(80, 400)),
    (GROWTH, da.Gauss(2), 2, ladder(80, 400)),
    (GROWTH, da.Gauss(3), 4, ladder(40, 160)),
    (GROWTH, da.Gauss(4), 4, ladder(40, 100)),
    (PARTS, da.RungeKutta(T.radau_ia(2)), 2, ladder(400, 1600)),
    (PARTS, da.RungeKutta(T.radau_ia(3)), 3, ladder(80, 300)),
    (GROWTH, da.RungeKutta(T.radau_ia(4)), 4, ladder(40, 160)),
    (PARTS, da.RadauIIA(2), 3, ladder(40, 200)),
    (PARTS, da.RadauIIA(3), 5, ladder(20, 80)),
    (PARTS, da.RadauIIA(4), 7, ladder(6, 14)),
    (GROWTH, da.RungeKutta(T.lobatto_iiia(2)), 2, ladder(80, 320)),
    (GROWTH, da.RungeKutta(T.lobatto_iiia(3)), 4, ladder(40, 160)),
    (GROWTH, da.RungeKutta(T.lobatto_iiia(4)), 6, ladder(8, 40)),
    (PARTS, da.LobattoIIIC(2), 2, ladder(200, 800)),
    (PARTS, da.LobattoIIIC(3), 4, ladder(60, 160)),
    (PARTS, da.LobattoIIIC(4), 6, ladder(8, 22)),
    # (4.3), of order 1 where M depends on q, is (3.4) where it does not
    (OSCILLATOR, da.McLachlanPerlmutter(variable_mass=True), 2, ladder(80, 320)),
]


@pytest.mark.parametrize(("problem", "method", "order", "steps"), ORDERS, ids=identity)
def test_order(problem: da.problems.Problem, method: da.OneStepMethod, order: int, steps: list[int]) -> None:
    study = measured(problem, method, steps)
    for component, slope in study.slopes.items():
        if isinstance(method, da.Gauss) and method.stages == 1 and component == "z":
            continue  # z follows from the state: at this t its leading error nearly vanishes
        assert study.used[component].sum() >= 3, f"{component}: no window above round-off\n{study}"
        assert abs(slope - order) < TOLERANCE, f"{component}: expected {order}\n{study}"


@pytest.mark.parametrize(("coefficients", "order"), [("radau-ia", 7), ("gauss", 8)])
def test_order_of_srk_with_four_stages_in_multiprecision(coefficients: Any, order: int) -> None:
    """In double precision a near-cancellation hides the order of Radau IA, and that of Gauss has no window."""
    context = mpmath.mp.clone()
    context.dps = 45
    errors = []
    for n in (12, 24, 48):
        h = context.mpf(1) / n
        end = da.verify.multiprecision_run(PARTS.system, da.SRK(coefficients, 4), y0=[1, 1], z0=[1], h=h, steps=n, digits=40)
        errors.append(float(context.hypot(end.y[0] - context.e, end.y[1] - context.exp(-2))))
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert abs(slopes[-1] - order) < TOLERANCE, (errors, slopes)


# -- coincidences --------------------------------------------------------------------------------------------------------


def final(problem: Any, method: da.OneStepMethod, h: float = 0.05, steps: int = 20, **start: Any) -> np.ndarray:
    return da.simulate(problem, method, h=h, steps=steps, progress=False, **start).states[-1]


def assert_same(first: np.ndarray, second: np.ndarray) -> None:
    assert np.max(np.abs(first - second)) < 2e-13 * max(1.0, np.abs(first).max())


def assert_different(first: np.ndarray, second: np.ndarray) -> None:
    assert np.max(np.abs(first - second)) > 1e-10


@pytest.mark.parametrize("stages", [2, 3])
def test_any_invertible_L_gives_the_same_solution(stages: int) -> None:
    """(2.19), among others the L that the thesis names."""
    random = np.random.default_rng(1).standard_normal((stages, stages))
    special = np.linalg.inv(np.vstack([T.lobatto_iiia(stages).A[1:], np.eye(stages)[-1]]))
    plain = final(PARTS, da.LobattoSPARK(stages))
    for L in (random, special):
        assert_same(plain, final(PARTS, da.LobattoSPARK(stages, L=tuple(tuple(row) for row in L))))


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_srk_gauss_is_gauss_lobatto_spark_where_there_is_k_alone(stages: int) -> None:
    for problem in (OSCILLATOR, SLEIGH, da.problems.vertical_disk()):
        assert_same(final(problem, da.SRK("gauss", stages)), final(problem, da.GaussLobattoSPARK(stages)))


def growth_in_part(m: int) -> da.IndexTwoDAE:
    """(2.28) with all of f in part m."""

    def f(y: Any, z: Any) -> list[Any]:
        return [y[0] * y[1] ** 2 * z[0] ** 2, y[0] ** 2 * y[1] ** 2 - 3 * y[1] ** 2 * z[0]]

    nothing = [lambda y: 0 * y] * (m - 1)
    return da.IndexTwoDAE(parts=[*nothing, f], g=lambda y: [y[0] ** 2 * y[1] - 1], dim_y=2, dim_z=1)


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_spark_and_srk_coincide_on_one_part(stages: int) -> None:
    """The rows of A_1 below the first span b^T C^(i-1), i < s: both are orthogonal to the Legendre polynomial at the nodes.

    Hence f_3 alone is SRK with Lobatto IIIC, and f_5 alone SRK with Lobatto IIID; IIIB and IIIC* are singular.
    """
    start = {"y0": [1, 1], "z0": [1.0], "h": 0.02}
    for m, family, other in ((3, T.lobatto_iiic, 5), (5, T.lobatto_iiid, 3)):
        spark = final(growth_in_part(m), da.LobattoSPARK(stages), **start)
        assert_same(spark, final(growth_in_part(m), da.SRK(family(stages)), **start))
        if stages < 4:  # where errors stand above round-off
            assert_different(spark, final(growth_in_part(other), da.LobattoSPARK(stages), **start))


@pytest.mark.parametrize("stages", [2, 3])
def test_srk_with_stiffly_accurate_coefficients_is_the_plain_method(stages: int) -> None:
    """Y_s = y_1 leaves s - 1 weighted sums of s - 1 residuals: all of these vanish. Radau IA is not stiffly accurate."""
    for family in (T.radau_iia, T.lobatto_iiic):
        assert_same(final(GROWTH, da.SRK(family(stages)), h=0.02), final(GROWTH, da.RungeKutta(family(stages)), h=0.02))
    assert_different(final(GROWTH, da.SRK("radau-ia", stages)), final(GROWTH, da.RungeKutta(T.radau_ia(stages))))


def test_mclachlan_perlmutter_is_the_composition_of_its_euler_map_where_the_mass_is_constant() -> None:
    """The intermediate constraint of section 3.3.2 changes the multipliers alone; with M(q), (4.3) is another method."""
    assert_same(final(OSCILLATOR, da.McLachlanPerlmutter()), final(OSCILLATOR, EULER_2))
    assert_same(final(OSCILLATOR, da.McLachlanPerlmutter()), final(OSCILLATOR, da.McLachlanPerlmutter(variable_mass=True)))
    assert_different(final(SLEIGH, da.McLachlanPerlmutter(variable_mass=True)), final(SLEIGH, EULER_2))


def test_generalised_mclachlan_perlmutter_solves_the_printed_equations_of_the_sleigh() -> None:
    """(4.3b), written for the sleigh with m = a = I = 1 and g = 0.1, at one step of the method."""
    h = 0.1
    run = da.simulate(SLEIGH, da.McLachlanPerlmutter(variable_mass=True), h=h, steps=1)
    (q0, q1), (v0, v1) = run.q, run.v
    before, half = (q0 - h / 2 * v0)[2], (q0 + h / 2 * v0)[2]
    left = [
        v1[0] - v1[2] * sin(half),
        v1[1] + v1[2] * cos(half),
        2 * v1[2] - sin(half) * (v1[0] - h * v1[1] * v1[2]) - cos(half) * (-v1[1] - h * v1[0] * v1[2]),
    ]
    right = [v0[0] - v0[2] * sin(before), v0[1] + v0[2] * cos(before), 2 * v0[2] - v0[0] * sin(before) + v0[1] * cos(before)]
    rest = np.array(left) - right - h * np.array([0, -0.1, -0.1 * cos(half)])
    A = np.array([-sin(half), cos(half), 0])
    lam = rest @ A / h
    assert np.max(np.abs(rest - h * lam * A)) < 1e-15
    assert np.max(np.abs(q1 - q0 - h / 2 * (v0 + v1))) < 1e-15 and abs(-sin(q1[2]) * v1[0] + cos(q1[2]) * v1[1]) < 1e-15


def in_form(problem: da.problems.Problem, **options: Any) -> tuple[da.IndexTwoDAE, dict[str, np.ndarray]]:
    """A problem as a DAE of index 2, with its start."""
    dae = da.IndexTwoDAE.of(problem.system, **options)
    second = problem.v0
    if options.get("form", "hamiltonian") == "hamiltonian":
        second = problem.system.evaluate("L_v", 0.0, problem.q0, problem.v0)
    return dae, {"y0": np.concatenate([problem.q0, second])}


@pytest.mark.parametrize("method", [da.LobattoSPARK(2), da.LobattoSPARK(3), da.SRK("gauss", 2), da.RadauIIA(2)], ids=identity)
def test_the_hamiltonian_form_is_the_mechanical_system(method: da.OneStepMethod) -> None:
    for problem in (OSCILLATOR, SLEIGH):
        dae, start = in_form(problem)
        assert_same(final(problem, method), final(dae, method, **start))


@pytest.mark.parametrize(
    ("method", "order", "steps"),
    [(da.LobattoSPARK(3), 4, ladder(40, 120)), (da.SRK("gauss", 2), 4, ladder(20, 100))],
    ids=identity,
)
def test_the_lagrangian_form_has_the_same_order_and_is_the_same_where_the_mass_is_constant(
    method: da.OneStepMethod, order: int, steps: list[int]
) -> None:
    dae, start = in_form(OSCILLATOR, form="lagrangian")
    assert_same(final(OSCILLATOR, method), final(dae, method, **start))
    dae, start = in_form(SLEIGH, form="lagrangian")
    hamiltonian = da.simulate(SLEIGH, method, h=0.05, steps=20)
    assert_different(np.concatenate([hamiltonian.q[-1], hamiltonian.v[-1]]), final(dae, method, **start))
    known = reference(SLEIGH)
    v = SLEIGH.system.evaluate("v", 3.0, known["q"], known["p"])
    study = da.verify.order(
        dae,
        method,
        reference={"y": np.concatenate([known["q"], v]), "z": -known["psi"]},
        t1=3.0,
        steps=steps,
        points=4,
        **start,
    )
    assert all(abs(slope - order) < TOLERANCE for slope in study.slopes.values()), study


@pytest.mark.parametrize("parts", [(2, 2), (1, 3), (1, 5), (4, 5), (5, 5)])
def test_another_decomposition_is_another_method_of_the_same_order(parts: tuple[int, int]) -> None:
    dae, start = in_form(OSCILLATOR, parts=parts)
    assert_different(final(OSCILLATOR, da.LobattoSPARK(3)), final(dae, da.LobattoSPARK(3), **start))
    known = reference(OSCILLATOR)
    y = np.concatenate([known["q"], known["p"]])
    study = da.verify.order(
        dae, da.LobattoSPARK(3), reference={"y": y, "z": -known["psi"]}, t1=3.0, steps=ladder(60, 200), points=4, **start
    )
    assert all(abs(slope - 4) < TOLERANCE for slope in study.slopes.values()), study


# -- reversibility -------------------------------------------------------------------------------------------------------


def in_the_middle(problem: da.problems.Problem) -> da.State:
    """A state along the motion: starts have symmetries that hide defects."""
    run = da.simulate(problem, da.SRK("gauss", 3), h=0.05, steps=20)
    return da.consistent(problem.system, q0=run.q[-1], p0=run.p[-1])


@pytest.mark.parametrize(
    ("method", "problem", "symmetric"),
    [
        (da.LobattoSPARK(2), SLEIGH, True),
        (da.LobattoSPARK(3), SLEIGH, True),
        (da.LobattoSPARK(4), OSCILLATOR, True),
        (da.RadauIIA(2), SLEIGH, False),
    ],
    ids=identity,
)
def test_reversibility_defect(method: da.OneStepMethod, problem: da.problems.Problem, symmetric: bool) -> None:
    assert method.symmetric in (symmetric, None)  # None: it depends on the parts
    h = 0.12 if symmetric else 0.4
    defect = da.verify.reversibility_defect(problem.system, method, h=h, start=in_the_middle(problem))
    assert defect < 1e-13 if symmetric else defect > 1e-8, defect


def test_plain_lobatto_iiia_is_not_symmetric_on_a_dae_of_index_two() -> None:
    """Its Z_1 is computed from y_0, its Z_s is not that of y_1, although its tableau is symmetric."""
    method = da.RungeKutta(T.lobatto_iiia(3))
    assert T.symmetry(method.tableau) < 1e-15
    assert da.verify.reversibility_defect(SLEIGH.system, method, h=0.4, start=in_the_middle(SLEIGH)) > 1e-9


def next_point(system: da.Lagrangian, method: da.OneStepMethod, q: np.ndarray, v: np.ndarray, h: float) -> da.State:
    """One step from (q, v), where the mass matrix is the identity, whether or not k holds."""
    return da.verify.step(system, method, h=h, start=unpack(system, 0.0, np.concatenate([q, v]), system.parameters.vector()))


def test_cortes_martinez_is_reversible_as_a_two_step_method() -> None:
    """Definition 3.6, F R_d F = R_d: from q_0, q_1 to q_2, and back from q_2, q_1 to q_0."""
    h = 0.1
    run = da.simulate(OSCILLATOR, da.CortesMartinez(), h=h, steps=9)
    q0, q1, q2 = run.q[-3:]
    assert np.max(np.abs(next_point(OSCILLATOR.system, da.CortesMartinez(), q1, (q1 - q0) / h, h).q - q2)) < 1e-14
    assert np.max(np.abs(next_point(OSCILLATOR.system, da.CortesMartinez(), q1, (q1 - q2) / h, h).q - q0)) < 1e-14


def test_mclachlan_perlmutter_is_reversible_as_a_two_step_method() -> None:
    """Definition 3.6 in the points of (3.5), (3.6): Q_-1 = q - h v / 2, Q_0 = q + h v / 2, which R_d exchanges."""
    h, system, method = 0.1, OSCILLATOR.system, da.McLachlanPerlmutter()
    state = in_the_middle(OSCILLATOR)
    before, now = state.q - h / 2 * state.p, state.q + h / 2 * state.p
    there = next_point(system, method, state.q, state.p, h)
    after = there.q + h / 2 * there.p
    assert np.max(np.abs(there.q - h / 2 * there.p - now)) < 1e-15  # the steps join in Q_0
    back = next_point(system, method, (after + now) / 2, (now - after) / h, h)
    assert np.max(np.abs(back.q + h / 2 * back.p - before)) < 1e-14


# -- 3.3.3: McLachlan and Perlmutter's method as a SPARK method --------------------------------------------------------------


def test_spark_with_the_pair_exchanged_is_overdetermined() -> None:
    """(3.8): with (3.8e) no v_1, Z_1 + Z_2 solve the equations; without it they are those of (3.4)."""
    state = in_the_middle(OSCILLATOR)
    n, eps = 3, 0.8

    def spark(h: float, with_e: bool) -> tuple[float, np.ndarray]:
        half = state.q + h / 2 * state.p
        pull = half + eps * np.array([half[0] * half[2] ** 2, 0, half[0] ** 2 * half[2]])

        def A(q: np.ndarray) -> np.ndarray:
            return np.array([1.0, 0.0, q[1]])

        def defects(x: np.ndarray) -> np.ndarray:
            v1, lam = x[:n], x[n]
            q1 = half + h / 2 * v1  # (3.8g)
            rows = [v1 - state.p - h * (-pull + A(half) * lam), [A(q1) @ v1]]  # (3.8d,h), (3.8f)
            return np.concatenate([*rows, *([[A(half) @ (state.p + v1) / 2]] if with_e else [])])

        found = least_squares(defects, [*state.p, 0.0], xtol=1e-15, ftol=1e-15, gtol=1e-15)
        return float(np.linalg.norm(found.fun)), found.x[:n]

    for h in (0.1, 0.05):
        dropped, v1 = spark(h, with_e=False)
        assert dropped < 1e-14
        method = next_point(OSCILLATOR.system, da.McLachlanPerlmutter(), state.q, state.p, h)
        assert np.max(np.abs(method.p - v1)) < 1e-14
    residuals = [spark(h, with_e=True)[0] for h in (0.04, 0.02, 0.01)]
    assert min(residuals) > 1e-6
    assert np.log2(np.array(residuals[:-1]) / residuals[1:]) == pytest.approx(2, abs=0.2)  # an error of second order
    dae, start = in_form(OSCILLATOR, form="lagrangian", parts=(2, 1))  # (3.7)
    with pytest.raises(da.UnsupportedSystem, match="f_1 must not depend on z"):
        da.simulate(dae, da.LobattoSPARK(2), h=0.1, steps=1, **start)


# -- the rolling disk ----------------------------------------------------------------------------------------------------


def test_phase_error_on_the_rolling_disk_grows_at_the_predicted_rate() -> None:
    """Theta falls behind at the rate Omega R^2 (1 - k) / (1 + R^2 k), k = (1 + cos(omega h)) / 2, while energy is constant."""
    problem, h = da.problems.vertical_disk(), 0.1
    run = da.simulate(problem, da.LobattoSPARK(2), h=h, steps=10_000)
    k, square = (1 + cos(2 * h)) / 2, 0.25**2
    error = run.q[:, 3] - problem.exact(run.t)["q"][:, 3]
    assert abs(error[-1]) == pytest.approx(1000 * square * (1 - k) / (1 + square * k), rel=0.01)
    assert error[5000] == pytest.approx(error[-1] / 2, rel=0.01)  # linearly
    assert np.ptp(run.energy) < 1e-13
    exact = da.simulate(problem, da.McLachlanPerlmutter(), h=h, steps=10_000)
    assert np.max(np.abs(exact.q[:, 3] - exact.t)) < 0.01  # bounded for (3.4)


# -- the contact oscillator ----------------------------------------------------------------------------------------------

POINCARE = [da.LobattoSPARK(2), da.McLachlanPerlmutter()]


@pytest.mark.parametrize("method", POINCARE, ids=identity)
@pytest.mark.parametrize("N", [7, 40])
def test_y_has_period_N_at_the_step_size_two_sin_pi_over_N(method: da.OneStepMethod, N: int) -> None:
    problem = da.problems.contact_oscillator(vz0=0.3)
    run = da.simulate(problem, method, h=2 * sin(np.pi / N), steps=100 * N)
    y = np.column_stack([run.q[:, 1], run.v[:, 1]])
    assert np.max(np.abs(y[N:] - y[:-N])) < 1e-12
    assert np.max(np.abs(y[:N] - y[0]), axis=1)[1:].min() > 0.05  # and no shorter one


def flow(b: float, t1: float) -> np.ndarray:
    """Y(t1) of the linear equations (4.7) for (x, z, w), w = sqrt(1 + b^2 cos^2 t) v_z."""

    def f(t: float, y: np.ndarray) -> np.ndarray:
        root = sqrt(1 + (b * cos(t)) ** 2)
        alpha, beta = -b * cos(t) / root, 1 / root
        return (np.array([[0, 0, alpha], [0, 0, beta], [-alpha, -beta, 0]]) @ y.reshape(3, 3)).ravel()

    return models.dop853(f, np.eye(3).ravel(), t1).reshape(3, 3)


def axis_of(rotation: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eig(rotation)
    return np.real(vectors[:, np.argmin(abs(values - 1))])


def start_at(b: float, xi: np.ndarray) -> dict[str, np.ndarray]:
    """q and v with y = b, v_y = 0 from (x, z, w)."""
    x, z, w = xi
    v_z = w / sqrt(1 + b**2)
    return {"q0": np.array([x, b, z]), "v0": np.array([-b * v_z, 0.0, v_z])}


def strobed(method: da.OneStepMethod, b: float, xi: np.ndarray, h: float, every: int, periods: int) -> np.ndarray:
    """(x, z, w) after every 2 pi."""
    system = da.problems.contact_oscillator().system
    run = da.simulate(system, method, h=h, steps=every * periods, save_every=every, progress=False, **start_at(b, xi))
    return np.column_stack([run.q[:, 0], run.q[:, 2], sqrt(1 + b**2) * run.v[:, 2]])


XI = np.array([0.9, 0.6, 0.4])
EXACT = {"method": da.SRK("gauss", 4), "h": 2 * np.pi / 200, "every": 200}


def test_orbits_of_case_i_are_circles_of_period_two_pi() -> None:
    """b = 0: x stays, and (z, v_z) turns."""
    Y = flow(0.0, 1.1)
    assert np.max(np.abs(Y - [[1, 0, 0], [0, cos(1.1), sin(1.1)], [0, -sin(1.1), cos(1.1)]])) < 1e-12
    orbit = strobed(b=0.0, xi=XI, periods=5, **EXACT)
    assert np.max(np.abs(orbit - XI)) < 1e-10
    run = da.simulate(da.problems.contact_oscillator(b=0.0), da.LobattoSPARK(2), h=0.1, steps=1000)
    assert np.max(np.abs(run.q[:, 0] - run.q[0, 0])) < 1e-13  # to round-off at any step size


def test_orbits_of_case_ii_on_the_axis_have_period_two_pi() -> None:
    Omega = flow(1.0, 2 * np.pi)
    assert np.max(np.abs(Omega @ Omega.T - np.eye(3))) < 1e-12 and np.linalg.det(Omega) == pytest.approx(1, abs=1e-12)
    axis = axis_of(Omega)
    orbit = strobed(b=1.0, xi=axis, periods=5, **EXACT)
    assert np.max(np.abs(orbit - axis)) < 1e-10


def test_orbits_of_case_iii_turn_about_the_axis_by_a_fixed_angle() -> None:
    Omega = flow(1.0, 2 * np.pi)
    orbit = strobed(b=1.0, xi=XI, periods=5, **EXACT)
    for k, xi in enumerate(orbit):
        assert np.max(np.abs(xi - np.linalg.matrix_power(Omega, k) @ XI)) < 1e-9
    assert np.max(np.abs(orbit[1] - XI)) > 0.1
    assert np.ptp(orbit @ axis_of(Omega)) < 1e-9 and np.ptp(np.linalg.norm(orbit, axis=1)) < 1e-9


@pytest.mark.parametrize("method", POINCARE, ids=identity)
def test_the_discrete_poincare_map_is_linear_with_eigenvalues_of_modulus_one(method: da.OneStepMethod) -> None:
    """Hence no orbit can drift; its angle tends to that of (4.7) with order 2."""
    angle = np.angle(np.linalg.eigvals(flow(1.0, 2 * np.pi))).max()
    errors = []
    for N in (40, 80):
        h = 2 * sin(np.pi / N)
        columns = [strobed(method, 1.0, unit, h, N, 1)[-1] for unit in np.eye(3)]
        discrete = np.column_stack(columns)
        assert np.max(np.abs(discrete @ XI - strobed(method, 1.0, XI, h, N, 1)[-1])) < 5e-13  # linear
        values = np.linalg.eigvals(discrete)
        assert np.max(np.abs(np.abs(values) - 1)) < 1e-12
        errors.append(abs(np.angle(values).max() - angle))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


# -- constraints ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        (da.LobattoSPARK(2), OSCILLATOR),
        (da.LobattoSPARK(3), OSCILLATOR),
        (da.LobattoSPARK(2), da.problems.vertical_disk()),
        (da.SRK("gauss", 2), OSCILLATOR),
        (da.SRK("radau-ia", 2), OSCILLATOR),
        (da.McLachlanPerlmutter(), OSCILLATOR),
        (da.McLachlanPerlmutter(), da.problems.vertical_disk()),
        (EULER_2, OSCILLATOR),
    ],
    ids=identity,
)
def test_constraints_hold_to_round_off_over_a_million_steps(method: da.OneStepMethod, problem: da.problems.Problem) -> None:
    """Relative to the state: the angles of the disk grow to 2e5."""
    run = da.simulate(problem, method, h=0.1, steps=1_000_000, progress=False)
    size = np.maximum(1, np.maximum(np.abs(run.q).max(axis=1), np.abs(run.v).max(axis=1)))
    assert np.max(np.abs(run.residuals["k"]) / size[:, None]) < 1e-13


def test_methods_without_the_end_condition_report_their_residuals() -> None:
    for method in (da.Gauss(2), da.RungeKutta(T.radau_ia(2)), da.CortesMartinez()):
        assert "k" not in method.keeps
        run = da.simulate(OSCILLATOR, method, h=0.1, steps=100)
        assert np.max(np.abs(run.residuals["k"])) > 1e-6
    run = da.simulate(OSCILLATOR, da.CortesMartinez(), h=0.1, steps=100)
    middle, v = (run.q[1:] + run.q[:-1]) / 2, np.diff(run.q, axis=0) / 0.1
    assert np.max(np.abs(v[:, 0] + middle[:, 1] * v[:, 2])) < 1e-13  # (3.3): at midpoints


# -- refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "method", "sentence"),
    [
        (GROWTH, da.RungeKutta(T.lobatto_iiib(3)), "Lobatto IIIB cannot serve .* its matrix A is singular: use da.RadauIIA"),
        (OSCILLATOR, da.RungeKutta(T.lobatto_iiib(3)), "Lobatto IIIB cannot serve"),
        (OSCILLATOR, da.RungeKutta(T.lobatto_iiic_star(3)), r"Lobatto IIIC\* cannot serve"),
        (SLEIGH, da.McLachlanPerlmutter(), r"M constant.*: use da.compose\(da.NonholonomicEuler\(\), 2\)"),
        (SLEIGH, da.CortesMartinez(), r"M constant.*: use da.compose\(da.NonholonomicEuler\(\), 2\)"),
        (da.problems.skate(), da.LobattoSPARK(2), r"without holonomic constraints: use da.GaussLobattoSPARK"),
        (da.problems.skate(), da.SRK("gauss", 2), r"without holonomic constraints: use da.GaussLobattoSPARK"),
        (da.problems.skate(), da.McLachlanPerlmutter(), r"nonholonomic constraints only: use da.GaussLobattoSPARK"),
        (da.problems.skate(), EULER_2, r"nonholonomic constraints only: use da.GaussLobattoSPARK"),
        (OSCILLATOR, da.Gauss(2, projected=True), "projects onto holonomic constraints only: use da.SRK"),
    ],
    ids=identity,
)
def test_methods_refuse_what_they_cannot_serve(problem: da.problems.Problem, method: da.OneStepMethod, sentence: str) -> None:
    with pytest.raises(da.UnsupportedSystem, match=sentence):
        da.simulate(problem, method, steps=1)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: da.LobattoSPARK(1), "stages >= 2; got stages=1"),
        (lambda: da.LobattoSPARK(2, L=((1.0, 2.0), (2.0, 4.0))), "L is an invertible 2 x 2 matrix"),
        (lambda: da.LobattoSPARK(3, L=((1.0, 0.0), (0.0, 1.0))), "L is an invertible 3 x 3 matrix"),
        (lambda: da.SRK("radau-iia", 2), '"gauss", "radau-ia" or a da.Tableau'),
        (lambda: da.SRK(T.lobatto_iiib(3)), "need an invertible matrix A, and that of Lobatto IIIB is singular"),
        (lambda: da.SRK("radau-ia", 1), "stages >= 2; got stages=1"),
    ],
)
def test_methods_refuse_bad_options(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(da.InputError, match=sentence):
        make()


def test_index_two_forms_refuse_what_they_are_not() -> None:
    with pytest.raises(da.UnsupportedSystem, match="nonholonomic constraints alone"):
        da.IndexTwoDAE.of(da.problems.skate().system)
    with pytest.raises(da.UnsupportedSystem, match=r"needs a da\.Lagrangian"):
        hamiltonian = da.Hamiltonian(lambda p: p @ p / 2, dim=2, nonholonomic=lambda q, v: [v[0] + q[0] * v[1]])
        da.IndexTwoDAE.of(hamiltonian, form="lagrangian")
    with pytest.raises(da.ModelError, match="numbers from 1 to 5"):
        da.IndexTwoDAE.of(SLEIGH.system, parts=(0, 2))
    with pytest.raises(da.ModelError, match='"hamiltonian" or "lagrangian"'):
        da.IndexTwoDAE.of(SLEIGH.system, form="newton")
    with pytest.raises(da.ModelError, match="one to five functions"):
        da.IndexTwoDAE(parts=[lambda y: y] * 6, g=lambda y: [y[0]], dim_y=2, dim_z=1)
    with pytest.raises(da.ModelError, match="2 constraints for 1 algebraic"):
        da.IndexTwoDAE(parts=[lambda y, z: [z[0], y[0]]], g=lambda y: [y[0], y[1]], dim_y=2, dim_z=1)
