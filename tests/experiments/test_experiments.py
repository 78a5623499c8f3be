"""The frame judges rightly."""

import json
import math

import numpy as np
import pytest

import dalembert as da
from dalembert import experiments
from dalembert.experiments import Check, Experiment


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


def test_a_contradiction_is_told_apart_from_a_remark():
    result = experiments.run(toy(contradicts="It says four.", remark="Two is even."))
    assert result.as_dict()["contradicts"] == "It says four." and result.as_dict()["remark"] == "Two is even."
    assert [line.strip() for line in str(result).splitlines()[-2:]] == [
        "contradicts the document: It says four.",
        "remark: Two is even.",
    ]
    assert "contradicts" not in str(experiments.run(toy())) and experiments.run(toy()).as_dict()["contradicts"] == ""


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


@pytest.mark.parametrize("bound", [np.inf, -np.inf, np.nan])
def test_a_bound_that_nothing_could_violate_or_satisfy_is_refused(bound):
    with pytest.raises(da.InputError, match="finite bound"):
        experiments.Check("error", 1.0, "<=", bound)


def test_results_are_json_even_where_numbers_are_not_finite():
    checks = (experiments.Check("a", np.inf, "<=", np.float32(0.5)), experiments.Check("b", np.nan, ">=", np.int64(1)))
    result = experiments.Result(experiments.find("jay1996.figure5.6"), False, 0.1, checks=checks)
    written = json.loads(json.dumps(result.as_dict(), allow_nan=False))["checks"]
    assert [(check["value"], check["bound"]) for check in written] == [(None, 0.5), (None, 1.0)]
