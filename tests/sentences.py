"""What every refusal has in common: one sentence, and no word of what is inside."""

import pytest

INTERNALS = ("casadi", "CasADi", "SX(", "llvm", "LLVM", "numba", "Traceback", "site-packages", "assert", "0x")


def assert_one_sentence(message, words=()):
    assert "\n" not in message
    assert not [word for word in INTERNALS if word in message], message
    assert all(word in message for word in words), message


def refused(error, words, action):
    """The error with which an action is refused."""
    with pytest.raises(error) as caught:
        action()
    assert_one_sentence(str(caught.value), words)
    return caught.value
