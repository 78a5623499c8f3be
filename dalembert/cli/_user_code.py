"""What cannot be carried out, and the code of users, which may raise anything."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path

from dalembert.errors import DalembertError


class UsageError(Exception):
    """A command line that cannot be carried out as it stands."""


@contextlib.contextmanager
def user_code(path: Path | None) -> Iterator[None]:
    """A block that runs code of a user's file: what that raises becomes one sentence with the line of the file.

    Without a file, nothing is changed.
    """
    try:
        yield
    except BaseException as error:
        if path is None or isinstance(error, (UsageError, KeyboardInterrupt)):
            raise
        raise UsageError(_sentence(path, error)) from None


def _sentence(path: Path, error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{path}, line {error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).name == path.name]
    place = f"{path}, line {lines[-1]}" if lines else str(path)
    if isinstance(error, SystemExit):
        return f"{place}: it calls sys.exit({error.code!r}), which ends nothing here: leave it out"
    if isinstance(error, DalembertError):
        return f"{place}: {error}" if lines else str(error)  # else the file is not the only cause
    return f"{place}: {type(error).__name__}: {' '.join(str(error).split())}"
