"""`dalembert run mymodel.py:name`."""

import json
import runpy

import numpy as np
import pytest

import dalembert as da


def test_a_system_with_initial_values(command):
    line = "run mymodel.py:system --q0 0.6,-0.8 --p0 0,0 --h 0.1 --steps 20"
    assert command(f"{line} --set m=2 --save run.npz")[0] == 0
    run = da.load("run.npz")
    assert run.parameters["m"] == 2.0 and run.energy[0] == pytest.approx(2 * -0.8)


def test_a_problem_a_function_and_a_projection(command):
    assert json.loads(command("run mymodel.py:problem --steps 2 --json")[1])["title"] == "planar pendulum"
    command("run mymodel.py:heavy --set mass=5 --steps 2 --save run.npz")
    assert da.load("run.npz").parameters["m"] == 5.0
    assert command("run mymodel.py:system --q0 3,4 --v0 1,0 --h 0.1 --steps 5 --project --save run.npz")[0] == 0
    np.testing.assert_allclose(da.load("run.npz").q[0], [0.6, 0.8], atol=1e-12)


def test_a_model_may_import_its_neighbours(command, here):
    (here / "neighbour.py").write_text("MASS = 7.0\n")
    (here / "other.py").write_text("import dalembert as da\nfrom neighbour import MASS\nit = da.problems.pendulum(m=MASS)\n")
    assert command("run other.py --steps 2 --save run.npz")[0] == 0  # its only problem needs no name
    assert da.load("run.npz").parameters["m"] == 7.0


def test_a_system_is_drawn_by_a_function_of_ones_own(command, here):
    line = "run mymodel.py:system --q0 0.6,-0.8 --p0 0,0 --h 0.1 --steps 20 --set m=2 --draw mymodel.py:drawing"
    code, out, err = command(f"{line} --plot run.png --animate run.html --save run.npz")
    assert code == 0 and not err and "run.png" in out and "run.html" in out
    method = eval(da.load("run.npz").method, {"da": da})
    system = runpy.run_path("mymodel.py")["system"]
    run = da.simulate(system, method, q0=[0.6, -0.8], p0=[0, 0], h=0.1, steps=20, params={"m": 2.0})

    def drawing(q, m):
        return [da.draw.rod([0, 0], q), da.draw.mass(q, 0.1 * m)]

    assert (here / "run.html").read_text(encoding="utf-8") == run.animate(draw=drawing).html()
    run.plot("again.png", draw=drawing)
    run.plot("without.png")
    assert (here / "run.png").read_bytes() == (here / "again.png").read_bytes() != (here / "without.png").read_bytes()


def test_a_drawing_of_ones_own_replaces_that_of_the_catalogue(command, here):
    (here / "dots.py").write_text("import dalembert as da\nprint('loaded')\ndef dot(q):\n    return [da.draw.mass(q, 0.25)]\n")
    code, out, _ = command("run pendulum --steps 20 --draw dots.py:dot --animate run.html")
    page = (here / "run.html").read_text(encoding="utf-8")
    assert code == 0 and '"radius":0.25' in page and '"kind":"rod"' not in page and out.count("loaded") == 1


def test_the_file_of_a_model_and_its_drawing_is_loaded_once(command, here):
    (here / "mymodel.py").write_text("print('loaded')\n" + (here / "mymodel.py").read_text())
    code, out, _ = command("run mymodel.py:problem --steps 2 --set m=1 --draw mymodel.py:drawing --animate run.html")
    assert code == 0 and out.count("loaded") == 1


def test_a_mechanism_starts_in_its_assembled_pose(command, here):
    """A rod that falls from rest: rate^2 = -3 g sin(angle) / l, whatever its mass."""
    (here / "arm.py").write_text(
        "import dalembert as da\n"
        "m = da.Mechanism(gravity=(0, -9.81), coordinates='planar', params={'mass': 0.2})\n"
        "m.revolute(m.ground, m.rod('arm', (0, 0), (0.2, 0), mass='mass'), at=(0, 0))\n"
        "def heavy(): return m\n"
    )
    for name in ("", ":m --set mass=0.7 --animate arm.html", ":m --project", ":heavy"):
        code, _, err = command(f"run arm.py{name} --h 1e-3 --steps 100 --save run.npz")
        assert code == 0, err
        run = da.load("run.npz")
        np.testing.assert_allclose(run.v[:, 2] ** 2, -3 * 9.81 * np.sin(run.q[:, 2]) / 0.2, rtol=1e-6, atol=1e-9)
        assert run.q[-1, 2] < -0.3 and run.parameters["mass"] == (0.7 if "set" in name else 0.2)
    assert (here / "arm.html").is_file()
    assert "give --h, and --steps" in command("run arm.py:m")[2]
    assert "p0" in command("run arm.py:m --q0 0.1,0,0 --h 1e-3 --steps 2")[2]


def test_a_file_without_models_names_what_is_wanted(command, here):
    (here / "none.py").write_text("x = 1\n")
    assert "it has no da.problems.Problem, da.Mechanism or system of its own" in command("run none.py")[2]
