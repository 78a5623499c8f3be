"""LLVM assembly to machine code in this process; what was compiled once is not compiled again."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import hashlib
from dataclasses import dataclass, field
from typing import Any

import llvmlite.binding as llvm

from dalembert.compiler._ir import LIBM

LONG = 40_000
"""Lines of assembly from which on LLVM optimises less, so that compiling takes seconds and not minutes."""


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


def _machine(speed: int) -> llvm.TargetMachine:
    return _target().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=speed, codemodel="jitdefault"
    )


_compiled: dict[str, Code] = {}


def compile_module(assembly: str, names: tuple[str, ...]) -> Code:
    """Machine code of a module; equal assembly is compiled once a process."""
    key = hashlib.sha256(assembly.encode()).hexdigest()
    if key not in _compiled:
        speed = 2 if assembly.count("\n") < LONG else 1
        machine = _machine(speed)
        module = llvm.parse_assembly(assembly)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=speed)
        options.slp_vectorization = False  # on straight-line code it takes most of the time and makes slower kernels
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        _compiled[key] = Code({name: engine.get_function_address(name) for name in names}, engine)
    return _compiled[key]
