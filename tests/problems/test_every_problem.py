"""Generic tests over the table of problems: starts, parameters, constraints, conserved quantities, impacts, drawings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problem_table import (
    ALL,
    INDEX_TWO,
    LOBATTO,
    NONHOLONOMIC,
    SMOOTH,
    WALLED,
    Nonholonomic,
    Row,
    Smooth,
    Walled,
    dim,
    links,
    over,
    sizes,
    start_of,
)

import dalembert as da
from dalembert.draw._scene import sample
from dalembert.systems import MechanicalSystem


def test_the_table_covers_the_catalogue() -> None:
    names = set(da.problems.__all__) - {"Problem"}
    assert {row.name for row in ALL} | INDEX_TWO == names
    systems = {name: getattr(da.problems, name)().system for name in names - INDEX_TWO}
    assert {name for name, system in systems.items() if getattr(system, "n_unilateral", 0)} == {row.name for row in WALLED}
    assert {name for name, system in systems.items() if system.n_nonholonomic} == {row.name for row in NONHOLONOMIC}


@over(ALL)
def test_problem_states_what_it_is(row: Row) -> None:
    problem = row.problem
    assert problem.name == row.name and problem.title and problem.reference
    assert len(problem.labels) == len(set(problem.labels)) == dim(problem)
    assert set(problem.conserved) == set(row.conserved)
    assert getattr(da.problems, row.name).__doc__.count(">>> ") >= 2


@over(ALL)
def test_start_is_consistent_whatever_the_constants(row: Row) -> None:
    changes: list[dict[str, Any]] = [{}]
    changes += [{name: row.factor * value} for name, value in row.problem.system.params.items()]
    changes += [{name: value} for name, value in row.start.items()]
    for change in changes:
        for residual in start_of(row(**change)).residuals.values():
            assert np.max(np.abs(residual), initial=0.0) < row.at_start, change


@over(ALL)
def test_every_keyword_is_a_parameter_of_the_system_or_sets_the_start(row: Row) -> None:
    problem = row.problem
    constants = set(problem.system.params)
    assert row.keywords == constants | set(row.start) and not constants & set(row.start)
    state = start_of(problem)
    for name, value in row.start.items():
        other = row(**{name: value})
        if dim(other) == dim(problem):
            least = 1e-3 * max(1.0, np.max(np.abs(state.packed)))
            assert np.max(np.abs(start_of(other).packed - state.packed)) > least, name
            assert other.system.params == problem.system.params
        else:
            assert name in {"links", "translation", "balls", "disks", "loops"} or (name == "n" and dim(other) == 2 * value + 1)


@over(ALL)
def test_no_constant_is_baked_into_the_equations(row: Row) -> None:
    system, state, random = row.problem.system, start_of(row.problem), np.random.default_rng(1)
    # A generic state: with no velocity or coordinate zero, every constant has an effect somewhere.
    y, z, lam = (x + 0.1 * random.standard_normal(len(x)) for x in (state.y, state.z, state.lam))
    generic = {"t": 0.3, "y": y, "z": z, "lam": lam, "psi": state.psi}
    names = ("H", "force", "g", "k") if isinstance(system, MechanicalSystem) else ("v", "f", "r", "g")

    def values(theta: np.ndarray) -> list[np.ndarray]:
        walls = [("phi", (0.3, y)), ("restitution", (np.ones(system.n_unilateral),))] if row in WALLED else []
        at_walls = [system.evaluate(name, *arguments, theta=theta) for name, arguments in walls]
        return [*(system.at(name, generic, theta) for name in names), *at_walls]

    for name, value in system.params.items():
        if value == 0:
            continue  # no field: another row has one
        changed = row(**{name: row.factor * value}).system
        assert changed.fingerprint == system.fingerprint, f"{name} changes the symbolic graph"
        assert changed.params == {**system.params, name: row.factor * value}
        here, there = (values(system.parameters.vector(change)) for change in (None, {name: row.factor * value}))
        effects = [np.max(np.abs(b - a), initial=0.0) for a, b in zip(here, there, strict=True)]
        assert max(effects) > 1e-6, f"{name} has no effect"


@over(SMOOTH)
def test_constraints_hold_and_momentum_maps_are_conserved_to_round_off(row: Smooth) -> None:
    problem, run = row.problem, row.run
    assert np.max(np.abs(run.y - run.y[0])) > 1e-2  # it moves
    for residual in run.residuals.values():
        assert np.max(np.abs(residual), initial=0.0) < row.round_off
    for name in row.exact:
        value = problem.conserved[name](run)
        assert len(value) == len(run.t)
        assert np.max(np.abs(value[0])) > 0.1  # the quantity is not trivially zero
        assert sizes(value).max() < 1e-12, name


@over([row for row in SMOOTH if "energy" in row.conserved])
def test_energy_error_is_of_fourth_order_and_bounded(row: Smooth) -> None:
    energy = row.problem.conserved["energy"]
    coarse = da.simulate(row.problem, LOBATTO, h=row.h, steps=4000, progress=False)
    fine = da.simulate(row.problem, LOBATTO, h=row.h / 2, steps=1000, progress=False)
    error = sizes(energy(coarse))
    assert 10 < error[:501].max() / sizes(energy(fine)).max() < 24  # 2^4 = 16
    # No drift: the error of eight times the time is that of the beginning.
    assert error.max() < row.bound * error[:501].max()


@over(NONHOLONOMIC)
def test_constraints_hold_and_conserved_quantities_converge_with_the_order(row: Nonholonomic) -> None:
    problem, runs, order = row.problem, [row.run, row.run_with(2)], 2 * row.stages
    for run in runs:
        size = 1 + max(np.abs(run.q).max(), np.abs(run.v).max())
        assert np.max(np.abs(run.q - run.q[0])) > 0.1  # it moves
        assert max(np.max(np.abs(residual), initial=0.0) for residual in run.residuals.values()) < row.round_off * size
    for name in row.conserved:
        coarse, fine = (sizes(problem.conserved[name](run)).max() for run in runs)
        assert np.max(np.abs(problem.conserved[name](runs[0])[0])) > row.nonzero  # not trivially zero
        if name in row.exact:
            assert max(coarse, fine) < 1e-12, name
        else:
            assert 2 ** (order - 0.5) < coarse / fine < 2 ** (order + 0.5), (name, coarse, fine)


@over(WALLED)
def test_it_meets_its_walls_and_stays_in_front_of_them(row: Walled) -> None:
    problem, run = row.problem, row.run
    assert isinstance(problem.system, MechanicalSystem) and len(run.impacts) >= 2
    phi = np.array([problem.system.evaluate("phi", t, q) for t, q in zip(run.t, run.q, strict=True)])
    assert phi.min() > -1e-13
    hits = zip(run.impacts.t, run.impacts.q, run.impacts.which, strict=True)
    assert max(abs(problem.system.evaluate("phi", t, q)[k]) for t, q, k in hits) < 1e-13
    for name in row.exact:
        value = problem.conserved[name](run)
        assert np.ptp(value) < 1e-12 < abs(value[0]), name


@over(ALL)
def test_drawing_shows_the_mechanism(row: Row) -> None:
    drawing, walled = row.problem.drawing, row in WALLED
    if not row.drawn:
        assert drawing is None
        return
    assert drawing is not None
    scene = sample(row.run, drawing, row.run.t[: 101 if walled else 51])
    assert scene.dim == (3 if row.spatial else 2)
    change = [np.ptp(link, axis=0).max() for link in links(scene)]
    if row.rigid is not None:
        assert max(change, default=0.0) < 1e-12 if row.rigid else max(change) > row.stretch
    assert all(np.ptp(part.points[:, 0], axis=0).max() > row.traced for part in scene.parts if part.kind == "trace")
    if walled:
        assert any(part.kind in ("wall", "track") for part in scene.parts)
        assert max(np.ptp(part.points, axis=0).max() for part in scene.parts) > 1e-2


@pytest.mark.parametrize(
    ("name", "constants", "fix"),
    [
        ("rigid_body", {"I1": 2.0}, "less than the sum of the other two"),
        ("heavy_top", {"I3": 1.2}, "less than the sum of the other two"),
        ("four_bar", {"rocker": 10.0}, "change angle or the lengths"),
        ("four_bar", {"coupler": 0.5}, "change angle or the lengths"),
        ("chain", {"links": 0}, "at least one"),
        ("chain", {"links": 2.5}, "whole number"),
        ("appell_hamel", {"speed": 0.0}, "speed > 0"),
        ("contact_oscillator", {"E0": 0.1}, "E0 is too small"),
        ("perturbed_contact_oscillator", {"E0": 0.1}, "E0 is too small"),
        ("nonholonomic_particles", {"n": 1}, "at least two"),
        ("nonholonomic_particles", {"n": 2.5}, "whole number"),
        ("continuously_variable_transmission", {"shift": 3.0}, "runs off its cones"),
        ("ball_in_bowl", {"r": 2.0}, "less than the bowl's"),
        ("ball_in_bowl", {"angle": 2.0}, "lower half"),
        ("skateboard", {"pivot": 2.0}, "less inclined"),
        ("newtons_cradle", {"lifted": 5}, "between 1 and 4"),
        ("balls_on_ring", {"d": 0.6}, "do not fit on the ring"),
        ("elliptic_billiard", {"a": 0.5}, "take a >= b"),
        ("hard_disks", {"disks": 100, "r": 0.3}, "do not fit on a square lattice"),
    ],
)
def test_impossible_constants_are_refused_with_the_fix(name: str, constants: dict[str, Any], fix: str) -> None:
    with pytest.raises(da.InputError, match=fix):
        getattr(da.problems, name)(**constants)
