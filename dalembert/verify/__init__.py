"""Measuring what a method promises: order, symplecticity, reversibility, drift.

study = da.verify.order(system, method, reference=..., t1=5.0, steps=[40, 80, 160, 320], q0=..., p0=...)
study.slopes                                   # {"q": 3.98, "p": 4.01, "lam": 4.00}
da.verify.symplecticity_defect(system, method, q0=..., p0=..., h=0.1)
da.verify.reversibility_defect(system, method, q0=..., p0=..., h=0.1)
da.verify.drift(run.energy, run.t).slope
da.verify.error(run).relative                  # how far the positions are from the exact ones
"""

from dalembert._calls import check_calls as _check_calls
from dalembert._fits import Drift, OrderStudy, drift, slope
from dalembert.verify._error import ErrorEstimate, error
from dalembert.verify._multiprecision import multiprecision_run
from dalembert.verify._order import order
from dalembert.verify._structure import reversibility_defect, step, step_tangent, symplecticity_defect

__all__ = [
    "Drift",
    "ErrorEstimate",
    "OrderStudy",
    "drift",
    "error",
    "multiprecision_run",
    "order",
    "reversibility_defect",
    "slope",
    "step",
    "step_tangent",
    "symplecticity_defect",
]

_check_calls(globals())
