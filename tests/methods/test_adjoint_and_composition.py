"""Exact adjoints from a method's own equations, and methods of high order composed of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import method_models as models
import numpy as np
import pytest
from method_table import ROWS, ladder, serves

import dalembert as da
from dalembert.methods.composition import Adjoint, Composition

METHODS = {row.id: row.method for row in ROWS if row.method.starting is None}
WITH_EQUATIONS = {name: method for name, method in METHODS.items() if not isinstance(method, Composition)}
ON_THE_MANIFOLD = frozenset({"g", "g_dot"})
ROUND_OFF = 1e-13


def invertible(method):
    """Whether a step can be undone where there are constraints: its image must be what it starts from."""
    return method.symmetric is True or method.keeps >= ON_THE_MANIFOLD


def distance(state, other):
    return np.max(np.abs(state.packed - other.packed)) / (1 + np.max(np.abs(other.packed)))


def there_and_back(model, method, adjoint, h):
    start = da.consistent(model.system, q0=model.q0, p0=model.p0)
    there = da.verify.step(model.system, method, h=h, start=start)
    assert distance(there, start) > 1e-3
    return distance(da.verify.step(model.system, adjoint, h=-h, start=there), start)


HOLONOMIC = {name: method for name, method in WITH_EQUATIONS.items() if serves(method, models.pendulum().system)}
UNCONSTRAINED = {name: method for name, method in WITH_EQUATIONS.items() if serves(method, models.angle_of_a_pendulum().system)}


def tried(names):
    """Names of methods for a test of each; those with five stages, which take long to compile, have siblings with fewer."""
    return [pytest.param(n, marks=pytest.mark.slow) if getattr(METHODS[n], "stages", 0) >= 5 else n for n in names]


# -- the adjoint -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", tried(name for name, method in HOLONOMIC.items() if invertible(method)))
def test_the_adjoint_undoes_a_step_on_the_constraints(name):
    """Phi*_-h = (Phi_h)^-1, also for symmetric methods, from the exchanged equations."""
    method = WITH_EQUATIONS[name]
    model = models.bead() if serves(method, models.bead().system) else models.pendulum()
    assert there_and_back(model, method, Adjoint(method), h=0.07) < ROUND_OFF


@pytest.mark.parametrize("name", tried(UNCONSTRAINED))
def test_the_adjoint_undoes_a_step_without_constraints(name):
    method, nonseparable = WITH_EQUATIONS[name], models.pendulum_with_varying_mass()
    model = nonseparable if serves(method, nonseparable.system) else models.angle_of_a_pendulum()
    assert there_and_back(model, method, Adjoint(method), h=0.1) < ROUND_OFF


@pytest.mark.parametrize("name", [row.id for row in ROWS if row.nonholonomic_steps and row.id in WITH_EQUATIONS])
def test_the_adjoint_undoes_a_step_on_nonholonomic_constraints(name):
    method = WITH_EQUATIONS[name]
    model = next(m for m in (models.sleigh(), models.oscillator()) if serves(method, m.system))
    assert there_and_back(model, method, Adjoint(method), h=0.07) < ROUND_OFF


@pytest.mark.parametrize("name", [name for name, method in HOLONOMIC.items() if not invertible(method) and method.order])
def test_a_step_that_cannot_be_undone_has_no_adjoint(name):
    """A step onto g = 0 that leaves the hidden constraint takes many momenta to one."""
    method, model = WITH_EQUATIONS[name], models.pendulum()
    for refused in (da.adjoint(method), da.compose(method, "strang")):
        with pytest.raises(da.UnsupportedSystem) as caught:
            da.simulate(model.system, refused, h=0.1, steps=1, **model.start)
        assert "g_dot" in str(caught.value)
        assert "no inverse" in str(caught.value)


@pytest.mark.parametrize("name", METHODS)
def test_the_adjoint_of_the_adjoint_is_the_method(name):
    method = METHODS[name]
    assert da.adjoint(da.adjoint(method)) == method
    assert (da.adjoint(method) == method) == (method.symmetric is True)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if isinstance(method, Composition)])
def test_compositions_are_their_own_adjoints(name):
    method = METHODS[name]
    model = models.bead() if serves(method, models.bead().system) else models.sleigh()
    assert da.adjoint(method) is method
    assert there_and_back(model, method, method, h=0.07) < ROUND_OFF


@pytest.mark.parametrize("problem", [models.growth, models.mass_on_surface], ids=lambda p: p.__name__)
@pytest.mark.parametrize("variant", ["true", "natural"])
@pytest.mark.parametrize("conjugate", [False, True])
def test_the_adjoint_undoes_a_step_with_forces_nonlinear_in_the_multipliers(problem, variant, conjugate):
    model, method = problem(), da.SymplecticEuler(variant, conjugate)
    start = da.consistent(model.system, **model.start)
    there = da.verify.step(model.system, method, h=0.01, start=start)
    back = da.verify.step(model.system, da.adjoint(method), h=-0.01, start=there)
    assert distance(back, start) < ROUND_OFF


def test_the_adjoint_of_the_explicit_euler_method_is_the_implicit_one():
    """Without constraints: by hand, q_1 = q_0 + h v(q_1, p_1), p_1 = p_0 + h f(q_1, p_1)."""
    model = models.pendulum_with_varying_mass()
    h = 0.1
    new = da.verify.step(model.system, da.adjoint(da.ConstrainedEuler("explicit", "explicit")), h=h, **model.start)
    (q1,), (p1,) = new.q, new.p
    assert q1 == pytest.approx(model.q0[0] + h * 2 * p1 / (2 + q1**2), abs=1e-15)
    assert p1 == pytest.approx(model.p0[0] + h * (2 * q1 * p1**2 / (2 + q1**2) ** 2 - np.sin(q1)), abs=1e-15)


@pytest.mark.parametrize("name", ["double_pendulum", "magnetic_surface", "curved_mass"])
def test_on_mechanical_systems_the_conjugate_method_is_the_adjoint(name):
    """(2.2) and (3.6) of Jay and Simeon are exchanged by (0, h) <-> (1, -h)."""
    model = models.CONSTRAINED[name]()
    runs = [
        da.simulate(model.system, method, h=0.05, steps=20, **model.start)
        for method in (da.adjoint(da.SymplecticEuler()), da.SymplecticEuler(conjugate=True))
    ]
    np.testing.assert_allclose(runs[0].states, runs[1].states, atol=ROUND_OFF)


ADJOINT_ORDERS = [
    (da.SymplecticEuler(), 1, ladder(500, 2000)),
    (da.ConstrainedEuler("explicit", "explicit"), 1, ladder(500, 2000)),
    (da.ConstrainedEuler("implicit", "implicit"), 1, ladder(500, 2000)),
    (da.LobattoIIIC(2, projected=True), 2, ladder(320, 1300)),
    (da.RadauIIA(2, projected=True), 3, ladder(80, 320)),
    (da.UnderlyingODE(da.tableaux.radau_iia(2)), 3, ladder(80, 320)),
    (da.RadauIIA(3, projected=True), 5, ladder(20, 80)),
]


@pytest.mark.parametrize(("method", "order", "steps"), ADJOINT_ORDERS, ids=str)
def test_the_adjoint_has_the_order_of_the_method(method, order, steps):
    model, adjoint = models.bead(), da.adjoint(method)
    assert set(adjoint.order.values()) == {order}
    study = da.verify.order(model.system, adjoint, reference=model.reference, t1=model.t1, steps=steps, points=4, **model.start)
    assert all(abs(slope - order) < 0.15 for slope in study.slopes.values()), study
    assert all(used.sum() >= 3 for used in study.used.values()), study


@pytest.mark.parametrize("problem", [models.growth, models.mass_on_surface], ids=lambda p: p.__name__)
@pytest.mark.parametrize("conjugate", [False, True])
def test_adjoints_of_the_true_methods_have_order_1(problem, conjugate):
    model = problem()
    study = da.verify.order(
        model.system,
        da.adjoint(da.SymplecticEuler(conjugate=conjugate)),
        reference=model.reference,
        t1=model.t1,
        steps=(320, 640, 1280, 2560),
        **model.start,
    )
    assert all(abs(slope - 1) < 0.03 for slope in study.slopes.values()), study


def test_the_adjoint_claims_what_the_method_claims():
    method = da.adjoint(da.SymplecticEuler())
    assert (method.symplectic, method.symmetric, method.keeps) == (True, False, ON_THE_MANIFOLD)
    assert "adjoint" in method.reference


# -- compositions ----------------------------------------------------------------------------------------------------

EULER = da.SymplecticEuler()
GROWTH_STEPS = {
    "strang": (40, 80, 160, 320),
    "suzuki-4": (10, 14, 20, 28, 40),
    "kahan-li-6": (20, 28, 40, 56),
    "sofroniou-spaletta-6": (14, 20, 28, 40),
    "kahan-li-8": (14, 17, 20, 24, 28),
}


@pytest.mark.parametrize("name", GROWTH_STEPS)
def test_orders_of_compositions_of_the_true_method_on_4_1(name):
    model, method = models.growth(), da.compose(EULER, name)
    study = da.verify.order(
        model.system, method, reference=model.reference, t1=1.0, steps=GROWTH_STEPS[name], points=4, **model.start
    )
    order = method.scheme.order
    assert set(study.slopes) == {"y", "z", "lam"}
    assert all(abs(slope - order) < 0.25 for slope in study.slopes.values()), study
    assert all(used.sum() >= 3 for used in study.used.values()), study


@dataclass(frozen=True)
class HalfAndHalf(da.OneStepMethod):
    """A step h/2 of each method."""

    first: da.OneStepMethod
    second: da.OneStepMethod
    serves_odae: ClassVar[bool] = True

    @property
    def order(self):
        return {}

    @property
    def substeps(self):
        return (self.first, 0.5), (self.second, 0.5)

    def equations(self, system, step):
        raise AssertionError("its substeps are compiled")


def test_true_and_then_its_conjugate_has_order_1_only():
    """(3.8) is not the adjoint of (3.5) if r is nonlinear: only with the exact adjoint do two half steps have order 2."""
    model = models.growth()
    for second, order in ((da.SymplecticEuler(conjugate=True), 1), (da.adjoint(EULER), 2)):
        study = da.verify.order(
            model.system,
            HalfAndHalf(EULER, second),
            reference=model.reference,
            t1=1.0,
            steps=(1280, 2560, 5120) if order == 1 else (40, 80, 160),
            **model.start,
        )
        assert all(abs(slope - order) < 0.1 for slope in study.slopes.values()), study


MECHANICAL = [  # beside those of the table
    ("magnetic_surface", "suzuki-4", ladder(20, 100)),
    ("magnetic_surface", "kahan-li-6", (12, 15, 18, 22, 27)),
    ("magnetic_surface", "kahan-li-8", (7, 8, 9, 10, 11)),
    ("double_pendulum", "kahan-li-8", (40, 50, 60, 70)),
]


@pytest.mark.parametrize(("name", "scheme", "steps"), MECHANICAL)
def test_compositions_on_constrained_mechanical_systems(name, scheme, steps):
    """Order, symplecticity of one composed step, and the constraints."""
    model, method = models.CONSTRAINED[name](), da.compose(EULER, scheme)
    study = da.verify.order(model.system, method, reference=model.reference, t1=model.t1, steps=steps, points=4, **model.start)
    order = method.scheme.order
    assert all(abs(slope - order) < 0.25 for slope in study.slopes.values()), study
    assert all(used.sum() >= 3 for used in study.used.values()), study
    middle = da.simulate(model.system, da.LobattoIIIAB(4), h=0.05, steps=20, **model.start)
    start = da.consistent(model.system, q0=middle.q[-1], p0=middle.p[-1])
    assert da.verify.symplecticity_defect(model.system, method, h=0.1, start=start) < ROUND_OFF
    assert da.verify.reversibility_defect(model.system, method, h=0.1, start=start) < ROUND_OFF
    run = da.simulate(model.system, method, h=0.05, steps=500, **model.start)
    size = 1 + max(np.abs(run.q).max(), np.abs(run.v).max())
    assert all(np.abs(residual).max() < ROUND_OFF * size for residual in run.residuals.values())


@pytest.mark.parametrize(
    ("basic", "scheme", "order", "steps"),
    [
        (da.Rattle(), da.schemes.kahan_li(6), 6, (14, 20, 28, 40)),
        (da.LobattoIIIAB(3), da.schemes.suzuki(6, basic_order=4), 6, (10, 14, 20, 28)),
        (da.RadauIIA(2, projected=True), da.schemes.strang(), 4, (40, 56, 80, 112)),
        (da.adjoint(EULER), "strang", 2, (160, 320, 640)),
        (da.compose(da.Rattle(), "suzuki-4"), da.schemes.suzuki(6, basic_order=4), 6, (10, 14, 20, 28)),
    ],
    ids=["Rattle", "LobattoIIIAB", "RadauIIA", "adjoint first", "composition of a composition"],
)
def test_orders_of_compositions_of_other_methods(basic, scheme, order, steps):
    """From an odd order q of the basic method, symmetry makes q + 1."""
    model, method = models.magnetic_surface(), da.compose(basic, scheme)
    assert set(method.order.values()) == {order}
    study = da.verify.order(model.system, method, reference=model.reference, t1=model.t1, steps=steps, points=4, **model.start)
    assert all(abs(slope - order) < 0.25 for slope in study.slopes.values()), study
    assert all(used.sum() >= 3 for used in study.used.values()), study


def test_a_composed_run_is_its_substeps_one_after_the_other():
    model = models.bead()
    method = da.compose(EULER, "blanes-moan-4")
    run = da.simulate(model.system, method, h=0.1, steps=3, **model.start)
    state = da.consistent(model.system, q0=model.q0, p0=model.p0)
    fractions = [fraction for _, fraction in method.substeps]
    assert sum(fractions) == pytest.approx(1.0, abs=1e-15)
    for k in range(1, 4):
        for part, fraction in method.substeps:
            state = da.verify.step(model.system, part, h=0.1 * fraction, start=state)
        np.testing.assert_allclose(run.states[k], state.packed, atol=ROUND_OFF)


def test_time_runs_through_the_substeps():
    """On q' = p, p' = cos t the fourth order shows only if every substep stands at its own time."""
    system = da.Hamiltonian(lambda t, q, p: p[0] ** 2 / 2 - q[0] * np.cos(t), dim=1)
    reference = {"q": [1 - np.cos(1.5)], "p": [np.sin(1.5)]}
    study = da.verify.order(
        system, da.compose(EULER, "suzuki-4"), reference=reference, t1=1.5, steps=(10, 20, 40), q0=[0], p0=[0]
    )
    assert all(abs(slope - 4) < 0.1 for slope in study.slopes.values()), study


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: da.adjoint("euler"), ["da.SymplecticEuler()", "'euler'"]),
        (lambda: da.adjoint(da.SymplecticEuler), ["da.SymplecticEuler()"]),
        (lambda: da.adjoint(da.Shake()), ["da.Shake()", "first step"]),
        (lambda: da.compose(da.Shake(), 4), ["da.Shake()", "first step"]),
        (lambda: da.compose(None, 4), ["da.Rattle()", "None"]),
        (lambda: da.compose(da.Rattle(), "nonsense-4"), ["nonsense-4", "suzuki-4"]),
        (lambda: da.compose(da.Rattle(), "kahan-li-4"), ["kahan-li", "6, 8"]),
        (lambda: da.compose(da.Rattle(), "suzuki-5"), ["suzuki", "even order", "5"]),
        (lambda: da.compose(da.Rattle(), 5), ["5", "suzuki(order)"]),
        (lambda: da.compose(da.Rattle(), 4.0), ["4.0"]),
        (lambda: da.compose(da.Rattle(), None), ["None"]),
        (lambda: da.compose(da.Rattle(), [0.5, 0.5]), ["[0.5, 0.5]"]),
        (lambda: da.compose(da.UnderlyingODE(da.tableaux.gauss(2), projected=False), 4), ["UnderlyingODE", "no order"]),
        (lambda: da.compose(da.Rattle(), da.schemes.suzuki(6, basic_order=4)), ["order 4", "da.Rattle()"]),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(build, words):
    with pytest.raises(da.InputError) as caught:
        build()
    assert all(word in str(caught.value) for word in words), caught.value
    assert "\n" not in str(caught.value)


def test_compositions_refuse_what_their_basic_method_refuses():
    growth, nonseparable = models.growth(), models.bead()
    with pytest.raises(da.UnsupportedSystem, match="SymplecticEuler"):
        da.simulate(growth.system, da.compose(da.Rattle(), 4), h=0.1, steps=1, **growth.start)
    with pytest.raises(da.UnsupportedSystem, match="SymplecticEuler"):
        da.simulate(growth.system, da.adjoint(da.UnderlyingODE(da.tableaux.radau_iia(2))), h=0.1, steps=1, **growth.start)
    with pytest.raises(da.UnsupportedSystem, match="separable"):
        da.simulate(nonseparable.system, da.adjoint(da.HalfExplicitEuler()), h=0.1, steps=1, **nonseparable.start)
