"""`dalembert run --save-to` and `dalembert resume`."""

import json
import shlex

import numpy as np
import pytest

import dalembert as da
from dalembert.cli import main

pytest.importorskip("zarr")

MODEL = """
import numpy as np
import dalembert as da

system = da.Hamiltonian(
    lambda q, p, m: p @ p / (2 * m) + m * q[1],
    dim=2, holonomic=lambda q: [np.hypot(q[0], q[1]) - 1], params={"m": 1.0})

def heavy(mass=2.0):
    return da.problems.pendulum(m=mass)
"""


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mymodel.py").write_text(MODEL)

    def run(line):
        code = main(shlex.split(line))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_run_is_written_and_made_longer(command):
    code, out, _ = command("run pendulum --method Rattle --steps 300 --save-every 10 --save-to new/run.zarr --json")
    assert code == 0 and json.loads(out)["files"] == ["new/run.zarr"]
    code, out, _ = command("resume new/run.zarr pendulum --steps 5e2 --plot run.png --json")
    report = json.loads(out)
    assert code == 0 and report["steps"] == 500 and report["files"] == ["new/run.zarr", "run.png"]
    assert report["method"] == "da.Rattle()" and report["residuals"]["g"] < 1e-14
    expected = da.simulate(da.problems.pendulum(), da.Rattle(), steps=500, save_every=10)
    np.testing.assert_allclose(da.load("new/run.zarr").q, expected.q, atol=1e-12)


def test_models_of_ones_own_and_their_settings(command):
    assert command("run mymodel.py:system --set m=3 --q0 1,0 --p0 0,0 --h 0.1 --steps 20 --save-to a.zarr")[0] == 0
    assert command("resume a.zarr mymodel.py:system --steps 40")[0] == 0
    assert da.load("a.zarr").parameters["m"] == 3.0 and len(da.load("a.zarr")) == 41
    assert command("run mymodel.py:heavy --set mass=5 --steps 20 --save-to b.zarr")[0] == 0
    assert command("resume b.zarr mymodel.py:heavy --set mass=5 --steps 30")[0] == 0
    code, _, err = command("resume b.zarr mymodel.py:heavy --steps 40")
    assert code == 2 and "the model's parameter m is 2.0, and was 5.0" in err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("resume nowhere.zarr pendulum", "nowhere.zarr cannot be read"),
        ("resume a.zarr double_pendulum", "belongs to another model"),
        ("resume a.zarr pendulum --method 'LobattoIIIAB(stages=4)'", "computed by da.LobattoIIIAB(stages=3)"),
        ("resume a.zarr pendulum --steps -1", "total number of steps"),
        ("resume a.zarr mymodel.py:system --set m=3", "leave --set out"),
        ("resume sweep.zarr pendulum", "a sweep of many runs"),
        ("run pendulum --save-to a.zarr", "exists already"),
    ],
)
def test_what_cannot_be_resumed_is_one_sentence_and_exit_code_2(command, line, message):
    command("run pendulum --steps 20 --save-to a.zarr")
    da.simulate_many(da.problems.pendulum(), da.Rattle(), params={"g": [1.0, 2.0]}, h=0.1, steps=3, save_to="sweep.zarr")
    code, out, err = command(line)
    assert code == 2 and not out and message in err and err.count("\n") == 1


def test_a_failed_step_keeps_the_store(command, tmp_path):
    (tmp_path / "ending.py").write_text(
        "import numpy as np, dalembert as da\n"
        "system = da.Hamiltonian(lambda t, q, p: p @ p / 2 + np.sqrt(1 - t) * q[0], dim=1)\n"
    )
    code, out, err = command("run ending.py:system --q0 0 --p0 0 --h 0.01 --steps 200 --save-to a.zarr")
    assert code == 1 and "failed" in err and "a.zarr" in out and da.load("a.zarr").t[-1] == pytest.approx(1.0)
