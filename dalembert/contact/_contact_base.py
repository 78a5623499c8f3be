"""What steps in contact need from outside: a method that keeps the walls."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from dalembert.errors import UnsupportedSystem
from dalembert.methods import GaussLobattoSPARK, LobattoIIIAB, OneStepMethod
from dalembert.systems import MechanicalSystem


def base_in_contact(base: OneStepMethod, system: MechanicalSystem) -> OneStepMethod:
    """The method for steps in contact: one that keeps phi = 0 and phi_dot = 0.

    That is the base itself if it keeps g and g_dot, or else the base with projection if that has the same order; if not (as for
    Gauss methods, whose order projection halves), the method of Lobatto IIIA-IIIB of the same order. Friction needs constraint
    forces that are no gradients, and nonholonomic constraints: Gauss-Lobatto SPARK of the same order, or of the next even one.
    """
    order = min((base.order_unconstrained or base.order or {"q": 2}).values())
    if system.n_tangents or system.n_nonholonomic:
        return base if base.keeps >= {"g", "g_dot", "k"} else GaussLobattoSPARK(stages=(order + 1) // 2)
    if base.keeps >= {"g", "g_dot"}:
        return base
    if hasattr(base, "projected"):
        projected: OneStepMethod = replace(base, projected=True)
        if min(projected.order.values(), default=0) >= order:
            with contextlib.suppress(UnsupportedSystem):
                projected.check(system.smooth)
                return projected
    return LobattoIIIAB(stages=max(2, (order + 1) // 2 + 1))
