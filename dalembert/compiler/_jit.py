"""LLVM assembly to machine code; what was compiled once, in this process or an earlier one, is not compiled again."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import functools
import hashlib
import hmac
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, MutableMapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from dalembert._progress import phase
from dalembert.compiler._body import LIBM
from dalembert.symbolic._lock import one_at_a_time

CACHE_MB = 500
"""How much machine code is kept on disk, unless $DALEMBERT_CACHE_MB says otherwise."""

LEVEL = 1
"""LLVM's level for machine code. Two also orders instructions again after registers were given to them.

That takes half of the time of a long module (5.4 s instead of 2.9 s for Bricard's mechanism) and changes a step by 1 to 2 %.
"""

QUICK = 0
"""LLVM's level for long code without loops that is called seldom.

It is made in a tenth of the time, and takes a tenth to a third longer.
"""

VECTORS = 2
"""The same as `LEVEL`, after LLVM's search for equal operations on neighbouring numbers, which it makes vectors of.

Predictors with 6 stages take a third of the time so, as they multiply all coordinates of a stage by the same numbers. Kernels
that eliminate find few such operations: they become 10 to 50 % slower, and LLVM takes four times as long.
"""

LOOP = "!llvm.loop"
"""What the assembly of a module with loops contains.

LLVM's passes over a module without loops take a fifth of the time and gain nothing that can be measured: no value of a tape is
computed twice.
"""


@dataclass(frozen=True)
class Code:
    """Machine code: the addresses of its kernels, and what keeps them alive."""

    addresses: dict[str, int]
    _alive: Any = field(repr=False)


@functools.cache
def _target() -> llvm.TargetRef:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    process = ctypes.CDLL(None)
    missing = [name for name in LIBM if not hasattr(process, name)]
    if missing:
        library = ctypes.CDLL(ctypes.util.find_library("m") or ctypes.util.find_library("msvcrt"))
        for name in missing:
            if hasattr(library, name):
                llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    return llvm.Target.from_default_triple()


@functools.cache
def code_target() -> tuple[str, str]:
    """The processor that code is compiled for, and its features, as LLVM names them.

    $DALEMBERT_TARGET chooses another one than this machine's: x86-64 (every processor with 64 bits), x86-64-v3 (with AVX2 and
    FMA), x86-64-v4 (with AVX-512), or any name that LLVM knows.
    """
    chosen = os.environ.get("DALEMBERT_TARGET", "native")
    if chosen == "native":
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return chosen, ""


def has_long_vectors() -> bool:
    """Whether the processor that code is compiled for computes with eight numbers at once."""
    if os.environ.get("DALEMBERT_TARGET", "native") == "native":
        return bool(llvm.get_host_cpu_features().get("avx512f"))
    return code_target()[0] == "x86-64-v4"


def cache_directory() -> Path | None:
    """Where machine code is kept between processes: $DALEMBERT_CACHE_DIR, or the user's cache directory, if there is one."""
    chosen = os.environ.get("DALEMBERT_CACHE_DIR")
    if chosen:
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dalembert"
    except RuntimeError:  # a user without a home directory, as in some containers
        return None


_compiled: MutableMapping[str, Code] = weakref.WeakValueDictionary()
"""Code that is in use: of programs that are kept, or run."""


@one_at_a_time
def compile_module(assembly: str, names: tuple[str, ...], level: int = LEVEL) -> Code:
    """Machine code of a module; equal assembly is compiled once."""
    level = LEVEL if LOOP in assembly else level
    identity = "\n".join([assembly, str(level), *code_target(), ".".join(map(str, llvm.llvm_version_info))])
    key = hashlib.sha256(identity.encode()).hexdigest()
    code = _compiled.get(key) if key in _compiled else None
    if code is None:
        phase("their machine code")
        directory = cache_directory()
        code = _compiled[key] = _compile(assembly, names, level, None if directory is None else directory / f"{key}.o")
    return code


def _compile(assembly: str, names: tuple[str, ...], level: int, stored: Path | None) -> Code:
    code = None if stored is None else _read(stored)
    if code is None:
        code = _interruptible(functools.partial(_object_code, assembly, level, stored))
    machine = _machine(level)  # not before: after a Ctrl-C its end would wait for LLVM's lock
    # Not by llvmlite's own object cache: its callbacks swallow exceptions, and with them a Ctrl-C that came during LLVM's work.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Code({name: engine.get_function_address(name) for name in names}, engine)


