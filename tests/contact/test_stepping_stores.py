"""Time stepping in ensembles, stores and sweeps: exact solutions member by member, and the bits of single runs."""

import numpy as np
import pytest

import dalembert as da
from dalembert.runs import _stored_run as stored

G = 9.81
BLOCK = da.Lagrangian(
    lambda q, v, m: m * v @ v / 2 - m * G * q[1], 2, unilateral=lambda q: q[1], friction=lambda mu: mu, restitution=0.4,
    params={"m": 0.2, "mu": 0.3},
)  # fmt: skip
PILE = da.Spheres([0.01] * 3, masses=[0.2, 0.1, 0.3], gravity=(0, -G), planes=[((0, 1), 0.0)], friction=0.5, restitution=0.3)
BALLS = da.Spheres([0.02, 0.03], masses=[0.1, 0.2], gravity=(0, 0, -G), planes=[((0, 0, 1), 0.0)], friction=0.3, space=3)
RUNS = {
    "block": (BLOCK, da.MoreauJean(), {"q0": [0.0, 0.03], "v0": [1.0, 0.0], "h": 2e-3, "steps": 301}),
    "exact block": (BLOCK, da.NonsmoothRattle(), {"q0": [0.0, 0.03], "v0": [1.0, 0.0], "h": 2e-3, "steps": 301}),
    "discs": (PILE, da.MoreauJean(), {"q0": [-0.0101, 0.01, 0, 0.0101, 0.01, 0, 0, 0.05, 0], "v0": [0] * 9,
                                      "h": 1e-3, "steps": 301}),
    "balls": (BALLS, da.MoreauJean(), {"q0": [0, 0, 0.02, 0, 0, 0, 0.06, 0.01, 0.08, 0, 0, 0],
                                       "v0": [1.0, 0.1, 0, 0, 20.0, 3.0, 0, 0, 0, 0, 0, 0], "h": 1e-3, "steps": 301}),
}  # fmt: skip
each = pytest.mark.parametrize("name", RUNS)


def same(first, second):
    columns = vars(first.contacts)
    assert len(first.contacts) > 5 and all(
        np.array_equal(column, vars(second.contacts)[key]) for key, column in columns.items()
    )
    return np.array_equal(first.states[:], second.states[:]) and first.status == second.status == "done"


def test_blocks_of_an_ensemble_stop_where_friction_stops_them():
    """v^2 / (2 mu g), whatever the mass; the energy that reductions see falls to zero and never grows."""
    mu, v, m = np.array([0.1, 0.2, 0.5]), np.array([0.5, 1.0, 2.0]), np.array([0.2, 1e-4, 5.0])
    start = {"q0": [0, 0], "v0": np.column_stack([v, 0 * v]), "params": {"mu": mu, "m": m}, "h": 2e-4, "t1": 0.6}
    runs = da.simulate_many(BLOCK, da.NonsmoothRattle(), **start)
    np.testing.assert_allclose(runs.q[:, -1, 0], v**2 / (2 * mu * G), rtol=2e-3)
    assert np.abs(runs.v[:, -1]).max() < 1e-13
    for k in range(3):
        one = runs.contacts[k]
        slides = one.end < 0.999 * v[k] / (mu[k] * G)
        np.testing.assert_allclose(one.normal / (one.end - one.begin), m[k] * G, rtol=1e-9)
        np.testing.assert_allclose(-one.friction[slides, 0], mu[k] * one.normal[slides], rtol=1e-9)
        assert set(one.slides[slides]) == {1} and not one.slides[one.end > 1.001 * v[k] / (mu[k] * G) + 4e-4].any()
    reduced = da.simulate_many(BLOCK, da.NonsmoothRattle(), **start, reduce=["energy"]).reduced["energy"]
    np.testing.assert_allclose(reduced.max, m * v**2 / 2, rtol=1e-15)
    np.testing.assert_array_equal([reduced.last, reduced.min], [runs.energy[:, -1], runs.energy.min(axis=1)])


@each
def test_a_store_has_the_bits_of_a_run_in_memory(name, tmp_path, monkeypatch):
    """Whatever chunks it is written in, whether every state is stored or some, and wherever it was stopped and resumed."""
    system, method, given = RUNS[name]
    monkeypatch.setattr(stored, "CHUNK_NUMBERS", 100 * system.n_state)
    for every in (1, 4):
        memory = da.simulate(system, method, **given, save_every=every)
        run = da.simulate(system, method, **given, save_every=every, save_to=tmp_path / f"{every}.zarr")
        assert same(memory, run) and same(memory, da.load(tmp_path / f"{every}.zarr"))
        assert {**run.stats, **{key: 0 for key in run.stats if "seconds" in key}} == {
            **memory.stats, **{key: 0 for key in memory.stats if "seconds" in key}
        }  # fmt: skip
        place = tmp_path / f"half{every}.zarr"
        da.simulate(system, method, **given | {"steps": 150}, save_every=every, save_to=place)
        assert same(memory, da.resume(place, system, method, steps=given["steps"]))
        parts = list(run.chunks())
        assert np.array_equal(np.concatenate([part.contacts.normal for part in parts]), memory.contacts.normal)


@each
def test_a_sweep_has_the_bits_of_single_runs(name, tmp_path):
    system, method, given = RUNS[name]
    v0 = np.array(given["v0"], dtype=float) + np.linspace(0, 0.1, 3)[:, None]
    sweep = da.simulate_many(system, method, **given | {"v0": v0}, save_to=tmp_path / "sweep.zarr")
    loaded, memory = da.load(tmp_path / "sweep.zarr", system), da.simulate_many(system, method, **given | {"v0": v0})
    assert type(memory[0].contacts) is type(loaded[0].contacts) and not memory.impacts
    for k in range(3):
        single = da.simulate(system, method, **given | {"v0": v0[k]})
        assert same(single, sweep[k]) and same(single, loaded[k]) and same(single, memory[k])


def test_a_member_that_fails_says_so_and_the_others_go_on(tmp_path):
    """mu < 0 from x = 0.1 on, which it reaches with speed to spare; a store keeps what was computed until then."""
    block = da.Lagrangian(
        lambda q, v: 0.1 * v @ v - 0.2 * G * q[1], 2, unilateral=lambda q: q[1], friction=lambda q, a: 0.3 - a * q[0],
        params={"a": 0.0},
    )  # fmt: skip
    given = {"q0": [0, 0], "v0": [1, 0], "h": 1e-2, "steps": 40}
    runs = da.simulate_many(block, da.MoreauJean(), **given, params={"a": [0.0, 3.0, 1.0]}, save_to=tmp_path / "many.zarr")
    assert runs.status == ("done", "failed", "done") and "coefficient of friction below 0" in runs.message[1]
    one = da.simulate(block, da.MoreauJean(), **given, params={"a": 3.0}, save_to=tmp_path / "one.zarr", on_failure="return")
    assert one.status == "failed" and one.message == runs.message[1] and 0.09 < one.q[-1, 0] < 0.11
    assert np.array_equal(one.states[:], runs[1].states)
    with pytest.raises(da.InputError, match="impacts"):
        da.simulate_many(BLOCK, da.MoreauJean(), q0=[0, 0], v0=[1, 0], h=1e-2, steps=2, reduce="impacts")
