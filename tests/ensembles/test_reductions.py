"""Reductions inside the loop against the same numbers from stored states."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from ensemble_cases import double_pendulums, falling_into_a_hole, rolling_coins
from memory import forget, most_held

import dalembert as da
from dalembert.engine import _batch


@pytest.mark.parametrize("simd", [False, True])
def test_reductions_equal_post_processing(simd):
    case = double_pendulums(9, da.LobattoIIIAB(3))
    wanted = {"energy": "energy", "residuals": "residuals", "tip": lambda q, v, t, g: g * q[3] + v[2] * np.sin(t)}
    runs = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=700, save_every=1, reduce=wanted, simd=simd)
    assert set(runs.reduced) == {"energy", "g", "g_dot", "tip"}
    tip = case.params["g"][:, None] * runs.q[:, :, 3] + runs.v[:, :, 2] * np.sin(runs.t)
    series = {"energy": runs.energy, "tip": tip} | {n: np.abs(r).max(axis=2) for n, r in runs.residuals.items()}
    for name, values in series.items():
        reduced, scale = runs.reduced[name], np.abs(values).max()
        close = {"rtol": 0, "atol": 4e-16 * max(scale, 1.0)}
        np.testing.assert_allclose(reduced.first, values[:, 0], **close)
        np.testing.assert_allclose(reduced.last, values[:, -1], **close)
        np.testing.assert_allclose(reduced.min, values.min(axis=1), **close)
        np.testing.assert_allclose(reduced.max, values.max(axis=1), **close)
        np.testing.assert_allclose(reduced.range, np.ptp(values, axis=1), rtol=0, atol=1e-15 * max(scale, 1.0))
        np.testing.assert_allclose(reduced.mean, values.mean(axis=1), rtol=0, atol=701 * 2.2e-16 * max(scale, 1.0))
        if name not in ("energy", "tip"):
            continue  # residuals are rounding errors: which ones is up to the compiler
        slopes = [np.polynomial.Polynomial.fit(runs.t, row, 1).convert().coef[1] for row in values - values[:, :1]]
        np.testing.assert_allclose(reduced.slope, slopes, rtol=1e-9, atol=1e-14 * np.ptp(values))


def test_reductions_store_the_first_and_the_last_state_alone():
    case = double_pendulums(4, da.Rattle(), h=0.05)
    runs = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=123, reduce=["energy"], simd=False)
    assert runs.q.shape == (4, 2, 4) and runs.t.tolist() == [0, 123 * case.h]
    alone = da.simulate(case.system, case.method, **case.member(3), h=case.h, steps=123)
    assert np.array_equal(runs.q[3, 1], alone.q[-1]) and np.array_equal(runs.last[3, :4], alone.q[-1])


@pytest.mark.parametrize("save_every", [1, 3, 256, 300, 1000])
def test_a_watch_does_not_change_what_is_stored(save_every):
    case = double_pendulums(3, da.LobattoIIIAB(2), h=0.05)
    plain, watched = (
        da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=1000, save_every=save_every, simd=False, **extra)
        for extra in ({}, {"reduce": ["energy"]})
    )
    assert np.array_equal(plain.states, watched.states)


@pytest.mark.parametrize("simd", [False, True])
def test_a_reduction_ends_where_its_member_fails(simd):
    case = falling_into_a_hole(9)
    wanted = {"q": lambda q: q[0]}
    runs = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=200, save_every=1, reduce=wanted, simd=simd)
    for k in (2, 5):
        assert runs.reduced["q"].last[k] == runs[k].q[-1, 0] == runs.reduced["q"].max[k]
        assert runs.reduced["q"].mean[k] == pytest.approx(runs[k].q.mean(), abs=1e-14)


def test_residuals_of_nonholonomic_constraints_are_reduced():
    case = rolling_coins(5)
    runs = da.simulate_many(case.system, case.method, **case.all, h=case.h, steps=100, save_every=1, reduce="residuals")
    assert set(runs.reduced) == {"k"}
    assert np.allclose(runs.reduced["k"].max, np.abs(runs.residuals["k"]).max(axis=(1, 2)), rtol=0, atol=3e-16)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_does_not_grow_with_the_length():
    case = double_pendulums(8, da.Rattle(), h=0.02)
    arguments = {**case.all, "h": case.h, "reduce": ["energy"], "workers": 1}
    for _ in range(2):  # the first time drivers may have to be compiled, which takes as much
        forget()
        before = most_held()
        da.simulate_many(case.system, case.method, steps=400_000, **arguments)  # 200 MB, if its states were stored
    assert most_held() - before < 20e6


def test_reductions_that_do_not_exist_are_refused():
    case = double_pendulums(2, da.Rattle())
    for wanted in ("power", {"a": 3}):
        with pytest.raises(da.InputError, match="reduce names"):
            da.simulate_many(case.system, case.method, **case.all, h=0.1, steps=2, reduce=wanted)
    with pytest.raises(da.ModelError, match=r"reduce\['a'\] names the argument 'x'"):
        da.simulate_many(case.system, case.method, **case.all, h=0.1, steps=2, reduce={"a": lambda x: x})
    with pytest.raises(da.ModelError, match="must return one number"):
        da.simulate_many(case.system, case.method, **case.all, h=0.1, steps=2, reduce={"a": lambda q: q})


@pytest.mark.parametrize("simd", [False, True])
def test_a_quantity_that_was_not_a_number_once_has_no_bounds(simd):
    oscillator = da.Hamiltonian(lambda q, p: (p @ p + q @ q) / 2, dim=1)
    options = {"q0": [[1.0], [0.5], [2.0]], "p0": [0.0], "h": 0.1, "steps": 60, "simd": simd}
    roots = da.simulate_many(oscillator, da.Gauss(2), **options, reduce={"root": lambda q: np.sqrt(q[0] + 1.5)}).reduced["root"]
    assert np.isfinite(roots.first).all() and np.isfinite(roots.last).all()  # after a period all is well again
    for values in (roots.min, roots.max, roots.range, roots.mean):
        assert np.isfinite(values).tolist() == [True, True, False]
    assert np.allclose(roots.max[:2], np.sqrt([2.5, 2.0]), atol=1e-3) and np.allclose(
        roots.min[:2], np.sqrt([0.5, 1.0]), atol=1e-2
    )


def test_members_that_never_began_have_no_reductions(monkeypatch):
    """As after Ctrl-C: only the first batch is run."""
    advance, carried = _batch.Batch.advance, []

    def first_only(batch):
        if not carried or batch is carried[0]:
            carried.append(batch)
            advance(batch)

    monkeypatch.setattr(_batch.Batch, "advance", first_only)
    oscillator = da.Hamiltonian(lambda q, p: (p @ p + q @ q) / 2, dim=1)
    q0 = np.linspace(1, 2, 64)[:, None]
    runs = da.simulate_many(oscillator, da.Gauss(2), q0=q0, p0=[0.0], h=0.1, steps=50, reduce="energy", workers=1, simd=False)
    began, energy = runs.steps_done > 0, runs.reduced["energy"]
    assert 0 < began.sum() < 64 and np.allclose(energy.first[began], q0[began, 0] ** 2 / 2)
    for name in ("first", "last", "min", "max", "range", "mean", "slope"):
        assert np.array_equal(np.isfinite(getattr(energy, name)), began)
