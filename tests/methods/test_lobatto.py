"""The theorems on Lobatto IIIA-IIIB methods, and their relatives, beyond what the table checks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import method_models as models
import mpmath
import numpy as np
import pytest
from scipy.optimize import fsolve

import dalembert as da
from dalembert import tableaux


def rattle_by_hand(q, p, h):
    """Andersen's algorithm for the double pendulum with unit masses, lengths and gravity, in plain NumPy."""
    U_q = np.array([0.0, 1.0, 0.0, 1.0])

    def g(q):
        return np.array([np.hypot(q[0], q[1]) - 1, np.hypot(q[2] - q[0], q[3] - q[1]) - 1])

    def G(q):
        a, d = q[:2] / np.hypot(*q[:2]), (q[2:] - q[:2]) / np.hypot(*(q[2:] - q[:2]))
        return np.array([[*a, 0, 0], [*-d, *d]])

    def half(lam):
        return p - h / 2 * (U_q + G(q).T @ lam)

    lam = np.zeros(2)
    for _ in range(50):  # Newton with the matrix of SHAKE
        lam = lam + np.linalg.solve(G(q + h * half(lam)) @ G(q).T * h**2 / 2, g(q + h * half(lam)))
    q1 = q + h * half(lam)
    free = half(lam) - h / 2 * U_q
    mu = np.linalg.solve(G(q1) @ G(q1).T, G(q1) @ free)
    return q1, free - G(q1).T @ mu


def test_the_two_stage_method_is_rattle():
    problem = da.problems.double_pendulum()
    run = da.simulate(problem, da.LobattoIIIAB(2), h=0.1, steps=20)
    q, p = problem.q0, problem.p0
    for k in range(1, 21):
        q, p = rattle_by_hand(q, p, 0.1)
        assert np.abs(run.q[k] - q).max() < 1e-13 * k
        assert np.abs(run.p[k] - p).max() < 1e-12 * k


def test_shake_is_the_two_step_method_and_has_rattles_positions():
    problem = da.problems.double_pendulum()
    h = 0.05
    shake = da.simulate(problem, da.Shake(), h=h, steps=400)
    rattle = da.simulate(problem, da.Rattle(), h=h, steps=400)
    assert np.abs(shake.q - rattle.q).max() < 1e-11
    for n in range(1, 400):
        second_difference = (shake.q[n + 1] - 2 * shake.q[n] + shake.q[n - 1]) / h**2 + np.array([0, 1, 0, 1])
        G = problem.system.evaluate("G", 0.0, shake.q[n])
        off = second_difference - G.T @ np.linalg.lstsq(G.T, second_difference, rcond=None)[0]
        assert np.abs(off).max() < 1e-10  # the rest is a constraint force of q_n


@pytest.mark.parametrize("s", range(2, 12))
def test_theorem_4_2_gives_order_2s_minus_2_from_the_coefficients(s):
    pair = da.PartitionedRungeKutta(tableaux.lobatto_iiia(s), tableaux.lobatto_iiib(s))
    assert set(pair.order.values()) == {2 * s - 2}
    assert pair.symplectic
    assert pair.symmetric


def test_the_general_pair_is_the_lobatto_method():
    problem = da.problems.double_pendulum()
    pair = da.PartitionedRungeKutta(tableaux.lobatto_iiia(4), tableaux.lobatto_iiib(4))
    one, other = (da.simulate(problem, method, steps=100) for method in (pair, da.LobattoIIIAB(4)))
    assert np.array_equal(one.q, other.q)


@pytest.mark.parametrize("family", [tableaux.radau_iia, tableaux.lobatto_iiic, tableaux.gauss])
def test_pairs_that_fail_the_hypotheses_are_refused_by_name(family):
    tableau = family(3)
    method = da.PartitionedRungeKutta(tableau, tableaux.symplectic_dual(tableau))
    with pytest.raises(da.UnsupportedSystem, match=rf"{tableau.name}.*\(3\.1[02]\)"):
        da.simulate(da.problems.double_pendulum(), method)
    # without constraints the same pair is a good symplectic method
    model = models.double_pendulum_in_angles()
    assert da.verify.symplecticity_defect(model.system, method, h=0.1, **model.start) < 1e-13


