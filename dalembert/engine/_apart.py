"""Drivers' functions that are compiled when they are first called, once for all that call them.

Numba links what a function calls into its machine code, and LLVM works on all of it again: a function at the end of a chain of
ten was compiled ten times. What is apart is called by its address instead, for which the machine code of the caller asks once.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import traceback
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import from_dtype, typeof, types
from numba.core import cgutils
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from dalembert._interrupts import put_off
from dalembert.compiler._denormals import flushed_to_zero
from dalembert.engine._compiled import internal
from dalembert.engine._layout import COUNTS, KERNELS, LAYOUT, NUMBERS, Substep

ADDRESS, WORD, NUMBER = ctypes.CFUNCTYPE(ctypes.c_int64), ir.IntType(64), ir.IntType(32)
SIGNAL = 56
"""In an answer the number of a signal is to the left of so many bits, which are enough for an address."""
_asked: list[Any] = []
"""What machine code calls to ask for addresses, kept alive."""

NUMBERS_1D, INTEGERS_1D = types.float64[::1], types.int64[::1]
SUBSTEP = types.NamedTuple(
    (
        from_dtype(KERNELS), from_dtype(LAYOUT), INTEGERS_1D, NUMBERS_1D, from_dtype(COUNTS), from_dtype(NUMBERS),
        NUMBERS_1D, NUMBERS_1D, NUMBERS_1D, typeof(np.zeros((2, 2))[:, :1]),
    ),
    Substep,
)  # fmt: skip
TYPES = {"substep": SUBSTEP, "numbers": NUMBERS_1D, "integers": INTEGERS_1D}


def apart(result: str | types.Type, *arguments: str | types.Type) -> Callable:
    """Let compiled functions call a function apart, which has a result and arguments of these types."""
    returned, *given = (_type(name) for name in (result, *arguments))
    signature = returned(*given)

    def make(function: Any) -> Any:
        own = function if isinstance(function, Dispatcher) else internal()(function)
        plain = own.py_func
        name = f"{plain.__module__}.{plain.__qualname__}"
        question = ADDRESS(lambda: _address(own, signature))
        _asked.append(question)
        llvm.add_symbol(name, ctypes.cast(question, ctypes.c_void_p).value)

        def called(typing_context: Any, *_: Any) -> Any:
            return signature, lambda *lowering: _call(name, *lowering)

        context = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        own_parameters = inspect.signature(plain).parameters.values()
        called.__signature__ = inspect.Signature([context, *own_parameters])  # type: ignore[attr-defined]
        called.__name__ = called.__qualname__ = name
        return intrinsic(called)

    return make


def _type(name: str | types.Type) -> types.Type:
    return name if isinstance(name, types.Type) else TYPES[name] if name in TYPES else getattr(types, name)


def _address(function: Dispatcher, signature: Any) -> int:
    """Where the machine code of a function begins; compiled, or loaded, unless it was. With the number of a signal that came.

    Machine code asks for it, through which no exception passes: signals wait, and what else was raised from outside is lost.
    """
    with put_off() as came, flushed_to_zero(False):
        for last in (False, True):
            try:
                function.compile(signature)
                break
            except BaseException:
                if last and signature.args not in function.overloads:  # else it could only not be stored
                    traceback.print_exc()
                    os.abort()
        made = function.overloads[signature.args]
        address = int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))
    return address | (came[0] if came else 0) << SIGNAL


def _call(name: str, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A call in Numba's own convention, by an address that is asked for when the caller first needs it."""
    convention = context.call_conv
    kind = convention.get_function_type(signature.return_type, signature.args)
    result_type = convention.get_return_type(signature.return_type).pointee
    with builder.goto_entry_block():  # Numba would clear them every time the caller begins
        result, raised = builder.alloca(result_type), builder.alloca(kind.args[1].pointee)
    own = context.get_arg_packer(signature.args).as_arguments(builder, arguments)
    builder.call(builder.inttoptr(_found(name, builder), kind.as_pointer()), [result, raised, *own])
    return context.get_returned_value(builder, signature.return_type, builder.load(result))


def _found(name: str, builder: Any) -> Any:
    """The address of a function, which the caller remembers; a signal that came meanwhile is handed on to Python.

    It is asked for again where ctypes dropped an exception of `_address`, and gave a zero.
    """
    module = builder.module
    if f"{name}.address" not in module.globals:
        place = cgutils.add_global_variable(module, WORD, f"{name}.address")
        place.linkage, place.initializer = "internal", WORD(0)
    place = module.globals[f"{name}.address"]
    ask, known = builder.append_basic_block("ask"), builder.append_basic_block("known")
    builder.cbranch(builder.icmp_signed("==", builder.load(place), WORD(0)), ask, known)
    builder.position_at_end(ask)
    answer = builder.call(cgutils.get_or_insert_function(module, ir.FunctionType(WORD, []), name), [])
    number = builder.trunc(builder.lshr(answer, WORD(SIGNAL)), NUMBER)
    with builder.if_then(builder.icmp_signed("!=", number, NUMBER(0)), likely=False):
        raised = ir.FunctionType(NUMBER, [NUMBER])
        builder.call(cgutils.get_or_insert_function(module, raised, "PyErr_SetInterruptEx"), [number])
    answer = builder.and_(answer, WORD((1 << SIGNAL) - 1))
    builder.store(answer, place)
    builder.cbranch(builder.icmp_signed("==", answer, WORD(0)), ask, known)
    builder.position_at_end(known)
    return builder.load(place)
