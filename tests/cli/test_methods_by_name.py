"""`--method`: every method of the library can be written, and nothing else."""

import json

import numpy as np
import pytest

import dalembert as da
from dalembert.cli._methods import method, spelled
from dalembert.cli._user_code import UsageError
from dalembert.runs._default_method import default_method


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
        ("--method 'da.LobattoIIIAB(4)'", "da.LobattoIIIAB(stages=4)"),
        ("--method 'RadauIIA(3, True)'", "da.RadauIIA(stages=3, projected=True)"),
        ("--method 'RadauIIA(3, projected=True)' --stages 2", "da.RadauIIA(stages=2, projected=True)"),
        ("--method 'compose(method=Rattle, scheme_or_order=4)'", "da.compose(da.Rattle(), 'suzuki-4')"),
        ("--method 'compose(Rattle, schemes.kahan_li(8))'", "da.compose(da.Rattle(), 'kahan-li-8')"),
        ("--method 'adjoint(compose(adjoint(Rattle), 4))'", "da.compose(da.Rattle(), 'suzuki-4')"),
    ],
)
def test_methods_are_made_from_their_names(command, line, expected):
    assert json.loads(command(f"run pendulum --steps 2 --json {line}")[1])["method"] == expected


def test_a_method_may_take_a_tableau(command):
    assert command("run pendulum --steps 2 --method 'RungeKutta(tableau=gauss(2), projected=True)'")[0] == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CVA", da.CVA()),
        ("CVA(Gauss(stages=2))", da.CVA(da.Gauss(stages=2))),
        ("CVA(base=Gauss(stages=2))", da.CVA(da.Gauss(stages=2))),
        ("da.CVA(da.gauss(3, projected=False))", da.CVA(da.Gauss(stages=3))),
        ("CVA('SVA', 1/100)", da.CVA("SVA", 0.01)),
        ("VCI(collision_tolerance=None)", da.VCI()),
        ("MCVAA", da.MCVAA()),
        ("MCVAC()", da.MCVAC()),
        ("mcvaa(0.01)", da.MCVAA(0.01)),
        ("MCVA('SVA', 4, expansion='even')", da.MCVAA()),
        ("MCVA(base=Variational('SVC'), order=4)", da.MCVA(da.Variational("SVC"), 4)),
        ("RungeKutta(da.tableaux.gauss(2), True)", da.RungeKutta(da.tableaux.gauss(2), True)),
        ("SymplecticEuler(alpha=sqrt(1/4))", da.SymplecticEuler(alpha=0.5)),
    ],
)
def test_methods_may_be_made_of_methods(text, expected):
    assert method(text) == expected


def test_the_stages_of_the_command_line_are_those_of_the_innermost_method():
    assert method("CVA(Gauss)", 3) == da.CVA(da.Gauss(stages=3))
    assert method("CVA(Gauss(stages=1))", 3) == da.CVA(da.Gauss(stages=3))


def test_a_ball_bounces_by_the_methods_of_the_documents(command):
    """A ball of e = 1 that falls from y = 1/2 with g = 1 hits the floor at t = 1, 3, 5, ..."""
    for text in ("CVA(Gauss(stages=2))", "MCVAA", "MCVAC"):
        line = "run bouncing_ball --set e=1 --set g=1 --set height=1/2 --h 0.3 --t1 6 --save run.npz --json"
        code, out, err = command(f"{line} --method '{text}'")
        assert code == 0 and not err and json.loads(out)["method"] == str(method(text))
        np.testing.assert_allclose(da.load("run.npz").impacts.t, [1, 3, 5], atol=1e-12)


@pytest.mark.parametrize("name", sorted(set(da.problems.__all__) - {"Problem"}))
def test_what_a_default_method_is_called_can_be_typed(name):
    chosen = default_method(getattr(da.problems, name)().system)
    assert method(str(chosen)) == method(spelled(chosen)) == chosen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os').system('true')", "is not a method"),
        ("CVA(__import__('os'))", "there is no method '__import__'"),
        ("CVA(os.remove)", "is not a method"),
        ("da.simulate(1)", "there is no method 'simulate'"),
        ("da.problems.pendulum()", "is not a method"),
        ("RungeKutta(open('x'))", "is not a method"),
        ("RungeKutta(tableaux.Tableau(1))", "is not a method"),
        ("Rattle(3)", "has no argument number 1: it has none"),
        ("LobattoIIIAB(3, 4)", "has no argument number 2: its arguments are stages"),
        ("LobattoIIIAB(3, stages=4)", "stages twice"),
        ("LobattoIIIAB(*stages)", "is not a method"),
        ("MCVA('SVA', 4, 'even', 0.1)", "has no argument number 4"),
        ("compose", "needs method and scheme_or_order: --method 'compose(method=Rattle, scheme_or_order=4)'"),
        ("compose(Ratle, 4)", "did you mean Rattle?"),
        ("LobattoIIIAB(stages='three')", "stages"),
        ("(" * 500 + "Rattle" + ")" * 500, "is not a method"),
    ],
)
def test_nothing_else_is_a_method(text, message):
    with pytest.raises((UsageError, da.InputError)) as caught:
        method(text)
    assert message in str(caught.value) and "\n" not in str(caught.value)
