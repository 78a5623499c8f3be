"""Gauss-Lobatto SPARK and EMPRK methods: order, constraints, symmetry, symplecticity, and the equations themselves.

Models are small and nonlinear, without special structure; references come from SciPy on the underlying ODE or are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import method_models as models
import mpmath
import numpy as np
import pytest
from scipy.optimize import fsolve

import dalembert as da
from dalembert import tableaux

SPARK, EMPRK = da.GaussLobattoSPARK, da.GaussLobattoEMPRK
OTHER = {SPARK: EMPRK, EMPRK: SPARK}

# -- models --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Model:
    """A system, its start, a final time and the solution there, by the names of its components."""

    system: da.systems.System
    start: dict[str, Any]
    t1: float
    reference: dict[str, np.ndarray] = field(repr=False)

    @property
    def has_k(self) -> bool:
        return self.system.n_nonholonomic > 0


def of_mechanics(model: models.Model) -> Model:
    return Model(model.system, model.start, model.t1, model.reference)


@cache
def holonomic() -> Model:
    """The charged particle on a bumpy ellipsoid: H is nonseparable."""
    return of_mechanics(models.magnetic_surface())


@cache
def nonholonomic() -> Model:
    """A blade on a surface with a mass matrix M(q) and a potential."""
    system = da.Lagrangian(
        lambda q, v: (
            ((1 + q[1] ** 2 / 4) * v[0] ** 2 + v[1] ** 2 + (1 + np.cos(q[0]) / 4) * v[2] ** 2) / 2
            + v[0] * v[1] / 4
            - np.cos(q[0]) * q[1]
            - q[2] ** 2 / 3
        ),
        dim=3,
        nonholonomic=lambda q, v: [np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1] + q[0] * v[2] / 4],
    )
    return of_mechanics(models.mechanical(system, [0.3, -0.2, 0.4], [0.7, 0.5, 0.8], 4.0))


@cache
def mixed() -> Model:
    """One holonomic and one nonholonomic constraint."""
    system = da.Lagrangian(
        lambda q, v: (
            (v[0] ** 2 + v[1] ** 2 * (1 + q[2] ** 2 / 3) + v[2] ** 2 + v[3] ** 2 / 2) / 2
            - q[0] * q[2] / 2
            - np.sin(q[1]) * q[3]
        ),
        dim=4,
        holonomic=lambda q: [q[0] + q[1] ** 2 / 2 + np.sin(q[2]) - 1],
        nonholonomic=lambda q, v: [v[3] - q[2] * v[1] + np.cos(q[3]) * v[0] / 3],
    )
    return of_mechanics(models.mechanical(system, [0.4, 0.5, 0.5, 0.1], [0.5, -0.6, 0.2, 0.4], 4.0))


@cache
def time_dependent() -> Model:
    """Rheonomic constraints of both kinds, and a force that depends on time and velocity."""
    system = da.Lagrangian(
        lambda q, v: (v[0] ** 2 + (1 + q[0] ** 2 / 4) * v[1] ** 2 + v[2] ** 2) / 2 - q[1] * q[2] / 2,
        dim=3,
        holonomic=lambda t, q: [q[0] ** 2 + q[1] ** 2 - (1 + np.sin(t) / 4) ** 2],
        nonholonomic=lambda t, q, v: [v[2] - np.cos(t) * q[1] * v[0] - np.sin(t + q[2]) / 2],
        force=lambda t, v: [np.cos(t), -v[1] / 5, np.sin(t) / 3],
    )
    return of_mechanics(models.mechanical(system, [0.8, 0.6, 0.1], [0.5, -0.2, 0.3], 3.0))


@cache
def nonlinear_k() -> Model:
    """A constraint that is quadratic in the velocities."""
    return of_mechanics(models.nonlinear_k())


@cache
def manufactured() -> Model:
    """An ODAE in which r is nonlinear in lam and f nonlinear in psi; sources in t make a given solution exact."""

    def solution(t: Any) -> tuple[list[Any], ...]:
        y, y_dot = [np.cos(t), np.sin(2 * t) / 2], [-np.sin(t), np.cos(2 * t)]
        z, z_dot = [np.sin(t) + 1, np.cos(t) / 2, np.sin(t / 2)], [np.cos(t), -np.sin(t) / 2, np.cos(t / 2) / 2]
        return y, y_dot, z, z_dot, [0.5 + np.sin(t) / 3], [0.2 + np.cos(t) / 2]

    def v0(y: Any, z: Any) -> list[Any]:
        return [z[0] + y[1] * z[1] / 3, z[1] + z[0] ** 2 / 4 + y[0] * z[2] / 5]

    def f0(y: Any, z: Any, psi: Any) -> list[Any]:
        return [y[1] * z[0], np.sin(z[1]) + psi[0] * z[0] / 5, psi[0] + psi[0] ** 3 / 3 - z[2] * y[0]]

    def r0(y: Any, lam: Any) -> list[Any]:
        return [lam[0] + lam[0] ** 3 / 4, y[0] * lam[0] ** 2 / 5, np.sin(lam[0]) / 6]

    def g0(y: Any) -> Any:
        return y[0] + y[0] * y[1] / 3 + y[1] ** 2 / 4

    def k0(y: Any, z: Any) -> Any:
        return z[2] + z[1] ** 2 / 4 + y[0] * z[0] / 5

    def plus(value: list[Any], right: list[Any], known: list[Any]) -> list[Any]:
        """A function's value, with a source that makes it `right` on the solution, where it is `known`."""
        return [a + b - c for a, b, c in zip(value, right, known, strict=True)]

    def f(t: Any, y: Any, z: Any, psi: Any) -> list[Any]:
        ys, _, zs, z_dot, lams, psis = solution(t)
        return plus(plus(f0(y, z, psi), z_dot, f0(ys, zs, psis)), [0, 0, 0], r0(ys, lams))

    def v(t: Any, y: Any, z: Any) -> list[Any]:
        ys, y_dot, zs, *_ = solution(t)
        return plus(v0(y, z), y_dot, v0(ys, zs))

    system = da.ODAE(
        v=v,
        f=f,
        r=lambda y, lam: r0(y, lam),
        g=lambda t, y: [g0(y) - g0(solution(t)[0])],
        k=lambda t, y, z: [k0(y, z) - k0(solution(t)[0], solution(t)[2])],
        dim_y=2,
        dim_z=3,
    )
    t1 = 3.0
    at = {name: [np.array(part) for part in solution(t)] for name, t in (("start", 0.0), ("end", t1))}
    start = dict(zip(("y0", "z0", "lam0", "psi0"), at["start"][0::2][:2] + at["start"][4:], strict=True))
    return Model(system, start, t1, dict(zip(("y", "z", "lam", "psi"), at["end"][0::2][:2] + at["end"][4:], strict=True)))


