"""A few hundred cases of benchmarks/fuzz.py: each is right or refused, and none is a finding."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import fuzz
import fuzz_families
import fuzz_models


@pytest.mark.parametrize("number", [30, 143, 257])
def test_random_models_and_arguments(number):
    counts, findings = fuzz.block(number, members=80)
    assert findings == []
    assert counts["model", "right"] >= 18 and counts["a construction", "refused"] > 4 and counts["door", "right"] == 4


@pytest.mark.slow
def test_many_random_models_and_arguments():
    counts, findings = fuzz.study(first=100_000, cases=20_000, members=400)
    assert findings == {} and counts["model", "right"] > 8000


def test_a_wrong_answer_is_a_finding(monkeypatch):
    truth = fuzz_models.Family.truth
    monkeypatch.setattr(fuzz_models.Family, "truth", lambda self, batch, length: truth(self, batch, length) + 1e-3)
    assert fuzz.block(30, members=20)[1]


def test_a_block_that_ended_the_process_is_a_finding(tmp_path):
    log = tmp_path / "log"
    log.write_text(
        '{"began": 7}\n{"block": 7, "counts": [["model", "right", 3]], "findings": [], "seconds": 1.0}\n{"began": 8}\n'
    )
    assert fuzz.read(log)[1] == {}  # it may still be running
    with log.open("a") as file:
        file.write('{"began": 9}\n')
    counts, findings, following, seconds = fuzz.read(log)
    assert counts["model", "right"] == 3 and list(findings) == [8] and following == 10 and seconds == 1.0


def test_the_references_agree_with_other_equations():
    """The reduced equations of the families against the library at a high order, on a model that none of them states."""
    import numpy as np

    import dalembert as da

    family, rng = fuzz_families.Tree((-1, 0), (1.0, 1.0)), np.random.default_rng(3)
    batch = family.draw(rng, 3)
    L, angles = family.LENGTH, da.Lagrangian(
        lambda q, v, m0, m1: (
            m0 * 0.3**2 / 6 * v[0] ** 2
            + m1 / 2 * (0.09 * v[0] ** 2 + 0.03 * v[1] ** 2 + 0.09 * np.cos(q[0] - q[1]) * v[0] * v[1])
            - 9.81 * (m0 * 0.15 * np.sin(q[0]) + m1 * (0.3 * np.sin(q[0]) + 0.15 * np.sin(q[1])))
        ), dim=2, params={"m0": 1.0, "m1": 1.0},
    )  # fmt: skip
    q = batch.start[:, [2, 5]]
    w = batch.start[:, [8, 11]] / (family.masses(batch.numbers) * L**2 / 12)
    for k in range(3):
        params = {name: values[k] for name, values in batch.numbers.items()}
        run = da.simulate(angles, da.Gauss(4), q0=q[k], v0=w[k], params=params, h=0.002, steps=100)
        assert np.allclose(family.truth(batch, 0.2)[k, [2, 5]], run.q[-1], rtol=0, atol=1e-9)
