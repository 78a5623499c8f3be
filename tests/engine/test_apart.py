"""Functions that compiled ones call by their address: compiled when they are first called, and once."""

import pytest
from numba import types

from dalembert.engine._apart import apart
from dalembert.engine._compiled import compiled, internal


def functions():
    """A function apart, and two that call it."""

    def divide(a, b):
        return a // b, a % b

    own = internal()(divide)
    divided = apart(types.UniTuple(types.int64, 2), "int64", "int64")(own)

    @compiled()
    def quotient(a, b):
        if b == 0:
            return 0
        return divided(a, b)[0]

    @compiled()
    def remainder(a, b):
        return divided(a, b)[1]

    return own, quotient, remainder


def test_a_function_apart_is_compiled_when_it_is_first_called_and_once():
    own, quotient, remainder = functions()
    assert quotient(7, 0) == 0 and not own.overloads
    assert [quotient(a, 3) for a in range(7)] == [a // 3 for a in range(7)]
    assert [remainder(a, 3) for a in range(7)] == [a % 3 for a in range(7)]
    assert len(own.overloads) == 1


def test_arguments_become_those_of_its_types():
    _, quotient, _ = functions()
    assert quotient(7.0, 2) == 3


def test_a_ctrl_c_while_it_is_compiled_comes_when_machine_code_returns(monkeypatch):
    own, quotient, _ = functions()
    compile_it, calls = own.compile, []

    def interrupted(signature):
        calls.append(signature)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return compile_it(signature)

    monkeypatch.setattr(own, "compile", interrupted)
    found = []
    with pytest.raises(KeyboardInterrupt):
        found.append(quotient(7, 3))
        for _ in range(100):  # the interpreter looks for signals at loops
            pass
    assert len(calls) == 2 and quotient(7, 3) == 2


def test_what_cannot_be_stored_is_used_all_the_same(monkeypatch):
    own, _, remainder = functions()

    def not_stored(signature, result):
        raise OSError("no space left on device")

    monkeypatch.setattr(own._cache, "save_overload", not_stored)
    assert remainder(7, 3) == 1