MODELS: dict[str, Callable[[], Model]] = {
    model.__name__: model for model in (holonomic, nonholonomic, mixed, time_dependent, nonlinear_k, manufactured)
}

WITH_K = [name for name in MODELS if name != "holonomic"]
both = pytest.mark.parametrize("family", [SPARK, EMPRK])

# -- order ---------------------------------------------------------------------------------------------------------------

STEP_SIZES = {1: (0.06, 0.033), 2: (0.1, 0.0475), 3: (0.15, 0.07), 4: (0.3, 0.15)}
"""Within one decade, so that one compiled program serves; errors stand above round-off and are asymptotic."""
IN_THE_TABLE = ("holonomic", "nonlinear_k")
"""Models on which the table of methods measures the orders of up to three stages."""
CASES = [(name, s, SPARK) for name in MODELS if name not in IN_THE_TABLE for s in (1, 2, 3)]
CASES += [(name, s, EMPRK) for name in WITH_K if name not in IN_THE_TABLE for s in (2, 3)]  # for s = 1 the same step as SPARK
CASES += [(name, 4, family) for name in ("nonlinear_k", "manufactured") for family in (SPARK, EMPRK)]


def step_counts(t1: float, first: float, last: float) -> list[int]:
    return sorted({round(t1 / h) for h in np.geomspace(first, last, 6)})


@pytest.mark.parametrize(("name", "s", "family"), CASES)
def test_order_is_2s_in_all_components_and_multipliers(name, s, family):
    model = MODELS[name]()
    steps = step_counts(model.t1, *STEP_SIZES[s])
    study = da.verify.order(
        model.system, family(s), reference=model.reference, t1=model.t1, steps=steps, points=4, round_off=1e-13, **model.start
    )
    assert set(study.slopes) == set(model.reference)
    for component, slope in study.slopes.items():
        assert study.used[component].sum() >= 3, study
        assert abs(slope - 2 * s) < 0.15, f"{component}\n{study}"


