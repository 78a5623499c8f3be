"""What cannot be carried out, and the code of users, which may raise anything."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dalembert.errors import DalembertError


class Unusable(Exception):
    """A command line that cannot be carried out as it stands."""


def guard(path: Path | None, action: Callable[[], Any]) -> Any:
    """Run code of a user's file; what it raises becomes one sentence with the line of the file. Without a file, just run it."""
    if path is None:
        return action()
    try:
        return action()
    except (Unusable, KeyboardInterrupt):
        raise
    except SyntaxError as error:
        raise Unusable(f"{path}, line {error.lineno}: {error.msg}") from None
    except SystemExit as error:
        raise Unusable(
            f"{_place(path, error)}: it calls sys.exit({error.code!r}), which ends nothing here: leave it out"
        ) from None
    except DalembertError as error:
        where = f"{_place(path, error)}: " if _lines(path, error) else ""  # else it is no matter of the file alone
        raise Unusable(f"{where}{error}") from None
    except Exception as error:
        raise Unusable(f"{_place(path, error)}: {type(error).__name__}: {_one_line(error)}") from None


def _lines(path: Path, error: BaseException) -> list[int | None]:
    frames = traceback.extract_tb(error.__traceback__)
    return [frame.lineno for frame in frames if Path(frame.filename).name == path.name]


def _place(path: Path, error: BaseException) -> str:
    lines = _lines(path, error)
    return f"{path}, line {lines[-1]}" if lines else str(path)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
