"""Butcher tableaux of any number of stages, and the conditions that they satisfy.

Coefficients come from their defining conditions in multiprecision and are rounded to float64 once::

    from dalembert.tableaux import C, gauss, largest

    gauss(3).A                    # read-only float64 array, correctly rounded
    gauss(3).exact.A              # the same as an mpmath matrix with 100 digits
    largest(C, gauss(3))          # 3: the method satisfies C(3) and not C(4)
"""

from dalembert._calls import check_calls as _check_calls
from dalembert.tableaux._conditions import CC, DD, B, C, D, largest, stiffly_accurate, symmetry, symplecticity
from dalembert.tableaux._families import (
    gauss,
    lobatto_iiia,
    lobatto_iiib,
    lobatto_iiic,
    lobatto_iiic_star,
    lobatto_iiid,
    radau_ia,
    radau_iia,
)
from dalembert.tableaux._gauss_lobatto import (
    SparkTableau,
    discontinuous_collocation,
    gauss_lobatto,
    spark_conditions,
    spark_symmetry,
    spark_symplecticity,
)
from dalembert.tableaux._related import adjoint, symplectic_dual
from dalembert.tableaux._tableau import Tableau

__all__ = [
    "CC",
    "DD",
    "B",
    "C",
    "D",
    "SparkTableau",
    "Tableau",
    "adjoint",
    "discontinuous_collocation",
    "gauss",
    "gauss_lobatto",
    "largest",
    "lobatto_iiia",
    "lobatto_iiib",
    "lobatto_iiic",
    "lobatto_iiic_star",
    "lobatto_iiid",
    "radau_ia",
    "radau_iia",
    "spark_conditions",
    "spark_symmetry",
    "spark_symplecticity",
    "stiffly_accurate",
    "symmetry",
    "symplectic_dual",
    "symplecticity",
]

_check_calls(globals())
