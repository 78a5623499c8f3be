"""The frame judges rightly, and the experiments' predicates fail on data that should fail them."""

import math

import numpy as np
import pytest

import dalembert as da
from dalembert import experiments
from dalembert.experiments import Check, Experiment, jay1996


@pytest.fixture
def registry():
    from dalembert.experiments import _registry

    before = dict(_registry._registered)
    yield _registry._registered
    _registry._registered.clear()
    _registry._registered.update(before)


def toy(**changes):
    def draw(data):
        from matplotlib.figure import Figure

        return Figure()

    parts = {
        "name": "toy",
        "document": "Nobody (1900)",
        "item": "table 1",
        "claim": "Two is at most three.",
        "compute": lambda full: {"x": np.array([2.0 if not full else 4.0])},
        "draw": draw,
        "holds": lambda data: (Check("x", float(data["x"][0]), "<=", 3.0),),
    }
    return Experiment(**(parts | changes))


# -- the frame -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "relation", "bound", "passes"),
    [(1, "<=", 1, True), (2, "<=", 1, False), (2, ">=", 1, True), (0, ">=", 1, False), (math.nan, "<=", 1, False),
     (math.nan, ">=", 1, False), (math.inf, "<=", 1e9, False)],
)  # fmt: skip
def test_checks_compare(value, relation, bound, passes):
    assert Check("x", value, relation, bound).passes is passes


def test_a_check_with_another_relation_is_refused():
    with pytest.raises(da.InputError):
        Check("x", 1.0, "==", 1.0)


def test_a_claim_holds_only_if_every_check_passes(tmp_path):
    good = experiments.run(toy(), out=tmp_path / "new" / "directory")
    assert good.holds and good.verdict == "holds" and good.numbers == {"x": 2.0} and good.seconds > 0
    assert [path.name for path in good.files] == ["toy.png"] and good.files[0].exists()
    bad = experiments.run(toy(), full=True)
    assert not bad.holds and bad.verdict == "does not hold" and bad.full
    mixed = experiments.run(toy(holds=lambda data: (Check("a", 0.0, "<=", 1.0), Check("b", 2.0, "<=", 1.0))))
    assert not mixed.holds and "NO  b = 2 (<= 1)" in str(mixed)
    assert not experiments.run(toy(holds=lambda data: ())).holds  # a claim that nothing was checked of does not hold


def test_a_failure_is_raised_or_kept():
    def fail(full):
        raise ZeroDivisionError("no luck")

    with pytest.raises(ZeroDivisionError):
        experiments.run(toy(compute=fail))
    result = experiments.run(toy(compute=fail), on_failure="return")
    assert result.verdict == "failed" and not result.holds and result.error == "ZeroDivisionError: no luck"
    assert "failed" in str(result)


def test_names_are_unique_and_near_misses_are_suggested(registry):
    experiments.register(toy())
    assert experiments.names()[-1] == "toy" and experiments.find("toy").claim == "Two is at most three."
    with pytest.raises(da.InputError, match="already"):
        experiments.register(toy())
    with pytest.raises(da.InputError, match=r"did you mean jay1996\.figure5\.[56]"):
        experiments.find("jay1996.figure56")


def test_an_output_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(da.InputError, match="cannot be made"):
        experiments.run(toy(), out=tmp_path / "file" / "below")


@pytest.mark.parametrize("name", experiments.names())
def test_every_experiment_cites_its_paper_and_claims_one_sentence(name):
    experiment = experiments.find(name)
    assert experiment.name == name and experiment.document and experiment.item
    assert experiment.claim.endswith(".") and experiment.claim[0].isupper()


# -- Jay (1996), figures 5.5 and 5.6 -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def portraits():
    return jay1996.compute_portraits(False)


def verdict(checks):
    return all(check.passes for check in checks)


