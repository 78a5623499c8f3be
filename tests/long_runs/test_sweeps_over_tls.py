"""A sweep with impacts over TLS has the bits of threads; who has the certificate of another authority is refused."""

import shutil
import socket
import ssl
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dalembert as da

distributed = pytest.importorskip("distributed")
pytest.importorskip("zarr")
OPENSSL = shutil.which("openssl")

BALL = da.Lagrangian(
    lambda q, v, g: 0.1 * v @ v - 0.2 * g * q[0], dim=1, unilateral=lambda q: q[0], restitution=0.7, params={"g": 9.81}
)
GIVEN = {"q0": 0.1 + 0.1 * np.arange(3.0)[:, None], "v0": [0.0], "h": 0.01, "steps": 100}


def authority(folder):
    """A certificate that signs itself, for the client, the scheduler and the worker."""
    subprocess.run(
        [OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2",
         "-subj", "/CN=localhost"], cwd=folder, check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    files = {"tls_ca_file": str(folder / "cert.pem")}
    for role in ("client", "scheduler", "worker"):
        files |= {f"tls_{role}_cert": str(folder / "cert.pem"), f"tls_{role}_key": str(folder / "key.pem")}
    return distributed.security.Security(require_encryption=True, **files)


def first_byte(address, security):
    """What the scheduler says first to a client that trusts everyone, so that it is the scheduler that checks."""
    trusting = security.get_connection_args("client")["ssl_context"]
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    host, port = address.removeprefix("tls://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as line, trusting.wrap_socket(line) as encrypted:
        return encrypted.recv(1)


@pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")
def test_a_sweep_with_impacts_over_tls(tmp_path):
    security = authority(tmp_path)
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0", "protocol": "tls://"}
    with distributed.LocalCluster(security=security, host="127.0.0.1", **options) as cluster:
        assert cluster.scheduler_address.startswith("tls://")
        with distributed.Client(cluster, security=security) as client:
            da.simulate_many(BALL, da.CVA(), executor=client, save_to=tmp_path / "sweep.zarr", progress=False, **GIVEN)
        (tmp_path / "another").mkdir()
        foreign = authority(tmp_path / "another")
        with pytest.raises(OSError, match="TLS certificate does not match"):
            distributed.Client(cluster.scheduler_address, security=foreign, timeout=5)
        with pytest.raises(ssl.SSLError, match=r"(?i)alert unknown ca"):
            first_byte(cluster.scheduler_address, foreign)
        assert first_byte(cluster.scheduler_address, security)
    with ThreadPoolExecutor(1) as pool:
        runs = da.simulate_many(BALL, da.CVA(), executor=pool, progress=False, **GIVEN)
    read = da.load(tmp_path / "sweep.zarr")
    assert np.array_equal(read.states, runs.states) and len(runs.impacts) > 3
    for name, values in vars(runs.impacts).items():
        assert np.array_equal(values, getattr(read.impacts, name)), name
    fall = np.sqrt(2 * GIVEN["q0"][:, 0] / 9.81)
    assert np.allclose([read.impacts[k].t[0] for k in range(3)], fall, rtol=0, atol=1e-12)
