"""Numbers below 2.2e-308 count as zero while steps are computed: processors take a hundred times as long for them.

They are rounding errors of rounding errors, as of a planar mechanism in space whose coordinates across the plane die away.
"""

from __future__ import annotations

import ctypes
import functools
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dalembert.compiler._jit import Code, compile_module

FLUSH = 0x8040
"""The bits of the control register by which results and operands are flushed to zero."""

ASSEMBLY = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define i32 @control() {
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %value = load i32, ptr %place
  ret i32 %value
}

define void @set_control(i32 %value) {
  %place = alloca i32
  store i32 %value, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret void
}
"""


@contextmanager
def flushed_to_zero(flush: bool = True) -> Iterator[None]:
    """Let this thread compute so, or not; as it was before, afterwards."""
    if platform.machine() not in ("x86_64", "AMD64"):
        yield
        return
    control, set_control, _ = _functions()
    before = control()
    set_control(before | FLUSH if flush else before & ~FLUSH)
    try:
        yield
    finally:
        set_control(before)


@functools.cache
def _functions() -> tuple[Callable[[], int], Callable[[int], None], Code]:
    code = compile_module(ASSEMBLY, ("control", "set_control"))
    return (
        ctypes.CFUNCTYPE(ctypes.c_uint32)(code.addresses["control"]),
        ctypes.CFUNCTYPE(None, ctypes.c_uint32)(code.addresses["set_control"]),
        code,
    )