EXACT_STARTS = {
    "holonomic": ([1, 0, 0], [0, Fraction(1, 2), Fraction(3, 5)]),
    "nonholonomic": ([0, Fraction(1, 2), 0], [Fraction(7, 10) * Fraction(17, 16), Fraction(7, 40), 1]),
    "time_dependent": ([Fraction(4, 5), Fraction(3, 5), 0], [Fraction(1, 2), Fraction(-29, 100), Fraction(3, 10)]),
    "mixed": ([Fraction(7, 8), Fraction(1, 2), 0, 0], [Fraction(3, 10), Fraction(-2, 5), Fraction(-1, 10), Fraction(-1, 20)]),
}
"""Rational numbers on the constraints."""


IN_MULTIPRECISION = [("holonomic", SPARK)]
IN_MULTIPRECISION += [(name, family) for name in EXACT_STARTS if name != "holonomic" for family in (SPARK, EMPRK)]


@cache
def end_in_multiprecision(name: str, method: da.OneStepMethod, n: int) -> Any:
    q0, p0 = EXACT_STARTS[name]
    return da.verify.multiprecision_run(MODELS[name]().system, method, q0=q0, p0=p0, h=Fraction(2, n), steps=n, digits=34)


@pytest.mark.parametrize(("name", "family"), IN_MULTIPRECISION)
def test_order_eight_in_multiprecision(name, family):
    """Four stages have no clean window in double precision on these models; 34 digits show the order in every component."""
    right, counts = end_in_multiprecision(name, SPARK(7), 16), (32, 48)
    ends = [end_in_multiprecision(name, family(4), n) for n in counts]
    for component in ("q", "p", "lam", "psi"):
        known = getattr(right, component)
        if known:
            errors = [float(mpmath.norm([a - b for a, b in zip(getattr(e, component), known, strict=True)])) for e in ends]
            assert abs(np.log(errors[0] / errors[1]) / np.log(counts[1] / counts[0]) - 8) < 0.15, (component, errors)


@both
@pytest.mark.parametrize("s", [2, 3])
def test_the_internal_multiplier_at_the_end_has_order_s_only(family, s):
    """Lambda_s = lam(t_1) + O(h^s), while `run.lam` has full order."""
    model = mixed()
    reference = {"stage_lam": model.reference["lam"]}
    steps = step_counts(model.t1, *STEP_SIZES[s])
    study = da.verify.order(model.system, family(s), reference=reference, t1=model.t1, steps=steps, points=4, **model.start)
    assert abs(study.slopes["stage_lam"] - s) < 0.25, study


# -- constraints and structure -------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("s", [1, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_all_constraints_hold_at_the_end_of_every_step(name, s, family):
    model = MODELS[name]()
    run = da.simulate(model.system, family(s), h=0.05, steps=60, **model.start)
    size = 1 + np.abs(np.hstack([run.y, run.z])).max()
    assert set(run.residuals) >= ({"k"} if model.has_k else {"g", "g_dot"})
    for residual in run.residuals.values():
        assert np.abs(residual).max(initial=0.0) < 1e-13 * size


@both
@pytest.mark.parametrize("s", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["holonomic", "mixed", "time_dependent", "manufactured"])
def test_a_step_back_returns(name, s, family):
    model = MODELS[name]()
    assert da.verify.reversibility_defect(model.system, family(s), h=0.1, **model.start) < 1e-13
    assert family(s).symmetric


@pytest.mark.parametrize("s", [1, 2, 3, 4])
def test_symplectic_without_k(s):
    model = holonomic()
    assert SPARK(s).symplectic
    assert da.verify.symplecticity_defect(model.system, SPARK(s), h=0.1, **model.start) < 1e-13


def difference(model: Model, s: int) -> float:
    """How far the two methods are from each other after one step, relative to the state."""
    ends = [da.verify.step(model.system, family(s), h=0.3, **model.start).packed for family in (SPARK, EMPRK)]
    return float(np.max(np.abs(ends[0] - ends[1])) / (1 + np.max(np.abs(ends[0]))))


def test_the_methods_coincide_for_one_stage_and_without_k_and_differ_otherwise():
    for name in WITH_K:
        assert difference(MODELS[name](), 1) < 1e-14, name
    for s in (2, 3):
        assert difference(holonomic(), s) < 1e-14
        for name in WITH_K:
            assert difference(MODELS[name](), s) > 1e-12, (name, s)


def test_energies_on_the_skate_differ_by_three_orders_of_magnitude():
    spark, emprk = (da.simulate(da.problems.skate(), family(2), h=0.1, steps=100).energy for family in (SPARK, EMPRK))
    assert np.abs(spark - spark[0]).max() > 1000 * np.abs(emprk - emprk[0]).max()


