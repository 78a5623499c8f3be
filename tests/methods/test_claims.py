"""Every claim of every method in the table, measured."""

from __future__ import annotations

import inspect
from functools import cache

import method_models as models
import numpy as np
import pytest
from method_table import ROWS, serves

import dalembert as da

CONSTRAINED_ROWS = [row for row in ROWS if row.models]
UNCONSTRAINED_ROWS = [row for row in ROWS if row.unconstrained_steps]
ON_CONSTRAINED = [(row, name) for row in CONSTRAINED_ROWS for name in row.models]
ON_NONHOLONOMIC = [(row, name) for row in ROWS if row.nonholonomic_steps for name in row.nonholonomic_models]
STRUCTURES = [row for row in ROWS if row.unconstrained_steps or row.structure_model]
TOLERANCE = 0.15


def identity(x):
    return getattr(x, "id", x)


def step_size(claim):
    """Small where a defect must vanish, large where it must show."""
    return 0.12 if claim else 0.5


def test_every_public_method_has_a_row():
    public = [getattr(da, name) for name in da.__all__]
    classes = {x for x in public if isinstance(x, type) and issubclass(x, da.OneStepMethod) and not inspect.isabstract(x)}
    methods = [row.method for row in ROWS]
    varying = {x for x in classes if x.varies_steps}  # whose step is no map of (q, p) alone: test_step_sizes.py
    assert {method.__name__ for method in classes - varying - {type(method) for method in methods}} == set()
    assert {da.MCVAA(), da.MCVAC()} <= set(methods)


def claims_on(system, claimed):
    """The claims without those on multipliers of constraints that a system does not have."""
    absent = () if system.n_holonomic else ("lam", "stage_lam")
    absent += () if system.n_nonholonomic else ("psi", "stage_psi")
    return {component: order for component, order in claimed.items() if component not in absent}


def study_of(model, method, claimed, steps):
    assert claimed, "a row without a claim measures nothing"
    known = {
        **model.reference,
        **{f"stage_{name}": model.reference[name] for name in ("lam", "psi") if name in model.reference},
    }
    study = da.verify.order(
        model.system,
        method,
        reference={component: known[component] for component in claimed},
        t1=model.t1,
        steps=steps,
        points=4,
        round_off=6e-13,
        **model.start,
    )
    for component in claimed:
        assert study.used[component].sum() >= 3, f"{component}: no window above round-off\n{study}"
    return study


def with_claimed_order(pairs):
    return [(row, name) for row, name in pairs if row.method.order]


@pytest.mark.parametrize(("row", "name"), with_claimed_order(ON_CONSTRAINED), ids=identity)
def test_order_with_holonomic_constraints(row, name):
    model = models.CONSTRAINED[name]()
    claimed = claims_on(model.system, row.method.order)
    study = study_of(model, row.method, claimed, row.steps_on(name))
    for component, order in claimed.items():
        if row.id == "HalfExplicitEuler()" and component == "p":
            # p lives between the steps; on this symmetric start its first-order term cancels, so only 'at least 1' is claimed
            assert study.slopes[component] > order - TOLERANCE, study
        else:
            assert abs(study.slopes[component] - order) < TOLERANCE, f"{component}: expected {order}\n{study}"


@pytest.mark.parametrize(("row", "name"), with_claimed_order(ON_NONHOLONOMIC), ids=identity)
def test_order_with_nonholonomic_constraints(row, name):
    model = models.NONHOLONOMIC[name]()
    claimed = claims_on(model.system, row.method.order)
    study = study_of(model, row.method, claimed, row.steps_on(name))
    for component, order in claimed.items():
        assert abs(study.slopes[component] - order) < TOLERANCE, f"{component}: expected {order}\n{study}"


@pytest.mark.parametrize("row", UNCONSTRAINED_ROWS, ids=identity)
def test_order_without_constraints(row):
    model = models.UNCONSTRAINED[row.unconstrained_model]()
    claimed = row.method.order_unconstrained
    study = study_of(model, row.method, claimed, row.unconstrained_steps)
    for component, order in claimed.items():
        assert abs(study.slopes[component] - order) < TOLERANCE, f"{component}: expected {order}\n{study}"