@pytest.mark.parametrize("s", [2, 3, 4])
def test_the_stage_multiplier_has_order_s_minus_1_only(s):
    model = models.double_pendulum()
    steps = {2: [320, 640, 1280], 3: [160, 320, 640], 4: [80, 160, 320]}[s]
    study = da.verify.order(
        model.system,
        da.LobattoIIIAB(s),
        reference={"stage_lam": model.reference["lam"]},
        t1=model.t1,
        steps=steps,
        **model.start,
    )
    assert abs(study.slopes["stage_lam"] - (s - 1)) < 0.15, study


@pytest.mark.parametrize("s", [2, 3, 4])
def test_local_errors_of_theorem_4_1(s):
    """delta q = O(h^{2s-1}); p and lambda at least that: the local error of a method of order 2s-2."""
    model = models.magnetic_surface()
    start = da.consistent(model.system, q0=model.q0, p0=model.p0)
    h = {2: [0.02, 0.01, 0.005], 3: [0.1, 0.05, 0.025], 4: [0.11, 0.08, 0.06]}[s]
    errors = {"q": [], "p": [], "lam": []}
    for size in h:
        one = da.verify.step(model.system, da.LobattoIIIAB(s), h=size, start=start)
        right = models.underlying_reference(model.system, start, size)
        for name, values in errors.items():
            values.append(np.linalg.norm(getattr(one, name) - right[name]))
    for name, values in errors.items():
        slope, used = da.verify.slope(h, values, floor=1e-14)
        assert used.sum() == 3, (name, values)
        assert slope > 2 * s - 1 - 0.3, (name, slope, values)
    assert abs(da.verify.slope(h, errors["q"])[0] - (2 * s - 1)) < 0.35


@dataclass(frozen=True)
class InUnequalSteps(da.OneStepMethod):
    """Three steps of a method, of sizes that vary by a factor three."""

    method: da.OneStepMethod

    @property
    def order(self):
        return self.method.order

    @property
    def substeps(self):
        return tuple((self.method, fraction) for fraction in (1 / 6, 1 / 2, 1 / 3))

    def equations(self, system, step):
        raise AssertionError("its substeps are compiled")


@pytest.mark.parametrize("s", [2, 3])
def test_theorem_4_2_holds_with_variable_steps(s):
    model, method = models.double_pendulum(), InUnequalSteps(da.LobattoIIIAB(s))
    steps = {2: (100, 200, 400), 3: (50, 100, 200)}[s]
    study = da.verify.order(model.system, method, reference=model.reference, t1=model.t1, steps=steps, **model.start)
    assert all(abs(slope - (2 * s - 2)) < 0.2 for slope in study.slopes.values()), study


@cache
def end_in_multiprecision(stages, n):
    system = da.problems.double_pendulum().system
    q0, p0 = ["0.6", "-0.8", "0", "-1.6"], ["0.4", "0.3", "0.8", "0"]  # on the constraints exactly: 3-4-5 triangles
    return da.verify.multiprecision_run(system, da.LobattoIIIAB(stages), q0=q0, p0=p0, h=Fraction(1, 2 * n), steps=n, digits=50)


@pytest.mark.parametrize("s", [6, 7, 8])
def test_higher_orders_in_multiprecision(s):
    """Orders 10, 12 and 14 have no window in double precision; the same step equations show them with 50 digits."""
    right = end_in_multiprecision(12, 8)
    errors = {name: [] for name in ("q", "p", "lam")}
    counts = [8, 12, 16]
    for n in counts:
        state = end_in_multiprecision(s, n)
        for name, values in errors.items():
            values.append(float(mpmath.norm([a - b for a, b in zip(getattr(state, name), getattr(right, name), strict=True)])))
    for name, values in errors.items():
        slope, _ = da.verify.slope([0.5 / n for n in counts], values)
        assert abs(slope - (2 * s - 2)) < 0.15, (name, slope, values)


