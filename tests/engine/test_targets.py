"""What a step needs does not depend on the instructions that LLVM chose: the same runs, compiled for other processors."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

import dalembert as da
from dalembert.compiler import _jit, _program
from dalembert.symbolic._kept import Recent

NEEDS = {"x86-64": "sse2", "x86-64-v3": "avx2", "x86-64-v4": "avx512f"}
TARGETS = [name for name, feature in NEEDS.items() if llvm.get_host_cpu_features().get(feature)]
FROM_REST = """
import json
from test_targets import from_rest
from dalembert.compiler._jit import code_target

print(json.dumps([code_target()[0], from_rest().tolist()]))
"""

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names processors of x86-64")


def from_rest():
    """The end of a run whose exact first step is zero; rounding makes 1e-15 of it, or nothing, as fused sums have it."""
    run = da.simulate(da.problems.double_pendulum(), da.Variational("SE2"), h=0.02, steps=20)
    assert run.stats["rescued_steps"] == 0
    assert np.abs(run.residuals["g"]).max() < 1e-14
    return run.states[-1]


@pytest.fixture(scope="module")
def ends():
    """By target: where the run ends with kernels for it, and the driver for this machine, which has no fused operations."""
    found = {}
    for target in TARGETS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_jit, "code_target", lambda target=target: (target, ""))
            patch.setattr(_program, "_programs", Recent())
            found[target] = from_rest()
    return found


def test_a_start_from_rest_needs_no_rescue_on_any_processor(ends):
    for end in ends.values():
        assert end == pytest.approx(ends["x86-64"], rel=1e-12, abs=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_drivers_compute_the_same_on_any_processor(ends, target):
    """With $DALEMBERT_TARGET the driver is compiled for a processor, too, for 20 seconds: not a bit of the states changes."""
    places = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = os.environ | {"DALEMBERT_TARGET": target, "PYTHONPATH": places}
    done = subprocess.run([sys.executable, "-c", FROM_REST], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [target, ends[target].tolist()]
