"""Who is answered: those who know the token, from this page, on this machine."""

import json
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ellipj, ellipk

import dalembert as da
from dalembert.explorer import _server
from dalembert.explorer._server import Server, bound, own_token
from dalembert.explorer._session import Session

websockets = pytest.importorskip("websockets.sync.client")
from websockets.exceptions import InvalidStatus  # noqa: E402


def status(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def connected(served, origin=None, token=None):
    port = served.address.port
    word = served.address.token if token is None else token
    return websockets.connect(f"ws://127.0.0.1:{port}/ask?token={word}", origin=origin or f"http://127.0.0.1:{port}")


def test_the_page_needs_the_token(served):
    url = served.address.url
    assert status(url) == 200
    assert status(url.partition("?")[0]) == 403
    assert status(url + "x") == 403 and status(url[:-1]) == 403


def test_names_that_others_point_at_this_machine_are_refused(served):
    assert status(served.address.url, Host="evil.example") == 400
    assert status(served.address.url, Host=f"localhost:{served.address.port}") == 200


def test_questions_need_the_token_and_the_origin_of_the_page(served):
    with connected(served) as line:
        line.send(json.dumps({"do": "model"}))
        assert json.loads(line.recv())["name"] == "double_pendulum"
    for given in ({"origin": "http://evil.example"}, {"origin": "null"}, {"token": "no"}, {"token": ""},
                  {"origin": f"https://127.0.0.1:{served.address.port}"}):  # fmt: skip
        with pytest.raises(InvalidStatus) as refused:
            connected(served, **given).close()
        assert refused.value.response.status_code == 403
    with pytest.raises(InvalidStatus):  # no origin at all
        websockets.connect(f"ws://127.0.0.1:{served.address.port}/ask?token={served.address.token}").close()


def test_nonsense_does_not_end_a_conversation(served):
    with connected(served) as line:
        for text in ("[1, 2]", '"x"', '{"do": "run"}'):
            line.send(text)
            assert "error" in json.loads(line.recv())
        line.send(json.dumps({"do": "run", "pane": 0, "id": 1, "method": "Rattle"}))
        assert json.loads(line.recv())["status"] == "done"


def test_only_this_machine_is_served(served):
    assert served._listener.getsockname()[0] == "127.0.0.1"
    own = socket.gethostbyname(socket.gethostname())
    if not own.startswith("127."):
        with pytest.raises(OSError):
            socket.create_connection((own, served.address.port), timeout=2)


def test_headers_keep_the_page_to_itself(served):
    with urllib.request.urlopen(served.address.url, timeout=10) as answer:
        assert answer.headers["Referrer-Policy"] == "no-referrer"  # the token is in the address
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    for name in ("explore.js", "explore.css"):
        with urllib.request.urlopen(f"http://127.0.0.1:{served.address.port}/{name}", timeout=10) as answer:
            text = answer.read().decode()
        assert "http://" not in text and "https://" not in text and served.address.token not in text


def test_the_token_is_kept_for_this_user_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(_server, "cache_directory", lambda: tmp_path / "cache" / "models")
    first = own_token()
    kept = tmp_path / "cache" / "explore-token"
    assert own_token() == first == kept.read_text() and len(first) >= 32
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.chmod(0o644)  # others may have read it
    assert own_token() != first
    monkeypatch.setattr(_server, "cache_directory", lambda: None)
    assert own_token() != own_token()


def test_a_port_that_is_taken_is_refused(served):
    with pytest.raises(da.DalembertError, match="choose another one"):
        bound(served.address.port)
    with pytest.raises(da.DalembertError, match="choose another one"):
        bound(70000)


MODEL = """
import dalembert as da
def heavy(mass=2.0):
    return da.problems.pendulum(m=mass)
system = da.Hamiltonian(lambda q, p, k: (p @ p + k * (q @ q)) / 2, dim=2, params={"k": 1.0})
m = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
m.revolute(m.ground, m.rod("arm", (0, 0), (0.2, 0), mass=0.2), at=(0, 0))
"""


@pytest.mark.parametrize(
    "line",
    [
        "mymodel.py:heavy",
        "mymodel.py:system --q0 1,0 --p0 0,1/2 --h 0.05 --steps 100 --method Gauss",
        "mymodel.py:m --h 0.01 --steps 100",
    ],
)
def test_the_command_serves_a_model_of_ones_own_until_ctrl_c(tmp_path, line):
    (tmp_path / "mymodel.py").write_text(MODEL)
    command = [sys.executable, "-m", "dalembert.cli", "explore", *shlex.split(line), "--no-browser", "--port", "0"]
    environment = os.environ | {"PYTHONPATH": str(Path(da.__file__).parents[1]), "DALEMBERT_CACHE_DIR": str(tmp_path / "cache")}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        said = process.stderr.readline()
        found = status(said.split()[-1]) if " at http://127.0.0.1:" in said else None
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=30)[1]
    assert (found, process.returncode) == (200, 0) and said.startswith("exploring "), said + rest