def test_multiprecision_runs_refuse_starts_that_are_off_by_round_off():
    problem = da.problems.double_pendulum()  # sqrt(0.75) in double precision
    with pytest.raises(da.InconsistentStart, match="give them exactly"):
        da.verify.multiprecision_run(problem.system, da.Rattle(), q0=problem.q0, p0=problem.p0, h="0.1", steps=1)


@pytest.mark.slow
def test_projected_gauss_with_four_stages_has_order_four():
    """Its slopes settle for more than a thousand steps only, where double precision has no digits left (t = 5, Example 2)."""
    system = da.problems.double_pendulum().system
    root = mpmath.mp.clone()
    root.dps = 40
    z = root.sqrt(root.mpf(3) / 4)
    q0, p0 = [root.mpf("0.5"), -z, root.mpf(0), -2 * z], [0, 0, 0, 0]

    def end(method, n):
        return da.verify.multiprecision_run(system, method, q0=q0, p0=p0, h=Fraction(5, n), steps=n, digits=28)

    right = end(da.LobattoIIIAB(8), 160)
    counts = [1280, 2560]
    ends = [end(da.Gauss(4, projected=True), n) for n in counts]
    for name in ("q", "p", "lam"):
        errors = [
            float(mpmath.norm([a - b for a, b in zip(getattr(e, name), getattr(right, name), strict=True)])) for e in ends
        ]
        assert abs(np.log2(errors[0] / errors[1]) - 4) < 0.15, (name, errors)


def test_a_million_steps():
    """Constraints at round-off in every stored state; energy bounded without slope."""
    run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(3), steps=1_000_000)
    assert max(np.abs(residual).max() for residual in run.residuals.values()) < 1e-13
    assert np.abs(run.energy + 3 * np.sqrt(0.75)).max() < 2e-5
    assert abs(da.verify.drift(run.energy, run.t).slope) < 1e-12


def test_eleven_stages_keep_energy_at_round_off():
    run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(11), h=0.2, steps=10_000)
    assert np.abs(run.energy - run.energy[0]).max() < 1e-13
    assert max(np.abs(residual).max() for residual in run.residuals.values()) < 1e-13


def test_unprojected_gauss_diverges_on_constraints():
    """Jay (1996), section 5: energy error above 1 before t = 3, or no solution of the stage equations at all."""
    run = da.simulate(da.problems.double_pendulum(), da.Gauss(2), steps=100, on_failure="return")
    error = np.abs(run.energy - run.energy[0])
    assert run.status == "failed" or error.max() > 1
    assert error[run.t <= 3].max() > 1


def test_half_explicit_euler_solves_its_three_equations():
    problem = da.problems.double_pendulum()
    start = da.consistent(problem.system, q0=problem.q0, p0=problem.p0)
    one = da.verify.step(problem.system, da.HalfExplicitEuler(), h=0.1, start=start)
    G = problem.system.evaluate("G", 0.0, problem.q0)

    def equations(lam):
        p1 = problem.p0 - 0.1 * (np.array([0, 1, 0, 1]) + G.T @ lam)
        q1 = problem.q0 + 0.1 * p1
        return [np.hypot(q1[0], q1[1]) - 1, np.hypot(q1[2] - q1[0], q1[3] - q1[1]) - 1]

    lam = fsolve(equations, start.lam, xtol=1e-14)
    assert np.abs(one.p - (problem.p0 - 0.1 * (np.array([0, 1, 0, 1]) + G.T @ lam))).max() < 1e-13
    with pytest.raises(da.UnsupportedSystem, match="separable"):
        model = models.magnetic_surface()
        da.simulate(model.system, da.HalfExplicitEuler(), h=0.1, steps=1, **model.start)