# -- the equations themselves --------------------------------------------------------------------------------------------


def coefficients(s):
    """From NumPy's nodes and the defining moments alone, in double precision."""
    c = (np.polynomial.legendre.leggauss(s)[0] + 1) / 2
    inner = np.polynomial.legendre.Legendre.basis(s).deriv().roots()
    c_tilde = np.concatenate([[0.0], (np.sort(inner) + 1) / 2, [1.0]])

    def integrals(nodes, ends):
        """w_ij with sum_j w_ij nodes_j^(k-1) = ends_i^k / k for as many k as nodes."""
        k = np.arange(1, len(nodes) + 1)
        return (np.asarray(ends)[:, None] ** k / k) @ np.linalg.inv(np.vander(nodes, increasing=True))

    A, b, A_bar = integrals(c, c), integrals(c, [1.0])[0], integrals(c, c_tilde)
    b_tilde, A_check = integrals(c_tilde, [1.0])[0], integrals(c_tilde, c_tilde)
    # a~_i0 = b~_0 and the moments k = 1..s determine a~; a~_is = 0 comes out
    k = np.arange(1, s + 1)
    rest = c[:, None] ** k / k - b_tilde[0] * 0.0 ** (k - 1)
    A_tilde = np.column_stack([np.full(s, b_tilde[0]), rest @ np.linalg.inv(np.vander(c_tilde[1:], increasing=True))])
    assert np.abs(A_tilde[:, -1]).max() < 1e-13
    return A, b, c, A_tilde, b_tilde, A_bar, A_check


def step_by_hand(kind, s, y0, z0, h):
    """The square system for the skate, y = q and z = p = v/2, solved by SciPy's fsolve."""
    A, b, c, A_tilde, b_tilde, A_bar, A_check = coefficients(s)

    def v(z):
        return 2 * z

    def d(y):
        return y[2:] - y[:2]

    def g(y):
        return (d(y) @ d(y) - 1) / 2

    def g_y(y):
        return np.concatenate([-d(y), d(y)])

    def across(y):
        return np.tile([-d(y)[1], d(y)[0]], 2)

    def k(y, z):
        return across(y) @ v(z)

    def f(y, psi):
        return np.array([0.5, 0.0, 0.5, 0.0]) - across(y) * psi

    def r(y, lam):
        return -g_y(y) * lam

    def unpack(x):
        Y, Z = x[: 4 * s].reshape(s, 4), x[4 * s : 8 * s].reshape(s, 4)
        return Y, Z, x[8 * s : 9 * s + 1], x[9 * s + 1 :]

    def parts(x):
        Y, Z, Lam, Psi = unpack(x)
        vs, fs = np.array([v(z) for z in Z]), np.array([f(y, psi) for y, psi in zip(Y, Psi, strict=True)])
        Y_tilde = y0 + h * A_bar @ vs
        rs = np.array([r(y, lam) for y, lam in zip(Y_tilde, Lam, strict=True)])
        return Y, Z, vs, fs, Y_tilde, rs, y0 + h * b @ vs, z0 + h * (b @ fs + b_tilde @ rs)

    def equations(x):
        Y, Z, vs, fs, Y_tilde, rs, y1, z1 = parts(x)
        rows = [(Y - y0 - h * A @ vs).ravel(), (Z - z0 - h * (A @ fs + A_tilde @ rs)).ravel()]
        rows.append([g(y) for y in Y_tilde[1:]])
        rows.append([g_y(y1) @ v(z1)])
        if kind is SPARK:
            values = np.array([k(y, z) for y, z in zip(Y, Z, strict=True)])
            rows.append([(b * c ** (i - 1)) @ values for i in range(1, s)])
            rows.append([k(y1, z1)])
        else:
            Z_tilde = z0 + h * (A_bar @ fs + A_check @ rs)
            assert np.allclose(Z_tilde[-1], z1, atol=1e-12)
            rows.append([k(y, z) for y, z in zip(Y_tilde[1:], Z_tilde[1:], strict=True)])
        return np.concatenate(rows)

    guess = np.concatenate([np.tile(y0, s), np.tile(z0, s), np.full(s + 1, 0.25), np.full(s, 0.0)])
    x = fsolve(equations, guess, xtol=1e-14, full_output=True)[0]
    assert np.abs(equations(x)).max() < 1e-13
    return parts(x)[-2:]


