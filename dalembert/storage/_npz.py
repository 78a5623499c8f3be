"""Compressed .npz files of numbers and text, written whole or not at all, and read without executing anything."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import DalembertError, InputError


def write_npz(target: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays to a file, which is made beside its place and moved there."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if not isinstance(error, OSError):
            raise
        raise DalembertError(
            f"the run could not be written to {target} ({error.strerror}): choose another path; the run itself is intact"
        ) from error


@contextlib.contextmanager
def reading_npz(path: str | os.PathLike[str]) -> Iterator[Any]:
    """A file of arrays; what is wrong with it, or with what is looked for in it, becomes a sentence."""
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            yield file
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror or error}): give the path that run.save or save_to= wrote to"
        ) from None
    except InputError:
        raise
    except Exception:  # a damaged archive may ask for passwords, unknown compressions or all memory
        raise InputError(f"{path} is not a run saved by dalembert, or damaged") from None
