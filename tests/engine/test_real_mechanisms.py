"""Mechanisms as engineers state them, in their units and with their numbers in `params`: as fast and as right as textbooks'."""

from __future__ import annotations

import ctypes
import logging
import warnings
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from four_bar import SI, exact_configurations, in_units, linkage, linkage_with_numbers, start

import dalembert as da
from dalembert.compiler import _orders, _program, build_program, first_guess
from dalembert.compiler._elimination import backward_errors, choose_pivots, diagonal_order
from dalembert.compiler._metric import metric_at
from dalembert.engine import _rescue
from dalembert.engine._dense_solve import PIVOTED_STEPS
from dalembert.engine._stepper import write_start
from dalembert.errors import PivotWarning
from dalembert.runs import _stored_run
from dalembert.systems import state_at
from dalembert.systems._states import States

ERRORS = {
    da.LobattoIIIAB(2): 5e-5,
    da.LobattoIIIAB(3): 1e-10,
    da.LobattoIIIAB(4): 5e-12,
    da.LobattoIIIAB(5): 5e-12,
    da.Rattle(): 5e-5,
    da.GaussLobattoSPARK(2): 1e-10,
    da.GaussLobattoSPARK(3): 5e-12,
    da.GaussLobattoEMPRK(2): 1e-10,
    da.RadauIIA(2): 1e-7,
    da.RadauIIA(2, projected=True): 6e-8,
    da.RadauIIA(3, projected=True): 5e-12,
    da.Gauss(2, projected=True): 7e-6,
    da.Gauss(3, projected=True): 3e-9,
    da.LobattoIIIC(2, projected=True): 3e-5,
    da.LobattoIIIC(3, projected=True): 3e-10,
    da.LobattoGalerkin(3): 1e-10,
    da.UnderlyingODE(da.tableaux.gauss(2)): 1e-9,
    da.Variational("SE1"): 7e-3,
    da.Variational("SE2"): 7e-3,
    da.Variational("midpoint"): 5e-5,
    da.SymplecticEuler(): 7e-3,
    da.SymplecticEuler(conjugate=True): 7e-3,
    da.ConstrainedEuler("explicit", "explicit"): 7e-3,
    da.adjoint(da.RadauIIA(2, projected=True)): 6e-8,
    da.compose(da.SymplecticEuler(), "strang"): 8e-5,
    da.compose(da.Rattle(), "suzuki-4"): 2e-10,
}
"""The largest error of a coordinate until t = 0.2 that each method may have with h = 0.002."""

SOME = (da.LobattoIIIAB(3), da.Rattle(), da.GaussLobattoSPARK(2), da.RadauIIA(2, projected=True))


@pytest.fixture
def no_known_orders(monkeypatch):
    """As in a new process."""
    monkeypatch.setattr(_program, "_programs", {})
    monkeypatch.setattr(_orders, "_needed", {})
    monkeypatch.setattr(_orders, "_decided", {})


@pytest.mark.parametrize("method", SOME, ids=str)
def test_kernels_compute_what_their_graphs_say(method):
    """Merging common subexpressions must not change values: (x / a) * a, with a's that become one, once did."""
    system, h = linkage(), 2e-3
    state = state_at(system, **start(rate=2.0))
    program = build_program(system, method, state, h)
    memory = np.zeros(program.memory_size)
    guess, metric = first_guess(program.reduced, system, state, h), metric_at(States.of(system, state))[0]
    write_start(memory, program.layout, h, state.theta, state.packed, guess, metric)
    for kernel in program.kernels[1:]:  # in the order of a first step
        inputs = np.concatenate([memory[slot : slot + symbols.shape[0]] for symbols, slot in kernel.inputs])
        results = ca.vertcat(ca.SX(0, 1), *(ca.densify(value) for value, _ in kernel.outputs))
        graph = ca.Function("graph", [ca.vertcat(*(symbols for symbols, _ in kernel.inputs))], [results])
        wanted = np.asarray(graph(inputs)).ravel()
        for name in ["prepare"] * (kernel.name == "weigh") + [kernel.name]:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(program.code.addresses[name])(memory.ctypes.data)
        computed = np.concatenate([memory[slot : slot + value.shape[0]] for value, slot in kernel.outputs])
        if kernel.name == "finish":  # a glance contains squares of what is left when terms cancel, in rounding errors
            slots = np.concatenate([slot + np.arange(value.shape[0]) for value, slot in kernel.outputs])
            glance = slots == program.layout.orientation
            assert np.array_equal(np.sign(computed[glance]), np.sign(wanted[glance]))
            computed, wanted = computed[~glance], wanted[~glance]
        np.testing.assert_allclose(
            computed, wanted, rtol=1e-9, atol=1e-12 * np.nanmax(np.abs(wanted), initial=0.0), err_msg=kernel.name
        )