@cache
def in_the_middle(model):
    """A state in the middle of the motion: starts from rest have symmetries that hide defects."""
    method, steps = (da.SRK("gauss", 3), 20) if model.system.n_nonholonomic else (da.LobattoIIIAB(4), 40)
    run = da.simulate(model.system, method, h=0.05, steps=steps, **model.start)
    return da.consistent(model.system, q0=run.q[-1], p0=run.p[-1])


def where_to_measure(method, claim, model):
    """A claim must hold on the row's own model; that it is false may show on any, and small ones compile fast."""
    small = models.bead()
    return small if claim is False and serves(method, small.system) else model


@pytest.mark.parametrize("row", CONSTRAINED_ROWS, ids=identity)
def test_symplectic_and_symmetric_on_constraints(row):
    """Theorem 3.1 of Jay (1996): (3.3d) keeps symplecticity, while projections after Gauss and Radau steps destroy it."""
    method, own = row.method, models.CONSTRAINED[row.models[0]]()
    measures = {da.verify.symplecticity_defect: method.symplectic, da.verify.reversibility_defect: method.symmetric}
    for measure, claim in measures.items():
        if claim is not None:
            model = where_to_measure(method, claim, own)
            defect = measure(model.system, method, h=step_size(claim), start=in_the_middle(model))
            assert (defect < 1e-13) if claim else (defect > 1e-10), (measure.__name__, defect)


@pytest.mark.parametrize(
    ("row", "name"), [(row, name) for row, name in ON_NONHOLONOMIC if row.method.symmetric is not None], ids=identity
)
def test_symmetric_on_nonholonomic_constraints(row, name):
    """Symplecticity is claimed without nonholonomic constraints alone: their flow is not symplectic."""
    model = models.NONHOLONOMIC[name]()
    start = in_the_middle(model)
    symmetric = da.verify.reversibility_defect(model.system, row.method, h=step_size(row.method.symmetric), start=start)
    assert (symmetric < 1e-13) if row.method.symmetric else (symmetric > 1e-10), symmetric


@pytest.mark.parametrize("row", STRUCTURES, ids=identity)
def test_symplectic_and_symmetric_without_constraints(row):
    model = models.UNCONSTRAINED[row.structure_model or row.unconstrained_model]()
    # Without constraints there is nothing to project, so a projected method is its plain tableau.
    plain = row.method.symplectic
    if getattr(row.method, "projected", False):
        plain = plain or da.tableaux.symplecticity(row.method.tableau) < 1e-12
    if plain is not None:
        symplectic = da.verify.symplecticity_defect(model.system, row.method, h=step_size(plain), **model.start)
        assert (symplectic < 1e-13) if plain else (symplectic > 1e-10), symplectic
    if row.method.symmetric is not None:
        symmetric = da.verify.reversibility_defect(model.system, row.method, h=step_size(row.method.symmetric), **model.start)
        assert (symmetric < 1e-13) if row.method.symmetric else (symmetric > 1e-10), symmetric


@pytest.mark.parametrize(("row", "name"), [*ON_CONSTRAINED, *ON_NONHOLONOMIC], ids=identity)
def test_constraints_kept_at_round_off_or_reported(row, name):
    model = (models.CONSTRAINED | models.NONHOLONOMIC)[name]()
    run = da.simulate(model.system, row.method, h=0.02, steps=500, **model.start)
    size = 1 + max(np.abs(run.q).max(), np.abs(run.v).max())
    residuals = {constraint: residual for constraint, residual in run.residuals.items() if residual.shape[1]}
    assert residuals, "a model without constraints shows nothing"
    for constraint, residual in residuals.items():
        worst = np.abs(residual).max() / size
        if constraint in row.method.keeps:
            assert worst < 1e-13, (constraint, worst)
        else:
            assert worst > 1e-10, f"{constraint} is kept to {worst} without being claimed"


@pytest.mark.parametrize("row", [row for row in ROWS if row.method.driver == "impacts"], ids=identity)
def test_no_stored_state_lies_behind_a_wall(row):
    model = models.double_pendulum_at_a_wall()
    run = da.simulate(model.system, row.method, h=0.02, steps=500, **model.start)
    assert set(run.impacts.which) == {0, 1}
    walls = np.array([0.92, -0.2])
    assert np.abs(run.impacts.q[:, 0] - walls[run.impacts.which]).max() < 1e-13
    assert run.q[:, 0].max() < walls[0] + 1e-13 and run.q[:, 0].min() > walls[1] - 1e-13
