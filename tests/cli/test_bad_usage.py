"""A command that cannot be carried out is refused with one sentence and exit code 2."""

import pytest


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
        ("run mymodel.py:broken", "line 23: ZeroDivisionError"),
        ("run mymodel.py:system", "give --q0"),
        ("run mymodel.py:sliding --y0 0,0", "give --y0 and --z0"),
        ("run mymodel.py:sliding --y0 0,0 --z0 1,0", "give --h"),
        ("run mymodel.py:sliding --y0 0,0 --z0 1,1 --h 0.01 --steps 1", "--project"),
        ("run mass_on_surface --q0 1,0", "starts from y0 and z0"),
        ("run pendulum --y0 1,0", "it has no y0"),
        ("run mass_on_surface --method Rattle", "for a system of type ODAE use"),
        ("run mass_on_surface --method 'SymplecticEuler(variant=\"wrong\")'", "natural"),
        ("run mass_on_surface --method 'SymplecticEuler(variant=natural)'", "is not a method"),
        ("run mass_on_surface --method 'compose(SymplecticEuler)'", "needs scheme_or_order"),
        ("run mass_on_surface --method 'compose(SymplecticEuler, 5)'", "order"),
        ("run mass_on_surface --method 'compose(Symplectic, 4)'", "did you mean SymplecticSteps or SymplecticEuler"),
        ("run mymodel.py:growth --z0 1", "give --y0\n"),
        ("run mymodel.py:growth --y0 1,1", "give --h"),
        ("run index_two_growth --y0 1,2", "--project"),
        ("run index_two_growth --v0 1,2", "it has no v0"),
        ("run index_two_growth --z0 1,2", "z0"),
        ("run index_two_growth --method GaussLobattoSPARK", "for a DAE of index 2 use da.LobattoSPARK"),
        ("run mymodel.py:system --q0 1,0 --p0 0,0", "give --h"),
        ("run mymodel.py:system --q0 1,0 --p0 0,0 --h 0.1 --steps 1 --set k=3", "no parameter 'k'"),
        ("list methodes", "choose from"),
        ("list problms", "did you mean problems?"),
        ("completion fsh", "did you mean fish"),
        ("reproduce --format pgn", "did you mean png?"),
        ("reproduce --jobs 0", "--jobs takes a whole number of at least 1"),
        ("help rum", "there is no command 'rum': did you mean run"),
        ("hlep", "did you mean help?"),
        ("bench pendulum --steps 0", "--steps takes a whole number of at least 1; got '0'"),
        ("run mymodel.py:system --q0 1,0 --p0 0,0 --h 0.1 --steps 1 --animate a.html", "give --draw mymodel.py:drawing"),
        ("run pendulum --draw mymodel.py:drawing", "give --plot or --animate with it"),
        ("run pendulum --plot a.png --draw drawing", "--draw takes a function of your own"),
        ("run pendulum --plot a.png --draw mymodel.py:drawin", "did you mean drawing?"),
        ("run pendulum --plot a.png --draw mymodel.py:number", "it must be a function"),
        ("run pendulum --plot a.png --draw nowhere.py:drawing", "there is no file nowhere.py"),
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


@pytest.mark.parametrize("text", ["import sys\nsys.exit(3)\n", "def make():\n    raise SystemExit(3)\n"])
def test_a_model_that_exits_is_refused(command, here, text):
    (here / "leaving.py").write_text(text)
    code, out, err = command("run leaving.py:make")
    assert code == 2 and not out and err.startswith("dalembert: leaving.py, line 2: it calls sys.exit(3)")
