"""Composition schemes: how a method of high order is made of many substeps of a simple one.

    da.compose(da.Rattle(), da.schemes.kahan_li(8))        # order 8, symplectic, on the constraints

Each function returns a `Scheme`, an immutable list of fractions of h with its order and its reference.
"""

from dalembert.methods._composition_schemes import (
    Scheme,
    Substep,
    blanes_moan,
    kahan_li,
    mclachlan,
    scheme,
    sofroniou_spaletta,
    strang,
    suzuki,
    suzuki_umeno,
    triple_jump,
    yoshida,
)

__all__ = [
    "Scheme",
    "Substep",
    "blanes_moan",
    "kahan_li",
    "mclachlan",
    "scheme",
    "sofroniou_spaletta",
    "strang",
    "suzuki",
    "suzuki_umeno",
    "triple_jump",
    "yoshida",
]
