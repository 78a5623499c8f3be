"""Running command lines, in a directory with a model of one's own."""

import shlex

import pytest

from dalembert.cli import main

MODEL = """
import numpy as np
import dalembert as da

system = da.Hamiltonian(
    lambda q, p, m: p @ p / (2 * m) + m * q[1],
    dim=2, holonomic=lambda q: [np.hypot(q[0], q[1]) - 1], params={"m": 1.0})
problem = da.problems.pendulum()
cusp = da.Hamiltonian(lambda q, p: p @ p / 2, dim=2, holonomic=lambda q: [q[1] ** 2 - q[0] ** 3])
fourbar = da.Hamiltonian(
    lambda q, p: p @ p / 2, dim=4,
    holonomic=lambda q: [np.hypot(q[0], q[1]) - 1, np.hypot(q[2] - q[0], q[3] - q[1]) - 2, np.hypot(q[2] - 2, q[3]) - 1])
number = 3
sliding = da.ODAE(
    v=lambda z: z, f=lambda: [0.0, -9.81], g=lambda y: [y[1]], dim_y=2, dim_z=2, params={"mu": 0.5},
    r=lambda z, lam, mu: np.array([0.0, 1.0]) * lam[0] + da.forces.friction(lam[0], z, mu),
    domain=lambda z, z0: [da.forces.no_reversal(z, z0)])

def heavy(mass=2.0):
    return da.problems.pendulum(m=mass)

def broken():
    return 1 / 0

growth = da.problems.index_two_growth().system

def drawing(q, m):
    return [da.draw.rod([0, 0], q), da.draw.mass(q, 0.1 * m)]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mymodel.py").write_text(MODEL)
    return tmp_path


@pytest.fixture
def command(here, capsys):
    """Run a command line; returns exit code, standard output and standard error."""

    def run(line):
        code = main(shlex.split(line))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
