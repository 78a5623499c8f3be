"""How public functions are called: whole signatures, and one sentence with the nearest name where a call does not fit."""

import ast
import inspect
import pickle
import pydoc
from pathlib import Path

import pytest
from sentences import refused

import dalembert as da
from dalembert._calls import checked
from dalembert.errors import CallError

PROBLEM = da.problems.pendulum()
PACKAGE = Path(da.__file__).parent
CALLS = {
    "a function": (lambda: da.simulate(PROBLEM, da.Rattle(), hh=0.1), ["simulate", "'hh'", "did you mean h?"]),
    "one loaded later": (lambda: da.simulate_many(PROBLEM, da.Rattle(), sim=True), ["simulate_many", "did you mean simd"]),
    "one that passes keywords on": (
        lambda: da.gradient(None, PROBLEM, da.Rattle(), wrt="q0", step=3),
        ["da.gradient", "'step'", "did you mean steps"],
    ),
    "initial values only": (lambda: da.consistent(PROBLEM, q=[1, 0]), ["consistent", "'q'", "did you mean", "q0"]),
    "a system": (lambda: da.Hamiltonian(lambda q: q @ q, dim=1, holonmic=None), ["Hamiltonian", "did you mean holonomic"]),
    "a method": (lambda: da.LobattoIIIAB(stage=3), ["LobattoIIIAB", "did you mean stages?"]),
    "a mechanism": (lambda: da.Mechanism().body("crank", mas=1.0), ["body", "did you mean mass"]),
    "a result": (lambda: da.simulate(PROBLEM, da.Rattle(), steps=1).at(tt=0.1), ["at has", "'tt'", "did you mean t?"]),
    "a room": (lambda: da.plot.overview(None, pth="a.png"), ["overview", "did you mean path"]),
    "nothing alike": (lambda: da.plot.overview(None, xyzzy=1), ["overview", "'xyzzy'", "it takes run, path"]),
    "too few": (lambda: da.Lagrangian(lambda v: v @ v), ["Lagrangian", "'dim'", "it takes L, dim"]),
    "too few for one that passes keywords on": (
        lambda: da.gradient(PROBLEM, da.Rattle(), wrt="q0", h=0.1),
        ["gradient: missing a required argument: 'method'", "it takes loss, system"],
    ),
    "too many": (lambda: da.simulate(PROBLEM, da.Rattle(), 0.1), ["simulate", "too many positional", "it takes system"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_do_not_fit(name):
    call, words = CALLS[name]
    found = refused(CallError, words, call)
    assert isinstance(found, TypeError) and found.__cause__ is None and found.__suppress_context__


def test_errors_of_what_is_called_stay_as_they_are():
    def loss(q, *, times=1):
        raise TypeError(f"mine, of {q} and {times}")

    for call in (loss, checked(loss, "loss")):
        with pytest.raises(TypeError, match="mine, of 3 and 2") as found:
            call(3, times=2)
        assert type(found.value) is TypeError


def shared_keywords():
    """{function or constructor: the names of the TypedDict that its definition unpacks}, read from the source."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    dicts, users = {}, {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.ClassDef) and node.name.startswith("Given"):
            names = [line.target.id for line in node.body if isinstance(line, ast.AnnAssign)]
            dicts[node.name] = ([base.id for base in node.bases], names)
        for each in node.body if isinstance(node, ast.ClassDef) else [node]:
            kwarg = each.args.kwarg if isinstance(each, ast.FunctionDef) else None
            if kwarg is not None and kwarg.annotation is not None and ast.unparse(kwarg.annotation).startswith("Unpack["):
                users.setdefault(node.name if each is not node else each.name, ast.unparse(kwarg.annotation)[7:-1])

    def names(found):
        bases, own = dicts.get(found, ([], []))
        return [name for base in bases for name in names(base)] + own

    return {user: names(found) for user, found in users.items() if user != "__init__"}


def test_signatures_and_help_show_every_shared_keyword_with_its_default():
    found = shared_keywords()
    assert {"simulate", "simulate_many", "poincare", "suggest", "consistent", "fit", "Hamiltonian", "Lagrangian"} <= set(found)
    for name, keywords in found.items():
        signature, text = inspect.signature(getattr(da, name)), pydoc.render_doc(getattr(da, name), renderer=pydoc.plaintext)
        assert keywords and not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
        for keyword in keywords:
            assert signature.parameters[keyword].kind is inspect.Parameter.KEYWORD_ONLY
            assert signature.parameters[keyword].default is None and f"{keyword}: " in text


def test_public_functions_travel_to_other_processes():
    for function in (da.simulate, da.simulate_many, da.consistent, da.plot.overview):
        assert pickle.loads(pickle.dumps(function)) is function
    assert da.systems.consistent is da.consistent