def test_figure_5_6_holds_and_is_drawn(tmp_path):
    result = experiments.run("jay1996.figure5.6", out=tmp_path, formats=("png", "pdf"))
    assert result.holds, str(result)
    assert len(result.data["t"]) == 5001 and result.data["t"][-1] == pytest.approx(600.0)
    assert [path.suffix for path in result.files] == [".png", ".pdf"]
    first, _ = result.figure.axes
    drawn = first.lines[-1].get_data()
    assert len(drawn[0]) == 501 and drawn[0][-1] == pytest.approx(60.0)
    np.testing.assert_allclose(drawn[1], result.data["H"][:501] + 3 * math.sqrt(0.75), atol=1e-15)


def test_figure_5_6_fails_for_a_method_that_drifts():
    run = da.simulate(da.problems.double_pendulum(), da.RadauIIA(stages=2, projected=True), h=0.12, steps=5000)
    assert not verdict(jay1996.hamiltonian_holds({"t": run.t, "H": run.energy}))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda t, H: H + 5e-10 * t,  # a drift of 3 % of the band
        lambda t, H: H + 1e-9,  # a wrong initial value
        lambda t, H: np.where(t == t[2500], H + 1e-4, H),  # one step outside the band
        lambda t, H: jay1996.EXACT_ENERGY + (H - jay1996.EXACT_ENERGY) * (1 + 0.3 * t / t[-1]),  # swings that grow
        lambda t, H: np.where(t == t[777], np.nan, H),
    ],
)
def test_figure_5_6_fails_for_spoiled_data(spoil):
    data = jay1996.compute_hamiltonian(False)
    assert verdict(jay1996.hamiltonian_holds(data))
    assert not verdict(jay1996.hamiltonian_holds({"t": data["t"], "H": spoil(data["t"], data["H"])}))


@pytest.mark.slow
def test_figure_5_6_holds_over_a_million_steps():
    result = experiments.run("jay1996.figure5.6", full=True)
    assert result.holds and result.data["t"][-1] == pytest.approx(120_000.0)


def test_the_exact_motion_conserves_its_energy_and_agrees_with_a_method_of_order_ten():
    run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=6), h=0.05, steps=400)
    t, exact = jay1996.exact_double_pendulum(20.0, samples=401)
    np.testing.assert_allclose(t, run.t, atol=1e-12)
    ours = np.array([run.q[:, 0], run.p[:, 0], run.q[:, 3], run.p[:, 3]])
    np.testing.assert_allclose(exact, ours, atol=1e-8)


def test_figure_5_5_holds_and_is_drawn(portraits):
    assert verdict(jay1996.portraits_hold(portraits))
    figure = jay1996.draw_portraits(portraits)
    left, right = (ax.lines[-1].get_data() for ax in figure.axes)
    np.testing.assert_array_equal(left, (portraits["x1"], portraits["p_x1"]))
    np.testing.assert_array_equal(right, (portraits["z2"], portraits["p_z2"]))


def test_figure_5_5_fails_for_a_method_that_drifts(portraits):
    run = da.simulate(da.problems.double_pendulum(), da.RadauIIA(stages=2), h=0.12, steps=5000)
    residuals = {name: np.max(np.abs(values), axis=1) for name, values in run.residuals.items()}
    ours = {"x1": run.q[:, 0], "p_x1": run.p[:, 0], "z2": run.q[:, 3], "p_z2": run.p[:, 3], **residuals}
    failed = [check.name for check in jay1996.portraits_hold(portraits | ours) if not check.passes]
    assert any("farthest point" in name for name in failed) and "largest |g_dot|" in failed


@pytest.mark.parametrize("spoil", ["short", "energetic", "off", "nan"])
def test_figure_5_5_fails_for_spoiled_data(portraits, spoil):
    data = dict(portraits)
    if spoil == "short":  # covers a part of the portrait only
        data |= {name: data[name][:300] for name in ("x1", "p_x1", "z2", "p_z2")}
    elif spoil == "energetic":  # momenta 2 % too large
        data["p_x1"] = 1.02 * data["p_x1"]
    elif spoil == "off":
        data["g"] = data["g"] + 1e-12
    else:
        data["z2"] = np.where(data["t"] == data["t"][5], np.nan, data["z2"])
    assert not verdict(jay1996.portraits_hold(data))
