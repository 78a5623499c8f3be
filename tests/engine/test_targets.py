"""What a step needs does not depend on the instructions that LLVM chose: the same runs, compiled for other processors."""

import json
import os
import platform
import subprocess
import sys

import llvmlite.binding as llvm
import pytest

NEEDS = {"x86-64": "sse2", "x86-64-v3": "avx2", "x86-64-v4": "avx512f"}
FROM_REST = """
import json
import numpy as np
import dalembert as da
from dalembert.compiler._jit import code_target

run = da.simulate(da.problems.double_pendulum(), da.Variational("SE2"), h=0.02, steps=20)
residual = float(np.abs(run.residuals["g"]).max())
print(json.dumps([code_target()[0], run.stats["rescued_steps"], residual, run.states[-1].tolist()]))
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names processors of x86-64")
def test_a_start_from_rest_needs_no_rescue_on_any_processor():
    """The exact first step is zero; rounding makes 1e-15 of it, or nothing, as fused products and sums have it."""
    ends = []
    for target in (name for name, feature in NEEDS.items() if llvm.get_host_cpu_features().get(feature)):
        environment = os.environ | {"DALEMBERT_TARGET": target}
        done = subprocess.run([sys.executable, "-c", FROM_REST], env=environment, capture_output=True, text=True, check=True)
        compiled_for, rescued, residual, last = json.loads(done.stdout)
        assert (compiled_for, rescued) == (target, 0)
        assert residual < 1e-14
        ends.append(last)
    for end in ends:
        assert end == pytest.approx(ends[0], rel=1e-12, abs=1e-13)
