"""Programs are kept for equal models to come, a few at a time; models that are gone are freed with all that belongs to them."""

import copy
import gc
import weakref

import numpy as np
import pytest

import dalembert as da
from dalembert.compiler import _jit, _observe, _orders, _program
from dalembert.contact import _event_program
from dalembert.symbolic._kept import Recent, kept


def pendulum(gravity):
    return da.Hamiltonian(lambda q, p: p @ p / 2 + gravity * q[1], dim=2, holonomic=lambda q: [np.hypot(q[0], q[1]) - 1])


def simulate(system):
    run = da.simulate(system, da.Rattle(), q0=[1, 0], p0=[0, 0], h=0.01, steps=2)
    return run.energy, run.lam


@pytest.fixture
def few_are_kept(monkeypatch):
    remembered = ((_program, "_programs"), (_program, "_by_graph"), (_observe, "_observers"), (_orders, "_needed"))
    for module, name in (*remembered, (_orders, "_decided")):
        monkeypatch.setattr(module, name, Recent(2))
    assert isinstance(_event_program._programs, Recent)
    monkeypatch.setattr(_event_program, "_programs", Recent(2))


def test_models_that_are_gone_are_freed_with_their_machine_code(few_are_kept):
    system = pendulum(9.81)
    simulate(system)
    before, alive = len(_jit._compiled), weakref.ref(system)
    program = weakref.ref(next(iter(_program._programs.values())))
    del system
    for k in range(4):
        simulate(pendulum(9.82 + 0.01 * k))
    gc.collect()
    assert alive() is None and program() is None
    assert len(_jit._compiled) <= before + 2


def test_programs_of_impacts_and_kernels_of_ensembles_are_freed_with_their_models(few_are_kept):
    def bounce(gravity):
        ball = da.Hamiltonian(lambda q, p: p[0] ** 2 / 2 + gravity * q[0], 1, unilateral=lambda q: [q[0]])
        given = {"q0": [[1.0], [0.5]], "p0": [0.0], "h": 0.01, "steps": 2, "reduce": ["energy"], "workers": 1}
        da.simulate_many(ball, da.CVA(), **given)

    bounce(9.0)
    gc.collect()
    first = weakref.ref(next(iter(_event_program._programs.values())))
    for k in range(2):
        bounce(9.1 + 0.1 * k)
    gc.collect()
    assert first() is None and len(_event_program._programs) == 2
    before = len(_jit._compiled)
    bounce(9.5)
    gc.collect()
    assert len(_jit._compiled) <= before


def test_equal_models_share_a_program_also_after_the_first_is_gone(few_are_kept):
    simulate(pendulum(9.81))
    (program,) = _program._programs.values()
    gc.collect()
    simulate(pendulum(9.81))
    assert list(_program._programs.values()) == [program]


def test_the_model_that_was_not_used_for_longest_is_forgotten_whole():
    recent = Recent(2)
    for key in (("a", 1), ("a", 2), ("b", 1)):
        recent[key] = key
    assert recent["a", 1] == ("a", 1)
    recent["c", 1] = 0
    assert set(recent) == {("a", 1), ("a", 2), ("c", 1)}
    assert recent.setdefault(("d", 1), 7) == 7 and set(recent) == {("c", 1), ("d", 1)}


def test_what_is_kept_is_kept_once_and_not_copied():
    calls = []

    @kept
    def remembered(owner, k):
        calls.append(k)
        return [k]

    system = pendulum(1.0)
    assert remembered(system, 3) is remembered(system, 3) and calls == [3]
    assert remembered(copy.copy(system), 3) == [3] and calls == [3, 3]
