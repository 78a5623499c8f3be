"""Files and folders that appear complete or not at all, and one writer at a time."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dalembert.errors import DalembertError, InputError


def zarr_module() -> Any:
    """The package zarr, if it is there."""
    try:
        import zarr
    except ImportError:
        raise DalembertError("runs on disk need the package zarr: pip install dalembert[zarr]") from None
    return zarr


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system says about a place that cannot be written, as a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "make room on the disk, then go on with da.resume"
        else:
            advice = "check the path and its permissions"
        reason = error.strerror or str(error)
        raise DalembertError(
            f"{path} cannot be written ({reason}): {advice}; what was written before stays readable"
        ) from error


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes from writing to a store meanwhile; the system takes the lock away from a process that ends."""
    try:
        import fcntl
    except ImportError:  # not on this platform
        yield
        return
    with writing(path):
        file = (path / "t" / ".lock").open("a+", encoding="utf-8")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise InputError(f"{path} is being written by {holder}: wait until it is done, or stop it") from None
        except OSError as error:  # file systems without locks
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                raise
        with writing(path):
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            file.flush()
        yield


def check_target(path: Path, size: int) -> None:
    """Refuse a place for a new store that is taken, unwritable or too small, before anything is computed."""
    if len(os.fsencode(path.name)) > 240:
        raise InputError(f"the name {path.name[:40]}... has {len(path.name)} characters: choose a shorter one")
    if path.exists():
        raise InputError(f"{path} exists already: go on with it by da.resume, choose another name, or delete it")
    if not path.parent.is_dir():
        raise InputError(f"the directory {path.parent} of {path.name} does not exist: make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise DalembertError(f"{path} cannot be written (permission denied for {path.parent}): choose another place")
    free = shutil.disk_usage(path.parent).free
    if size > free:
        raise DalembertError(
            f"{path} would take {size / 1e9:.3g} GB, and the disk has {free / 1e9:.3g} GB left: store fewer states with "
            "save_every=, or choose another disk"
        )


def sync(place: Path) -> None:
    """Wait until the disk has a file, or all files below a directory."""
    for file in [place] if place.is_file() else place.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
