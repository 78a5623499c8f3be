"""The command: what it prints, what it writes, how it ends."""

import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert import experiments
from dalembert.cli import main
from dalembert.cli._read import value

MODEL = """
import numpy as np
import dalembert as da

system = da.Hamiltonian(
    lambda q, p, m: p @ p / (2 * m) + m * q[1],
    dim=2, holonomic=lambda q: [np.hypot(q[0], q[1]) - 1], params={"m": 1.0})
problem = da.problems.pendulum()
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


def process(line, **options):
    environment = os.environ | {"PYTHONPATH": str(Path(da.__file__).parents[1])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    return subprocess.Popen([sys.executable, "-m", "dalembert.cli", *shlex.split(line)], **(pipes | options))


# -- help ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["--help", *(f"{name} --help" for name in main.__globals__["COMMANDS"])])
def test_every_help_has_examples(command, line):
    code, out, err = command(line)
    assert code == 0 and not err and "examples:\n  dalembert " in out


def test_help_does_not_load_numba_or_matplotlib():
    code = (
        "import sys\nfrom dalembert.cli import main\nmain(['run', '--help'])\n"
        "assert 'numba' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", [line for line in main.__globals__["_run"].EPILOG.splitlines() if line.startswith("  dal")])
def test_the_examples_of_run_work(command, line):
    code, out, err = command(line.strip().removeprefix("dalembert ").replace("1e5", "1000"))
    assert code == 0 and not err and "max |H - H0|" in out


def test_version(command):
    assert command("--version")[:2] == (0, f"dalembert {da.__version__}\n")


# -- list and info -------------------------------------------------------------------------------------------------------


def test_list_knows_everything_that_is_public(command):
    _, out, _ = command("list --json")
    listed = {kind: {entry["name"] for entry in entries} for kind, entries in json.loads(out).items()}
    assert listed["problems"] == set(da.problems.__all__) - {"Problem"}
    assert {"LobattoIIIAB", "Rattle"} <= listed["methods"] and "OneStepMethod" not in listed["methods"]
    assert all(issubclass(getattr(da, name), da.OneStepMethod) for name in listed["methods"])
    assert listed["experiments"] == set(experiments.names())


def test_list_one_kind(command):
    code, out, _ = command("list problems")
    assert code == 0 and "double_pendulum(m1=1, m2=1, l1=1, l2=1, g=1)" in out and "LobattoIIIAB" not in out


def test_info_names_versions_and_the_cache(command):
    _, out, _ = command("info --json")
    facts = json.loads(out)
    assert facts["dalembert"] == da.__version__ and facts["numpy"] == np.__version__
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"casadi", "numba", "llvmlite"} <= set(facts) and os.path.isdir(facts["cached drivers"])
    assert "numba" in command("info")[1]


# -- run -----------------------------------------------------------------------------------------------------------------


def test_the_report_agrees_with_the_library(command):
    code, out, err = command("run double_pendulum --method Rattle --h 0.05 --steps 400 --set m2=3 --json")
    report = json.loads(out)
    run = da.simulate(da.problems.double_pendulum(m2=3), da.Rattle(), h=0.05, steps=400)
    assert code == 0 and not err
    assert report["steps"] == 400 and report["t1"] == run.t[-1] and report["status"] == "done"
    assert report["energy"]["max_error"] == np.max(np.abs(run.energy - run.energy[0]))
    assert report["energy"]["slope"] == pytest.approx(np.polyfit(run.t, run.energy, 1)[0], rel=1e-6)
    assert report["residuals"] == {name: np.max(np.abs(values)) for name, values in run.residuals.items()}
    assert report["newton_iterations_per_step"] == run.stats["newton_iterations"] / 400


def test_the_table_has_the_numbers_of_the_report(command):
    report = json.loads(command("run pendulum --steps 50 --json")[1])
    code, out, _ = command("run pendulum --steps 50")
    rows = dict((line[2:30].strip(), line[30:]) for line in out.splitlines()[1:])
    assert code == 0 and out.startswith("planar pendulum, LobattoIIIAB(stages=3), h = 0.1\n")
    assert rows["max |H - H0|"] == f"{report['energy']['max_error']:.2e}"
    assert rows["max |g|"] == f"{report['residuals']['g']:.2e}"
    assert {"steps per second", "Newton iterations per step", "slope of H per unit time", "max |g_dot|"} <= set(rows)


def test_files_are_written_into_new_directories(command, here):
    code, out, _ = command("run pendulum --steps 30 --save-every 10 --save a/b/run --plot c/run.pdf")
    assert code == 0
    run = da.load("a/b/run.npz")
    np.testing.assert_allclose(run.t, [0.0, 1.0, 2.0, 3.0])
    assert (here / "c/run.pdf").read_bytes().startswith(b"%PDF")
    assert "a/b/run.npz" in out and "c/run.pdf" in out


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--method LobattoIIIAB --stages 4", "da.LobattoIIIAB(stages=4)"),
        ("--method rattle", "da.Rattle()"),
        ("--method 'RadauIIA(stages=3, projected=True)'", "da.RadauIIA(stages=3, projected=True)"),
        ("--method 'Variational(L_d=\"SVA\")'", "da.Variational(L_d='SVA')"),
        ("--method 'compose(Rattle, 4)'", "da.compose(da.Rattle(), 'suzuki-4')"),
        (
            "--method 'da.compose(da.LobattoIIIAB(stages=2), \"triple-jump-4\")'",
            "da.compose(da.LobattoIIIAB(stages=2), 'triple-jump-4')",
        ),
        ("--method 'compose(LobattoIIIAB, 6)' --stages 2", "da.compose(da.LobattoIIIAB(stages=2), 'sofroniou-spaletta-6')"),
        ("--method 'adjoint(Rattle)'", "da.Rattle()"),
        ("", "da.LobattoIIIAB(stages=3)"),
    ],
)
def test_methods_are_made_from_their_names(command, line, expected):
    assert json.loads(command(f"run pendulum --steps 2 --json {line}")[1])["method"] == expected


def test_a_method_may_take_a_tableau(command):
    assert command("run pendulum --steps 2 --method 'RungeKutta(tableau=gauss(2), projected=True)'")[0] == 0


def test_initial_values_replace_those_of_the_problem(command):
    command("run pendulum --q0 -1,0 --v0 0,1/2 --steps 3 --save run.npz")
    run = da.load("run.npz")
    np.testing.assert_array_equal(run.q[0], [-1.0, 0.0])
    np.testing.assert_array_equal(run.p[0], [0.0, 0.5])
    command("run pendulum --q0 0,-1 --steps 3 --save run.npz")  # the problem's own momenta
    np.testing.assert_array_equal(da.load("run.npz").p[0], [0.0, 0.0])


def test_a_final_time_and_arithmetic(command):
    report = json.loads(command("run pendulum --h 1/50 --t1 2 --json")[1])
    assert (report["steps"], report["h"]) == (100, 0.02)
    assert value("2*sin(pi/6)") == pytest.approx(1.0) and value("-sqrt(4)") == -2.0 and value("5e3") == 5000.0


# -- ODAEs ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "method"),
    [
        ("", da.compose(da.SymplecticEuler(), 2)),
        ("--method SymplecticEuler", da.SymplecticEuler()),
        (
            "--method 'SymplecticEuler(variant=\"natural\", conjugate=True, alpha=1/4)'",
            da.SymplecticEuler("natural", True, 0.25),
        ),
        ('--method \'SymplecticEuler(r_at=("z1", "Z1"))\'', da.SymplecticEuler(r_at=("z1", "Z1"))),
        ("--method 'adjoint(SymplecticEuler)'", da.adjoint(da.SymplecticEuler())),
        ("--method 'compose(SymplecticEuler, 4)'", da.compose(da.SymplecticEuler(), 4)),
    ],
)
def test_an_odae_is_run_by_the_methods_that_serve_it(command, line, method):
    code, out, err = command(f"run mass_on_surface --steps 20 --save run.npz --plot run.png --json {line}")
    run, report = da.load("run.npz"), json.loads(out)
    expected = da.simulate(da.problems.mass_on_surface(), method, steps=20)
    assert code == 0 and not err and report["method"] == str(method)
    np.testing.assert_array_equal(run.states, expected.states)
    assert report["energy"]["max_error"] == np.max(np.abs(expected.energy - expected.energy[0]))
    assert set(report["residuals"]) == {"g", "g_dot"} and os.path.exists("run.png")


def test_an_odae_without_an_energy_is_reported_without_it(command):
    report = json.loads(command("run nonlinear_multiplier --json")[1])
    code, out, _ = command("run nonlinear_multiplier --plot run.pdf")
    assert report["energy"] is None and code == 0 and "H0" not in out and "max |g_dot|" in out and "run.pdf" in out


def test_initial_values_of_an_odae(command):
    assert command("run mass_on_surface --y0 9,7.29 --z0 -3,-7.29 --steps 3 --save run.npz")[0] == 0
    np.testing.assert_array_equal(da.load("run.npz").states[0], [9.0, 7.29, -3.0, -7.29])
    line = "run mymodel.py:sliding --y0 0,0.1 --z0 -5,0.2 --lam0 1 --h 0.01 --steps 300 --set mu=0.25 --project"
    code, out, err = command(f"{line} --method SymplecticEuler --save run.npz --json")
    run = da.load("run.npz")
    np.testing.assert_allclose(run.states[0], [0, 0, -5, 0], atol=1e-14)
    assert code == 1 and json.loads(out)["status"] == "failed" and "leaves the model's domain" in err
    assert run.t[-1] == pytest.approx(2.03)  # the block stops at 5 / (0.25 * 9.81) = 2.039


# -- DAEs of index 2 and nonholonomic constraints ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "method"),
    [
        ("index_two_growth", da.SRK("gauss", 2)),
        ("index_two_growth_in_parts --stages 3", da.SRK("gauss", 3)),
        ("chaplygin_sleigh", da.GaussLobattoSPARK(2)),
    ],
)
def test_a_method_that_serves_the_problem_is_taken_if_none_is_named(command, problem, method):
    code, out, err = command(f"run {problem} --steps 5 --json")
    assert code == 0 and not err and json.loads(out)["method"] == str(method)


@pytest.mark.parametrize(
    "line", ["--stages 3", "--method 'SRK(coefficients=\"radau-ia\")' --stages 4", "--method LobattoSPARK --stages 4"]
)
def test_a_dae_of_index_two_reaches_its_exact_solution(command, line):
    """y = (e^t, e^-2t), z = e^2t."""
    code, out, err = command(f"run index_two_growth --save run.npz --plot run.png --json {line}")
    run, report = da.load("run.npz"), json.loads(out)
    assert code == 0 and not err and os.path.exists("run.png")
    np.testing.assert_allclose(run.y[-1], np.exp([1.0, -2.0]), atol=1e-8)
    np.testing.assert_allclose(run.z[-1], [np.exp(2.0)], atol=1e-7)
    assert report["energy"] is None and set(report["residuals"]) == {"g"} and report["residuals"]["g"] < 1e-14
    _, table, _ = command(f"run index_two_growth --steps 3 {line}")
    assert "max |g| " in table and "H0" not in table and "g_dot" not in table


@pytest.mark.parametrize(
    ("line", "y", "z"),
    [
        ("index_two_growth --y0 2,1/4 --z0 3.9", [2, 0.25], 4),  # the hidden constraint has the roots 1/y_2 and 1/(2 y_2)
        ("index_two_growth --y0 -2,1/4 --z0 1.9", [-2, 0.25], 2),
        ("index_two_growth --z0 0.4", [1, 1], 0.5),
        ("mymodel.py:growth --y0 1,1 --z0 0.9 --h 0.1", [1, 1], 1),
        ("mymodel.py:growth --y0 1,1 --h 0.1", [1, 1], 0.5),
    ],
)
def test_initial_values_of_a_dae_of_index_two(command, line, y, z):
    code, _, err = command(f"run {line} --steps 2 --save run.npz")
    run = da.load("run.npz")
    assert code == 0 and not err
    np.testing.assert_array_equal(run.y[0], y)
    np.testing.assert_allclose(run.z[0], [z], atol=1e-12)


def test_initial_values_of_a_dae_of_index_two_can_be_projected(command):
    assert command("run index_two_growth --y0 1.1,1 --project --steps 2 --save run.npz")[0] == 0
    run = da.load("run.npz")
    assert abs(run.y[0, 0] ** 2 * run.y[0, 1] - 1) < 1e-14 and np.abs(run.y[0] - [1.1, 1]).max() < 0.2
    np.testing.assert_allclose(run.z[0], 1 / run.y[0, 1], atol=1e-12)


# -- models of one's own -------------------------------------------------------------------------------------------------


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


# -- what goes wrong -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "say what to do"),
        ("rum pendulum", "there is no command 'rum': did you mean run"),
        ("run", "PROBLEM"),
        ("run duoble_pendulum", "there is no problem 'duoble_pendulum': did you mean double_pendulum"),
        ("run pendulum --method Ratle", "there is no method 'Ratle': did you mean Rattle?"),
        ("run pendulum --method Rattle --stages 3", "leave --stages out"),
        ("run pendulum --method 'Rattle(phase=1)'", "has no argument 'phase'"),
        ("run pendulum --method RungeKutta", "needs tableau"),
        ("run pendulum --method Variational", 'Variational(L_d="SVC")'),
        ("run pendulum --method 'os.remove(1)'", "is not a method"),
        ("run pendulum --stages 1", "stages >= 2"),
        ("run pendulum --stages 2.5", "whole number"),
        ("run pendulum --set mass=1", "pendulum has no 'mass'"),
        ("run pendulum --set m", "NAME=VALUE"),
        ("run pendulum --set m=open", "is not a number"),
        ("run pendulum --h __import__", "is not a number"),
        ("run pendulum --h 9**9**9**9", "is not a number"),
        ("run pendulum --h 0", "positive"),
        ("run pendulum --h 1,2", "one number"),
        ("run pendulum --step 3", "did you mean --steps"),
        ("run pendulum --steps 3 --t1 4", "not allowed"),
        ("run pendulum --q0 1", "q0"),
        ("run pendulum --q0 1,1", "--project"),
        ("run pendulum --plot run.gif", ".png, .pdf, .svg"),
        ("run pendulum --save run.txt", ".npz"),
        ("run pendulum --save mymodel.py/run.npz", "cannot be made"),
        ("run nowhere.py:system", "there is no file nowhere.py"),
        ("run mymodel.py", "say which object"),
        ("run mymodel.py:sistem", "did you mean system?"),
        ("run mymodel.py:number", "it must be"),
        ("run mymodel.py:broken", "line 22: ZeroDivisionError"),
        ("run mymodel.py:system", "give --q0"),
        ("run mymodel.py:sliding --y0 0,0", "give --y0 and --z0"),
        ("run mymodel.py:sliding --y0 0,0 --z0 1,0", "give --h"),
        ("run mymodel.py:sliding --y0 0,0 --z0 1,1 --h 0.01 --steps 1", "--project"),
        ("run mass_on_surface --q0 1,0", "starts from y0 and z0"),
        ("run pendulum --y0 1,0", "it has no y0"),
        ("run mass_on_surface --method Rattle", "for a system of type ODAE use"),
        ("run mass_on_surface --method 'SymplecticEuler(variant=\"wrong\")'", "natural"),
        ("run mass_on_surface --method 'SymplecticEuler(variant=natural)'", "is not a method"),
        ("run mass_on_surface --method 'compose(SymplecticEuler)'", "is not a method"),
        ("run mass_on_surface --method 'compose(SymplecticEuler, 5)'", "order"),
        ("run mass_on_surface --method 'compose(Symplectic, 4)'", "did you mean SymplecticEuler"),
        ("run mymodel.py:growth --z0 1", "give --y0\n"),
        ("run mymodel.py:growth --y0 1,1", "give --h"),
        ("run index_two_growth --y0 1,2", "--project"),
        ("run index_two_growth --v0 1,2", "it has no v0"),
        ("run index_two_growth --z0 1,2", "z0"),
        ("run index_two_growth --method GaussLobattoSPARK", "for a DAE of index 2 use da.LobattoSPARK"),
        ("run mymodel.py:system --q0 1,0 --p0 0,0", "give --h"),
        ("run mymodel.py:system --q0 1,0 --p0 0,0 --h 0.1 --steps 1 --set k=3", "no parameter 'k'"),
        ("list methodes", "choose from"),
        ("reproduce jay1996.figure5.65", "did you mean jay1996.figure5.6"),
    ],
)
def test_bad_usage_is_one_sentence_and_exit_code_2(command, line, message):
    code, out, err = command(line)
    assert code == 2 and not out
    assert message in err and err.startswith("dalembert: ") and err.count("\n") == 1


def test_a_model_with_a_syntax_error_is_named_by_its_line(command, here):
    (here / "wrong.py").write_text("import dalembert\nx = = 3\n")
    code, _, err = command("run wrong.py:x")
    assert code == 2 and err.startswith("dalembert: wrong.py, line 2: ")


def test_a_failed_step_keeps_what_was_computed(command, here):
    line = "run mymodel.py:fourbar --q0 0,1,2,1 --p0 1,0,1,0 --h 0.1 --steps 100 --save run.npz --plot run.png --json"
    code, out, err = command(line)
    report = json.loads(out)
    assert code == 1 and report["status"] == "failed" and "lose independence" in err and err.count("\n") == 1
    run = da.load("run.npz")
    assert run.status == "failed" and 5 < len(run) < 100 and report["steps"] == len(run) - 1
    assert (here / "run.png").exists()


def test_a_directory_in_place_of_a_file_is_refused_before_the_run(command, here):
    (here / "taken.png").mkdir()
    assert command("run pendulum --steps 2 --plot taken.png")[0] == 2


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a directory that nobody can write to")
def test_a_plot_that_cannot_be_written_does_not_lose_the_run(command, here):
    code, out, err = command("run pendulum --steps 2 --plot /proc/run.png --save run.npz")
    assert code == 1 and "could not be written" in err and "run.npz" in out and (here / "run.npz").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_is_shown_on_a_terminal_and_ctrl_c_keeps_what_was_computed(here):
    import pty

    ours, theirs = pty.openpty()
    line = "run double_pendulum --steps 1e9 --save-every 10000 --save run.npz --plot run.png --json"
    running = process(line, cwd=here, stderr=theirs)
    os.close(theirs)
    shown = ""
    while "steps" not in shown:  # the progress line, once two seconds have passed
        assert select.select([ours], [], [], 60)[0], "no progress was shown within a minute"
        shown += os.read(ours, 1000).decode()
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=60)
    while select.select([ours], [], [], 0)[0]:
        try:
            shown += os.read(ours, 1000).decode()
        except OSError:  # the other end is closed
            break
    os.close(ours)
    assert running.returncode == 130 and "1,000,000,000 steps" in shown and "interrupted after" in shown
    report = json.loads(out)
    run = da.load(here / "run.npz")
    assert report["status"] == run.status == "interrupted" and report["stored_states"] == len(run) > 2
    assert report["steps"] == round(run.t[-1] / run.h) > 10_000 and (here / "run.png").exists()


def test_a_reader_who_leaves_is_no_error(here):
    running = process("list --json")
    running.stdout.close()
    assert running.wait(timeout=60) in (0, 1)
    assert "Traceback" not in running.stderr.read()
    running.stderr.close()


# -- bench ---------------------------------------------------------------------------------------------------------------


def test_bench_measures_what_a_run_does(command):
    code, out, err = command("bench double_pendulum skate --method Rattle --method GaussLobattoSPARK --steps 2000 --json")
    rows = json.loads(out)
    assert (
        code == 0
        and not err
        and [(row["problem"], row["method"]) for row in rows]
        == [(problem, method) for problem in ("double_pendulum", "skate") for method in ("Rattle", "GaussLobattoSPARK")]
    )
    assert "cannot serve nonholonomic constraints" in rows[2]["error"]
    first = rows[0]
    run = da.simulate(da.problems.double_pendulum(), da.Rattle(), steps=2000)
    assert first["h"] == run.h and first["steps"] == 2000
    assert first["newton_iterations_per_step"] == pytest.approx(run.stats["newton_iterations"] / 2000)
    assert first["us_per_step"] * first["steps_per_second"] == pytest.approx(1e6)
    assert 0 < first["second_call_seconds"] < first["first_call_seconds"]  # the second compiles nothing


def test_bench_prints_a_table_and_refuses_what_cannot_be_measured(command):
    code, out, _ = command("bench pendulum --steps 500")
    assert code == 0 and "us/step" in out and "LobattoIIIAB" in out and len(out.splitlines()) == 2
    code, out, _ = command("bench skate --method Rattle")
    assert code == 1 and "cannot serve" in out
    code, _, err = command("bench mymodel.py:system")
    assert code == 2 and "without initial values" in err


# -- completion ----------------------------------------------------------------------------------------------------------

COMPLETIONS = {
    "dalembert re": {"reproduce"},
    "dalembert run double_pend": {"double_pendulum", "double_pendulum_in_angles"},
    "dalembert run pendulum --method Lobatto": {"LobattoGalerkin", "LobattoIIIAB", "LobattoIIIC", "LobattoSPARK"},
    "dalembert reproduce small": {"small_jay2011", *(n for n in experiments.names() if n.startswith("small_jay2011."))},
    "dalembert reproduce --f": {"--full", "--format"},
    "dalembert reproduce --format p": {"png", "pdf"},
    "dalembert bench heavy_t": {"heavy_top"},
    "dalembert completion ": {"bash", "zsh", "fish"},
    "dalembert list p": {"problems"},
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(command, here):
    (here / "script").write_text(command("completion bash")[1])
    lines = ["source ./script", 'try() { COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _dalembert; echo "${COMPREPLY[@]}"; }']
    for line in [*COMPLETIONS, "dalembert run pendulum --plot "]:
        words = " ".join(f"'{word}'" for word in line.split(" "))
        lines.append(f"COMP_WORDS=({words}); try")
    done = subprocess.run(["bash", "--norc", "-u", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    *found, file = done.stdout.split("\n")[:-1]
    assert [set(words.split()) for words in found] == list(COMPLETIONS.values())
    assert file == "" and not done.stderr  # bash offers files


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_completes(command, here):
    (here / "script").write_text(command("completion fish")[1])
    for line, expected in COMPLETIONS.items():
        asked = ["fish", "--no-config", "-c", f"source ./script; complete -C '{line}'"]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
        found = {text.partition("\t")[0] for text in done.stdout.splitlines()}
        assert expected <= found and not done.stderr, line
        assert all(word.startswith(line.split(" ")[-1]) for word in found - expected)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_takes_the_script(command, here):
    (here / "script").write_text(command("completion zsh")[1])
    done = subprocess.run(["zsh", "-f", "-c", "source ./script; print $_comps[dalembert]"], capture_output=True, text=True,
                          check=True, env=os.environ | {"HOME": str(here)})  # fmt: skip
    assert "_dalembert" in done.stdout and not done.stderr
