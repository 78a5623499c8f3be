"""Runge-Kutta families by name: Gauss, Radau IIA and Lobatto IIIC with any number of stages.

Orders on holonomic constraints are those that Jay (1996), SIAM J. Numer. Anal. 33, section 5, states for the index-3 form; on
nonholonomic constraints and other DAEs of index 2 they are those of table 2.1 of Hilden (2009), 2s-1 for Radau IIA.

Deviations from the print: those of `runge_kutta`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dalembert import tableaux
from dalembert.methods._base import check_stages
from dalembert.methods.runge_kutta import RungeKuttaEquations
from dalembert.tableaux import Tableau


@dataclass(frozen=True)
class Gauss(RungeKuttaEquations):
    """The s-stage Gauss method: symplectic and of order 2s without constraints.

    On holonomic constraints the unprojected method generally diverges; with `projected=True` it has order s.

    Example:
        >>> import dalembert as da
        >>> da.Gauss(stages=2).order_unconstrained
        {'q': 4, 'p': 4}

    """

    stages: int = 2
    projected: bool = False
    reference: ClassVar[str] = "Jay (1996), section 5; Hairer and Jay (1993)"

    def __post_init__(self) -> None:
        check_stages("Gauss", self.stages, least=1)

    @property
    def tableau(self) -> Tableau:
        """Gauss."""
        return tableaux.gauss(self.stages)

    @property
    def order(self) -> dict[str, int]:
        """s with projection; unprojected, the method does not converge in general."""
        return dict.fromkeys(("q", "p", "lam"), self.stages) if self.projected else {}

    @property
    def order_unconstrained(self) -> dict[str, int]:
        """2s."""
        return dict.fromkeys(("q", "p"), 2 * self.stages)


@dataclass(frozen=True)
class RadauIIA(RungeKuttaEquations):
    """The s-stage Radau IIA method: stiffly accurate, not symplectic.

    On holonomic constraints: orders 2s-1 in q, s in p and s-1 in Lambda_s; with `projected=True`, 2s-1 in all components.

    Example:
        >>> import dalembert as da
        >>> da.RadauIIA(stages=2, projected=True).order
        {'q': 3, 'p': 3, 'lam': 3}

    """

    stages: int = 2
    projected: bool = False
    reference: ClassVar[str] = "Jay (1996), section 5; Hairer, Lubich and Roche (1989)"

    def __post_init__(self) -> None:
        check_stages("Radau IIA", self.stages, least=1)

    @property
    def tableau(self) -> Tableau:
        """Radau IIA."""
        return tableaux.radau_iia(self.stages)

    @property
    def order(self) -> dict[str, int]:
        """2s-1 with projection; without, 2s-1 in q, s in p, s-1 in the stage multiplier Lambda_s."""
        s = self.stages
        if self.projected:
            return dict.fromkeys(("q", "p", "lam"), 2 * s - 1)
        return {"q": 2 * s - 1, "p": s, "stage_lam": s - 1}

    @property
    def order_unconstrained(self) -> dict[str, int]:
        """2s-1."""
        return dict.fromkeys(("q", "p"), 2 * self.stages - 1)


@dataclass(frozen=True)
class LobattoIIIC(RungeKuttaEquations):
    """The s-stage Lobatto IIIC method: stiffly accurate, not symplectic, of order 2s-2 without constraints.

    Example:
        >>> import dalembert as da
        >>> da.LobattoIIIC(stages=3).order_unconstrained
        {'q': 4, 'p': 4}

    """

    stages: int = 3
    projected: bool = False
    reference: ClassVar[str] = "Hairer and Wanner (1996), IV.5; Hairer, Lubich and Roche (1989)"

    def __post_init__(self) -> None:
        check_stages("Lobatto IIIC", self.stages, least=2)

    @property
    def tableau(self) -> Tableau:
        """Lobatto IIIC."""
        return tableaux.lobatto_iiic(self.stages)

    @property
    def order(self) -> dict[str, int]:
        """2s-2 with projection."""
        return dict.fromkeys(("q", "p", "lam"), 2 * self.stages - 2) if self.projected else {}

    @property
    def order_unconstrained(self) -> dict[str, int]:
        """2s-2."""
        return dict.fromkeys(("q", "p"), 2 * self.stages - 2)
