"""Every experiment of the registry: its claim holds and is drawn, and its predicate fails on data that should fail it.

What is wrong data is said beside the other specifics of a document, in the table WRONG of test_<document>.py.
"""

import importlib

import pytest
from experiment_data import computed, failed

from dalembert import experiments
from dalembert.experiments import _registry

WRONG = {
    name: cases
    for document in experiments.documents()
    for name, cases in importlib.import_module(f"test_{document}").WRONG.items()
}


def in_one_process(name, *more):
    """Tests of one experiment go to one process, which computes its data once; those that must be named take minutes."""
    marks = [pytest.mark.xdist_group(name), *([pytest.mark.slow] if experiments.find(name).named_only else [])]
    return pytest.param(name, *more, marks=marks, id="-".join((name, *more)))


NAMES = [in_one_process(name) for name in experiments.names()]
QUICK = [in_one_process(name) for name in experiments.names() if not experiments.find(name).timed]


@pytest.mark.parametrize("name", QUICK)
def test_the_claim_holds_and_is_drawn(name, tmp_path):
    data, experiment = computed(name), experiments.find(name)
    checks = tuple(experiment.holds(data))
    assert len(checks) >= 4 and all(check.passes for check in checks), "\n".join(map(str, checks))
    file = _registry._write(experiment, experiment.draw(data), tmp_path, ("png",))[0]
    assert 10_000 < file.stat().st_size < 600_000


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_claim_holds_at_full_length(name):
    result = experiments.run(name, full=True)
    assert result.holds, str(result)


@pytest.mark.parametrize("name", NAMES)
def test_it_cites_its_paper_and_claims_one_sentence(name):
    experiment = experiments.find(name)
    assert experiment.name == name and experiment.document and experiment.item
    assert experiment.claim.endswith(".") and experiment.claim[0].isupper()


def test_every_experiment_is_tried_on_wrong_data():
    assert set(WRONG) == set(experiments.names()) and all(WRONG.values())


@pytest.mark.parametrize(("name", "words"), [in_one_process(name, words) for name, cases in WRONG.items() for words in cases])
def test_wrong_data_fail(name, words):
    data = computed(name)
    assert failed(name, dict(data) | WRONG[name][words](data))
