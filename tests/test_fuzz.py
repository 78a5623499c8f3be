"""A few hundred cases of benchmarks/fuzz.py: each is right or refused, and none is a finding."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import fuzz


def test_random_models_and_arguments():
    counts, findings = fuzz.study(first=0, cases=200)
    assert findings == {}
    assert counts["right"] > 60 and counts["refused"] > 60


@pytest.mark.slow
def test_many_random_models_and_arguments():
    counts, findings = fuzz.study(first=10_000, cases=10_000)
    assert findings == {} and counts["right"] > 3000


def test_a_wrong_answer_is_a_finding(monkeypatch):
    truth = fuzz.Model.reference
    monkeypatch.setattr(fuzz.Model, "reference", lambda self, t: truth(self, t) + 1e-3)
    assert fuzz.study(first=1, cases=20)[1]
