"""Numba for the drivers: what it compiled is kept on disk, and used again as long as no file with drivers changes."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit

from dalembert.compiler._jit import code_target

HERE = Path(__file__).parent
ELSEWHERE = (
    *(f"contact/_{name}.py" for name in ("event_memory", "cubic", "collision_times", "dense_newton")),
    *(f"contact/_{name}.py" for name in ("driver_with_impacts", "partial_steps", "resets", "resolution", "walls_ahead")),
    *(f"time_stepping/_{name}.py" for name in ("stepping_driver", "stepping_solver", "sphere_driver")),
    *(f"derivatives/_{name}.py" for name in ("kernel_sweeps", "sweeps", "table_solves")),
    "_interrupts.py",
    *(f"compiler/_{name}.py" for name in ("denormals", "differential", "elimination", "increments")),
    *(f"compiler/_{name}.py" for name in ("lane_kernels", "metric", "stopping")),
)
"""Other files with compiled drivers, and files whose constants and rules the drivers contain."""
FILES = sorted([*HERE.glob("*.py"), *(path for pattern in ELSEWHERE for path in HERE.parent.glob(pattern))])
SOURCES = hashlib.sha256(b"".join(path.read_bytes() for path in FILES)).hexdigest()[:12]

# Drivers are compiled for the same processor as kernels; Numba keeps what it stores for each of them apart.
config.CPU_NAME, config.CPU_FEATURES = code_target()


def compiled(*signature: str, **options: Any) -> Callable:
    """Compile a function, for explicit signatures or when it is called, and store the machine code.

    Numba looks for changes only in the file of the function itself, whose machine code also contains functions and constants of
    other files. So the name under which it is stored contains a digest of all of them.

    Without Numba's run-time (`_nrt`), arrays are passed as plain pointers: counting references took half of a step's time.
    No function is called from C.
    """

    def compile_function(function: Callable) -> Any:
        function.__qualname__ += f"_{SOURCES}"
        fixed = {"cache": True, "nogil": True, "_nrt": False, "error_model": "numpy", "no_cfunc_wrapper": True}
        return njit(*signature, **fixed, **options)(function)

    return compile_function


def internal(*signature: str) -> Callable:
    """`compiled`, for functions that only other compiled ones call: unpacking Python's arguments is a fifth of the work."""
    return compiled(*signature, no_cpython_wrapper=True)


for stored in (stored for path in FILES for stored in (path.parent / "__pycache__").glob(f"{path.stem}.*.nb[ic]")):
    if SOURCES not in stored.name:
        with contextlib.suppress(OSError):
            stored.unlink()