def _machine(level: int) -> Any:
    cpu, features = code_target()
    return _target().create_target_machine(cpu=cpu, features=features, opt=min(level, LEVEL), codemodel="jitdefault")


def _object_code(assembly: str, level: int, stored: Path | None) -> bytes:
    """The object file of a module, which is also stored."""
    machine, module = _machine(level), llvm.parse_assembly(assembly)
    module.verify()
    if LOOP in assembly or level == VECTORS:
        options = llvm.create_pipeline_tuning_options(speed_level=1)  # 2 takes up to twice the time for the same machine code
        options.loop_vectorization, options.slp_vectorization = level != VECTORS, level == VECTORS
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    code = machine.emit_object(module)
    if stored is not None:
        _write(stored, code)
    return code


def _interruptible(task: Callable[[], bytes]) -> bytes:
    """What a task returns that may be in one call of LLVM for seconds, in which Python does not see a Ctrl-C.

    So the main thread waits while another one works. After a Ctrl-C that one ends its task in vain, but for what it stores;
    llvmlite's lock keeps others from using LLVM meanwhile, and the interpreter waits for it before it exits.
    """
    if threading.current_thread() is not threading.main_thread():
        return task()
    found: Future[bytes] = Future()

    def work() -> None:
        try:
            found.set_result(task())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=work, name="dalembert-llvm").start()
    return found.result()


def _read(path: Path) -> bytes | None:
    """A stored object file, if nobody else can have written it and its digest fits; what does not is compiled anew."""
    try:
        with path.open("rb") as file:
            if not (_ours(os.fstat(file.fileno())) and _ours(path.parent.stat())):
                return None
            content = file.read()
    except OSError:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # the files that were not used for longest go first
    said, code = content[:32], content[32:]
    return code if hmac.compare_digest(said, _digest(path, code)) else None


def _digest(path: Path, code: bytes) -> bytes:
    """Of machine code under its name, which stands for the assembly, the processor and the version of LLVM."""
    return hashlib.sha256(path.stem.encode() + code).digest()


def _ours(facts: os.stat_result) -> bool:
    """Whether only this user, or root, can have written a file or into a directory: what OpenSSH asks of its keys."""
    return not hasattr(os, "getuid") or (facts.st_uid in (os.getuid(), 0) and not facts.st_mode & 0o022)


def _write(path: Path, code: bytes) -> None:
    with contextlib.suppress(OSError):  # without a cache everything works, only slower
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(path.parent.stat().st_mode & ~0o022)  # one that others can write into is never read
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(_digest(path, code) + code)
        os.replace(file.name, path)
        _limit(path.parent, len(code))


_unseen: dict[Path, float] = {}
"""Bytes that this process has written into a directory since it last looked at the files there."""


def _limit(directory: Path, written: int) -> None:
    """Keep stored machine code within its limit: looked at once, and again whenever a hundredth of it was written.

    To look at all files after each took as long as to compile a small model, once there were some thousands of them.
    """
    limit = cache_limit()
    _unseen[directory] = _unseen.get(directory, limit) + written
    if _unseen[directory] > limit / 100:
        remove_stored(directory, down_to=limit)
        _unseen[directory] = 0.0


def cache_limit() -> float:
    """How many bytes of machine code are kept on disk: $DALEMBERT_CACHE_MB megabytes."""
    try:
        return 1e6 * float(os.environ.get("DALEMBERT_CACHE_MB", ""))
    except ValueError:
        return 1e6 * CACHE_MB


def stored_files(directory: Path) -> list[tuple[Path, int]]:
    """The stored machine code and its sizes in bytes, what was used last first."""
    found = []
    for path in directory.glob("*.o") if directory.is_dir() else ():
        with contextlib.suppress(OSError):  # another process may have removed it
            found.append((path, path.stat()))
    return [(path, facts.st_size) for path, facts in sorted(found, key=lambda item: -item[1].st_mtime)]


def remove_stored(directory: Path, down_to: float = 0.0) -> tuple[int, int]:
    """Remove what was not used for longest until so many bytes are left; how many files and bytes are gone."""
    files = removed = kept = 0
    for path, size in stored_files(directory):
        kept += size
        if kept > down_to:
            with contextlib.suppress(OSError):
                path.unlink()
                files, removed = files + 1, removed + size
    return files, removed