SLOW = """
import time
import dalembert as da
def heavy(mass=2.0):
    if mass == 3.0:
        open("began", "w").close()
        time.sleep(600)
    return da.problems.pendulum(m=mass)
"""


def test_ctrl_c_does_not_wait_for_what_a_page_asked_for(tmp_path):
    (tmp_path / "mymodel.py").write_text(SLOW)
    command = [sys.executable, "-m", "dalembert.cli", "explore", "mymodel.py:heavy", "--no-browser", "--port", "0"]
    environment = os.environ | {"PYTHONPATH": str(Path(da.__file__).parents[1])}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        url = process.stderr.readline().split()[-1]
        port, token = url.rpartition(":")[2].partition("/")[0], url.partition("token=")[2]
        try:
            with websockets.connect(f"ws://127.0.0.1:{port}/ask?token={token}", origin=f"http://127.0.0.1:{port}") as line:
                line.send(json.dumps({"do": "run", "pane": 0, "id": 1, "method": "Rattle", "settings": {"mass": 3.0}}))
                while not (tmp_path / "began").exists() and process.poll() is None:
                    time.sleep(0.05)
                process.send_signal(signal.SIGINT)
                rest = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert process.returncode == 0 and "Traceback" not in rest, rest


def test_refusals_of_the_command(capsys, tmp_path, monkeypatch):
    from dalembert.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mymodel.py").write_text(MODEL)
    for line, sentence in [
        ("explore pendulam", "did you mean pendulum"),
        ("explore mymodel.py:system --q0 1,0 --p0 0,0", "give --h, and --steps or --t1"),
        ("explore mymodel.py:system --h 0.1 --steps 10", "q0"),
        ("explore pendulum --method CVA", "unilateral"),
        ("explore pendulum --h -1", "h > 0"),
        ("explore pendulum --rtol 1e-6 --h 0.1", "--rtol chooses h: give --rtol and --t1, or --h without --rtol"),
        ("explore mymodel.py:system --q0 1,0 --p0 0,0 --rtol 1e-6", "or --rtol and --t1"),
    ]:
        assert main([*shlex.split(line), "--no-browser"]) == 2
        assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "words"),
    [({"q0": "abc"}, "q0 must be"), ({"v0": [1.0, "x"]}, "v0 must be"), ({"h": "fast"}, "h must be"),
     ({"t1": "x"}, "t1 must be"), ({"steps": 0.5}, "steps must be"), ({"h": -0.1}, "time that passes")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(given, words):
    with pytest.raises(da.InputError, match=words):
        da.explore("pendulum", browser=False, **given)


def test_a_tolerance_chooses_what_the_page_begins_with(monkeypatch):
    """The first run of the page, of a swing of known period, is as exact as asked."""
    made = []

    class Closed:
        address = type("Address", (), {"url": ""})

        def __init__(self, make, port):
            made.append(make())

        def run(self):
            pass

    monkeypatch.setattr("dalembert.explorer._explore.Server", Closed)
    swing = da.Lagrangian(lambda q, v: v @ v / 2 + 9 * np.cos(q[0]), dim=1)
    da.explore(swing, q0=[2.0], v0=[0.0], t1=8.0, rtol=1e-7, browser=False)
    model = made[0].answer({"do": "model"})
    first = model["methods"][0]
    name = f"{first['name']}(stages={first['value']})" if first["value"] else first["name"]
    answer = made[0].answer({"do": "run", "pane": 0, "id": 1, "method": name, "h": model["h"], "t1": 8.0})
    run = made[0]._shown[0].run
    quarter = ellipk(np.sin(1.0) ** 2)
    angle = 2 * np.arcsin(np.sin(1.0) * ellipj(quarter - 3 * run.t, np.sin(1.0) ** 2)[0])
    assert answer["status"] == "done" and run.t[-1] == pytest.approx(8.0) and np.abs(run.q[:, 0] - angle).max() < 2e-7


def test_a_missing_package_is_named(monkeypatch, describe):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(da.DalembertError, match=r"pip install 'dalembert\[explore\]'"):
        Server(lambda: Session(describe("pendulum")))
