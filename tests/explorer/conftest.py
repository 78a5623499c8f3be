"""A page about the double pendulum, and ways to ask its server."""

import pytest

from dalembert.explorer._explore import subject
from dalembert.explorer._server import Server
from dalembert.explorer._session import Session

TOKEN = "a-token-that-only-these-tests-know"


def described(model, **given):
    names = ("settings", "initial", "h", "steps", "t1", "draw", "source")
    usual = {"settings": {}, "initial": {}, **dict.fromkeys(names[2:])}
    return subject(model, *({**usual, **given}[name] for name in names))


@pytest.fixture(scope="session")
def describe():
    return described


@pytest.fixture(scope="module")
def served():
    chosen = described("double_pendulum")
    with Server(lambda: Session(chosen), port=0, token=TOKEN) as server:
        yield server