@pytest.mark.parametrize("method", ERRORS, ids=str)
def test_no_step_of_a_four_bar_is_slow_or_wrong(method):
    """From rest, with h over three decades: no step in Python, none with other pivots, the motion that of the crank's angle."""
    system, projected = linkage(), method != da.RadauIIA(2)
    for h in (2e-2, 2e-3, 2e-4, 2e-5):
        run = da.simulate(system, method, **start(), h=h, steps=min(round(0.2 / h), 300))
        assert run.stats["rescued_steps"] == run.stats["pivoted_steps"] == 0
        if projected:
            assert np.abs(run.residuals["g"]).max() < 1e-13
        if h <= 2e-3:
            assert np.abs(run.q - exact_configurations(run.t)).max() < ERRORS[method] * h / 2e-3 + 3e-12


@pytest.mark.parametrize("method", SOME, ids=str)
def test_numbers_in_params_cost_what_numbers_in_the_functions_cost(method):
    """Work is counted: the machine's load does not decide."""
    given, written = (
        da.simulate(system, method, **start(), h=2e-3, steps=300) for system in (linkage(), linkage_with_numbers())
    )
    for count in ("newton_iterations", "factorizations"):
        assert given.stats[count] <= 1.1 * written.stats[count] + 3
    operations = [
        build_program(system, method, state_at(system, **start()), 2e-3).operations
        for system in (linkage(), linkage_with_numbers())
    ]
    assert operations[0] < 1.25 * operations[1]
    assert np.abs(given.q - written.q).max() < 1e-13


UNITS = {
    "CGS": (1e3, 1e2, 1.0),
    "lengths of 1e-9": (1.0, 1e-9, 1.0),
    "lengths of 1e9": (1.0, 1e9, 1.0),
    "millimetres and milliseconds": (1e3, 1e3, 1e3),
    "astronomical": (1 / 2e30, 1 / 1.5e11, 1 / 3.15e7),
}


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("method", [*SOME, da.Variational("SE2")], ids=str)
def test_units_of_a_four_bar_do_not_matter(method, units, monkeypatch):
    mass, length, time = UNITS[units]
    values = in_units(mass, length, time)
    for h in (2e-3, 2e-5):
        wanted = da.simulate(linkage(), method, **start(rate=1.0), h=h, steps=150)
        with monkeypatch.context() as patch:
            patch.setattr(_program, "_compile", lambda *_: pytest.fail("compiled again"))
            run = da.simulate(linkage(values), method, **start(values, rate=1.0 / time), h=h * time, steps=150)
        assert run.stats["rescued_steps"] == run.stats["pivoted_steps"] == 0
        np.testing.assert_allclose(run.q / ([length, length, 1.0] * 3), wanted.q, atol=2e-14)
        sizes = mass * length / time * np.array([1.0, 1.0, length] * 3)
        largest = np.abs(wanted.p).max(axis=0)
        np.testing.assert_allclose(run.p / sizes / largest, wanted.p / largest, atol=1e-12)


