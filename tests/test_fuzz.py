"""A few hundred cases of benchmarks/fuzz.py: each is right or refused, and none is a finding."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import fuzz
import fuzz_families
import fuzz_models
import fuzz_record

import dalembert as da


@pytest.mark.parametrize("number", [30, 143, 257])
def test_random_models_and_arguments(number):
    counts, findings = fuzz.block(number, members=80)
    assert findings == []
    assert counts["model", "right"] >= 18 and counts["a construction", "refused"] > 4 and counts["door", "right"] == 4


@pytest.mark.slow
def test_many_random_models_and_arguments():
    counts, findings = fuzz.study(first=100_000, cases=20_000, members=400)
    assert findings == {} and counts["model", "right"] > 8000


FAMILIES = {
    "quartic": (fuzz_models.Quartic(2, 1), da.LobattoIIIAB(2)),
    "tree": (fuzz_families.Tree((-1,), (1.0,)), da.LobattoIIIAB(2)),
    "bouncing": (fuzz_families.Bouncing(), da.CVA()),
    "curved metric": (fuzz_families.CurvedMetric(2, 1), da.LobattoIIIAB(2)),
    "index 2": (fuzz_families.IndexTwo(2, 1), da.RadauIIA(2)),
    "nonlinear": (fuzz_families.Nonlinear(2, 1), da.GaussLobattoSPARK(2)),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_wrong_answer_is_a_finding(name, monkeypatch):
    """A reference that is wrong by 1e-3: no member converges to it."""
    family, method = FAMILIES[name]
    truth = type(family).truth
    monkeypatch.setattr(type(family), "truth", lambda self, batch, length: truth(self, batch, length) + 1e-3)
    monkeypatch.setattr(fuzz, "doors", lambda *given: (fuzz.Outcomes(), []))
    with np.errstate(all="ignore"):
        _, findings = fuzz.numerical(np.random.default_rng(1), family, method, 20)
    assert len(findings) > 10


def test_a_store_that_is_not_read_back_is_a_finding(monkeypatch):
    def refuses(path):
        raise da.DalembertError(f"{path} cannot be read")

    monkeypatch.setattr(da, "load", refuses)
    family, method = FAMILIES["bouncing"]
    rng = np.random.default_rng(1)
    counts, findings = fuzz.doors(rng, family, method, family.draw(rng, 3), 0.01, 4)
    assert not counts.total() and "cannot be read" in findings[0]


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


def test_a_process_that_ends_without_a_word_has_left_one(tmp_path):
    """What it was about to do, the signal that ended it, and where it was then."""
    log, folder = tmp_path / "log", Path(fuzz.__file__).parent
    code = "import os, pathlib, fuzz_record as r; r.begin(pathlib.Path('log'), 7, 60.0); r.doing('case 3'); os.abort()"
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(folder)})
    words = fuzz_record.last_words(log, ended.returncode)
    assert "code -6" in words and "case 3" in words and "Fatal Python error: Aborted" in words
    log.write_text(f'{{"began": 7}}\n{json.dumps({"died": words})}\n{{"began": 8}}\n')
    assert fuzz.read(log)[1] == {7: [words]}


def test_the_references_agree_with_other_equations():
    """The reduced equations of the families against the library at a high order, on a model that none of them states."""
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
