"""Functions that compiled ones call by their address: compiled when they are first called, and once."""

import signal

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


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGALRM, TimeoutError)], ids=str)
def test_a_signal_while_it_is_compiled_is_handled_when_machine_code_returns(monkeypatch, number, raised):
    def too_long(*_):
        raise TimeoutError

    own, quotient, _ = functions()
    compile_it, calls, found = own.compile, [], []

    def interrupted(signature):
        calls.append(signature)
        signal.raise_signal(number)
        return compile_it(signature)

    monkeypatch.setattr(own, "compile", interrupted)
    before = signal.signal(signal.SIGALRM, too_long)
    try:
        with pytest.raises(raised):
            found.append(quotient(7, 3))
            for _ in range(100):  # the interpreter looks for signals at loops
                pass
        assert signal.getsignal(signal.SIGALRM) is too_long
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(calls) == 1 and quotient(7, 3) == 2


def test_what_is_raised_from_outside_while_it_is_compiled_does_not_end_the_process(monkeypatch):
    own, quotient, _ = functions()
    compile_it, calls = own.compile, []

    def once(signature):
        calls.append(signature)
        if len(calls) == 1:
            raise TimeoutError
        return compile_it(signature)

    monkeypatch.setattr(own, "compile", once)
    assert quotient(7, 3) == 2 and len(calls) == 2


def test_what_cannot_be_stored_is_used_all_the_same(monkeypatch):
    own, _, remainder = functions()
    tried = []

    def not_stored(signature, result):
        tried.append(signature)
        raise OSError("no space left on device")

    monkeypatch.setattr(own._cache, "load_overload", lambda *_: None)
    monkeypatch.setattr(own._cache, "save_overload", not_stored)
    assert remainder(7, 3) == 1 and tried