@pytest.mark.parametrize("method", SOME, ids=str)
def test_a_new_h_start_or_parameter_compiles_nothing(method, monkeypatch):
    system = linkage()
    da.simulate(system, method, **start(), h=2e-3, steps=2)
    monkeypatch.setattr(_program, "_compile", lambda *_: pytest.fail("compiled again"))
    for h in (2e-2, 2e-4, 2e-6):
        da.simulate(system, method, **start(), h=h, steps=2)
    for crank in (0.1, 2.0, 3.0, 4.5, 6.0):
        da.simulate(system, method, **start(crank=crank, rate=3.0), h=2e-3, steps=2)
    for heavier in (0.01, 100.0):
        values = SI | {"m2": SI["m2"] * heavier, "c": 0.0}
        da.simulate(system, method, **start(values), h=2e-3, steps=2, params=values)


def test_a_start_with_other_masses_keeps_its_velocities_or_is_refused_with_the_reason():
    """Momenta that stay would mean other velocities, which the constraints do not allow."""
    by_momentum, heavier = da.consistent(linkage(), **start(rate=3.0)), SI | {"m2": 6.0}
    state = da.consistent(linkage(), q0=by_momentum.q, v0=by_momentum.v)
    run = da.simulate(linkage(), da.Rattle(), start=state, params=heavier, h=2e-3, steps=3)
    np.testing.assert_allclose(run.v[0], state.v, rtol=1e-12, atol=1e-12)
    runs = da.simulate_many(linkage(), da.Rattle(), start=state, params={"m2": [SI["m2"], 6.0]}, h=2e-3, steps=3)
    np.testing.assert_allclose(runs.v[:, 0], [state.v, state.v], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(runs.q[1], run.q)
    with pytest.raises(da.InconsistentStart, match=r"made with other parameters and keeps its p: .*consistent\(..., params="):
        da.simulate(linkage(), da.Rattle(), start=by_momentum, params=heavier, h=2e-3, steps=3)


def test_another_pivot_order_is_announced(monkeypatch, no_known_orders, caplog):
    monkeypatch.setattr(_orders, "LARGEST_ERROR", {"jacobian": 0.0, "last": 1e-14})  # so that every start needs its own
    for crank in (1.0, 1.001, 4.0):
        da.simulate(linkage(), da.Rattle(), **start(crank=crank), h=2e-3, steps=2)
    assert len(caplog.records) <= 2
    assert all(record.levelno == logging.WARNING and "another pivot order" in record.message for record in caplog.records)


def failing_orders(reduced, part, states, h, guesses, alone):
    """An order that suits the pattern of the matrix, but not its values: pivots vanish."""
    matrix = reduced.matrix(part)
    rows, columns = (np.array(a, dtype=int) for a in matrix.sparsity().get_triplet())
    if part == "last":
        return [diagonal_order(matrix)] * len(states)
    values = np.asarray(reduced.entries(part)(guesses[0], states.t[0], h, states.theta[0], states.packed[0]), dtype=float)
    random = np.random.default_rng(3)
    for _ in range(50):
        order = choose_pivots(rows, columns, random.normal(size=(len(rows), 1)), matrix.shape[0])
        if backward_errors(order, rows, columns, values, matrix.shape[0])[0] > 1e-2:
            return [order] * len(states)
    raise AssertionError("every order serves this matrix")


WAYS = {"straight-line": (8_000, 200), "at run time": (-1, 200), "another order": (-1, 10)}
"""Products of an elimination in straight-line code, and unknowns of one with full matrices, at most."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", [da.LobattoIIIAB(3), da.GaussLobattoSPARK(2)], ids=str)
def test_a_failing_pivot_order_has_a_compiled_way_out(method, way, monkeypatch, no_known_orders):
    wanted = da.simulate(linkage(), method, **start(), h=2e-3, steps=150)
    limit, dense = WAYS[way]
    monkeypatch.setattr(_program, "STRAIGHT_LINE_LIMIT", limit)
    monkeypatch.setattr(_program, "_programs", {})
    monkeypatch.setattr(_rescue, "DENSE", dense)
    monkeypatch.setattr(_orders, "_orders_for", failing_orders)
    monkeypatch.setattr(_orders, "_decided", {})  # in which the order of the run above is
    if way == "another order":
        run = da.simulate(linkage(), method, **start(), h=2e-3, steps=150)
    else:
        with pytest.warns(PivotWarning, match="steps were solved by dense elimination.*a backward error of") as warned:
            run = da.simulate(linkage(), method, **start(), h=2e-3, steps=150)
        assert warned[0].filename == __file__
        # The fixed order is tried again after as many steps as were made so, and rounding may let it through a single one.
        assert 150 - 150 // PIVOTED_STEPS <= run.stats["pivoted_steps"] <= 150
    assert run.stats["rescued_steps"] == 0
    assert np.abs(run.q - wanted.q).max() < 1e-13
    assert max(np.abs(residual).max() for residual in run.residuals.values()) < 1e-13


@pytest.mark.filterwarnings("ignore::dalembert.errors.PivotWarning")
def test_a_run_with_failing_pivots_goes_on_from_a_store_as_if_it_had_not_ended(monkeypatch, no_known_orders, tmp_path):
    """How long the fixed order is left alone is forgotten where chunks begin, as it is in another process."""
    monkeypatch.setattr(_orders, "_orders_for", failing_orders)
    monkeypatch.setattr(_stored_run, "CHUNK_NUMBERS", 400)

    def stored(name, steps):
        monkeypatch.setattr(_orders, "_decided", {})
        monkeypatch.setattr(_program, "_programs", {})
        return da.simulate(linkage(), da.LobattoIIIAB(3), **start(), h=2e-3, steps=steps, save_to=tmp_path / name)

    whole = stored("whole.zarr", 100)
    chunk = whole.store.header.chunk
    stored("half.zarr", 2 * chunk)
    on = da.resume(tmp_path / "half.zarr", linkage(), da.LobattoIIIAB(3), steps=100)
    assert 2 * chunk < 80 < whole.stats["pivoted_steps"]
    assert np.array_equal(on.states, whole.states)


@pytest.mark.parametrize(("pivoted", "steps", "warns"), [(3, 10, False), (4, 1000, True), (4, 4000, False), (9, 4000, True)])
def test_a_few_steps_with_pivots_of_their_own_are_not_worth_a_warning(pivoted, steps, warns):
    stepper = SimpleNamespace(counts={"pivoted": pivoted}, trouble="at t = 1", warned=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            _rescue.warn_of_pivots([stepper], steps)
    assert len(caught) == warns


@pytest.mark.filterwarnings("ignore::dalembert.errors.PivotWarning")
def test_the_way_out_is_compiled_for_loose_solves_too(monkeypatch, no_known_orders):
    """They are not in doubt, however slowly increments shrink: no step is left to Python."""
    monkeypatch.setattr(_orders, "_orders_for", failing_orders)
    monkeypatch.setattr(_orders, "_decided", {})  # in which the order of the run above is
    run = da.simulate(linkage(), da.LobattoIIIAB(3), **start(rate=60.0), h=0.04, steps=1, newton_tolerance=1e-10)
    assert run.stats["pivoted_steps"] == 1 and run.stats["rescued_steps"] == 0


@pytest.mark.parametrize("h", [1e-2, 1e-3])
@pytest.mark.parametrize("method", [da.Rattle(), da.LobattoIIIAB(3), da.LobattoIIIAB(4)], ids=str)
def test_what_a_motor_holds_at_rest_stays_there(method, h):
    """A rack of 0.2 kg, whose weight its pinion's motor balances: it moves by what rounding leaves of forces and impulses."""
    m = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
    rack = m.body("rack", mass=0.2, inertia=1e-5, at=(0.02, 0))
    pinion = m.body("pinion", mass=0.1, inertia=2e-5, at=(0, 0))
    hinge = m.revolute(m.ground, pinion, at=(0, 0))
    m.gear(m.prismatic(m.ground, rack, at=(0.02, 0), axis=(0, 1)), hinge, ratio=0.02)
    m.motor(hinge, 0.2 * 9.81 * 0.02)
    run = da.simulate(m, method, h=h, steps=200)
    assert run.status == "done" and run.stats["pivoted_steps"] == run.stats["rescued_steps"] == 0
    assert np.abs(run.q - run.q[0]).max() < 1e-15 * (1 + run.t[-1] / h)