@both
@pytest.mark.parametrize("s", [2, 3])
def test_a_step_on_the_skate_solves_the_published_equations(family, s):
    known, h = da.problems.skate(speed=0.3).exact(0.7), 0.5  # nothing is zero there
    y1, z1 = step_by_hand(family, s, known["q"], known["p"], h)
    start = {"q0": known["q"], "p0": known["p"]}
    ours, other = (da.verify.step(da.problems.skate(), kind(s), h=h, **start) for kind in (family, OTHER[family]))
    assert np.abs(ours.q - y1).max() < 1e-12 and np.abs(ours.p - z1).max() < 1e-12
    assert np.abs(other.p - z1).max() > 1e-8  # so that agreement means something


@both
@pytest.mark.parametrize("name", ["nonholonomic", "mixed", "time_dependent"])
def test_momenta_of_an_odae_give_the_same_run_as_the_lagrangian(family, name):
    """d/dt p(t, y, z) with z = v and p = L_v, against p itself."""
    model = MODELS[name]()
    state = da.consistent(model.system, **model.start)
    mechanics = da.simulate(model.system, family(2), h=0.1, steps=20, **model.start)
    same = da.simulate(da.ODAE.of(model.system), family(2), h=0.1, steps=20, y0=state.q, z0=state.v)
    for one, other in ((mechanics.q, same.y), (mechanics.v, same.z), (mechanics.lam, same.lam), (mechanics.psi, same.psi)):
        assert np.abs(one - other).max(initial=0.0) < 1e-12


# -- other coefficients, and refusals ------------------------------------------------------------------------------------

PAIRS = {
    "radau_iia(2), midpoint": (tableaux.radau_iia(2), [0, "1/2", 1]),
    "radau_iia(3), equidistant": (tableaux.radau_iia(3), [0, "1/3", "2/3", 1]),
    "gauss(3), equidistant": (tableaux.gauss(3), [0, "1/3", "2/3", 1]),
    "gauss(2), off the middle": (tableaux.gauss(2), [0, "2/5", 1]),
}


@pytest.mark.parametrize("kind", [da.SPARK, da.EMPRK])
@pytest.mark.parametrize("pair", PAIRS)
def test_other_pairs_keep_the_constraints_and_have_order_s_at_least(pair, kind):
    tableau, nodes = PAIRS[pair]
    model, method = mixed(), kind(tableaux.discontinuous_collocation(tableau, nodes))
    run = da.simulate(model.system, method, h=0.05, steps=40, **model.start)
    assert max(np.abs(residual).max() for residual in run.residuals.values()) < 1e-13
    steps = step_counts(model.t1, 0.1, 0.05)
    study = da.verify.order(model.system, method, reference=model.reference, t1=model.t1, steps=steps, points=4, **model.start)
    assert min(study.slopes["q"], study.slopes["p"]) > tableau.stages - 0.15, study


@pytest.mark.parametrize(
    ("tableau", "nodes", "reason"),
    [
        (tableaux.radau_ia(2), [0, "1/2", 1], r"fails C\(2\)"),
        (tableaux.gauss(2), [0, 0, 1], "distinct"),
        (tableaux.gauss(2), ["1/4", "1/2", 1], "the first 0 and the last 1"),
        (tableaux.gauss(2), [0, "1/5", 1], "must be positive"),
    ],
)
def test_pairs_that_fail_the_conditions_are_refused(tableau, nodes, reason):
    with pytest.raises(ValueError, match=reason):
        tableaux.discontinuous_collocation(tableau, nodes)


def test_what_is_no_pair_of_coefficients_is_refused():
    for kind in (da.SPARK, da.EMPRK):
        with pytest.raises(da.InputError, match=r"da\.tableaux\.gauss_lobatto"):
            kind(tableaux.gauss(2))
    for family in (SPARK, EMPRK):
        with pytest.raises(da.InputError, match="Gauss-Lobatto"):
            family(0)


@both
def test_reactions_that_depend_on_z_are_refused_by_name(family):
    with pytest.raises(da.UnsupportedSystem, match=rf"{family.__name__}\(stages=2\).*do not depend on z.*SymplecticEuler"):
        da.simulate(da.problems.nonlinear_multiplier(), family(2))


def test_methods_without_nonholonomic_constraints_say_which_method_takes_them():
    with pytest.raises(da.UnsupportedSystem, match="nonholonomic"):
        da.simulate(da.problems.skate(), da.LobattoIIIAB(3))
