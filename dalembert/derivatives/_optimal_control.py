"""Optimal control by discrete mechanics (DMOC): the step equations of a method are the constraints of an optimisation.

Ober-Bloebaum, Junge and Marsden (2011), ESAIM: COCV 17. States, the unknowns of all steps (stages and multipliers) and
controls, constant or linear in every step, are the variables; IPOPT solves for them. So constraints hold to round-off in the
solution, which is a run of the method: `da.simulate` with these controls gives the same states.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dalembert._interrupts import interruptible
from dalembert._progress import busy
from dalembert.derivatives._given import finite, truth
from dalembert.derivatives._transcription import OptimalRun, Transcription
from dalembert.errors import InputError
from dalembert.methods import OneStepMethod
from dalembert.runs._arguments import check_method
from dalembert.runs._drivers import check_differentiable, driver_of
from dalembert.runs._lengths import count, positive
from dalembert.runs._starts import initial_state
from dalembert.systems._model import one_line, shape_of


@dataclass(frozen=True, eq=False)
class OptimalControl:
    """Find controls that take a system from its start to given conditions at the end, at the least cost.

    `controls` names parameters of the model, which become constant in every step, or with `linear=True` linear between values
    at its ends. `cost` is a function of t, q, p, v and parameters, controls included, whose values at the beginnings of all
    steps (or by the trapezoidal rule, if controls are linear) are summed and multiplied by h; `final_cost` is one of the final
    state. What `final` returns vanishes at the end, as in final=lambda q, v: [q[0] - 1, *v]; in a system with constraints these
    conditions must not follow from them. What `path` returns stays >= 0 in all states. `bounds` maps names of controls to
    (lower, upper). The final time is `steps` times h, or sought between two bounds, as in t1=(0.5, 3.0), and minimised if there
    is no cost.

    Example:
        >>> import numpy as np, dalembert as da
        >>> cart = da.Lagrangian(lambda v, m: m * v @ v / 2, dim=1, force=lambda u: [u], params={"m": 1.0, "u": 0.0})
        >>> task = da.OptimalControl(cart, da.Gauss(1), controls="u", cost=lambda u: u**2, final=lambda q, v: [q[0] - 1, v[0]],
        ...                          steps=50, h=0.02)
        >>> best = task.solve(q0=[0.0], v0=[0.0])
        >>> bool(abs(best.run.q[-1, 0] - 1) < 1e-10), bool(abs(best.cost - 12) < 0.01)  # u = 6 - 12 t costs 12
        (True, True)

    """

    system: Any
    method: OneStepMethod
    controls: str | Sequence[str]
    cost: Callable | None = None
    final_cost: Callable | None = None
    final: Callable | None = None
    path: Callable | None = None
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    steps: int = 100
    h: float | None = None
    t1: tuple[float, float] | None = None
    params: Mapping[str, Any] | None = None
    linear: bool = False

    def __post_init__(self) -> None:
        if (self.h is None) == (self.t1 is None):
            raise InputError("give the step size h, or bounds of a final time that is sought, t1=(lower, upper)")
        if self.cost is None and self.final_cost is None and self.t1 is None:
            raise InputError(
                "give a cost, a final_cost, or a final time that is sought, t1=(lower, upper), which is minimised then"
            )
        if self.t1 is not None and (shape_of(self.t1) != (2,) or not 0 < finite("t1", self.t1)[0] <= self.t1[1]):
            raise InputError(f"t1 are two positive times, (lower, upper); got {one_line(self.t1)}")
        count("steps", self.steps, least=1)
        truth("linear", self.linear)
        if self.h is not None:
            positive("h", self.h)

    @interruptible()
    def solve(
        self, *, guess: Mapping[str, Any] | None = None, tolerance: float = 1e-9, max_iterations: int = 1000,
        verbose: bool = False, **start: Any,
    ) -> OptimalRun:  # fmt: skip
        """Solve from given initial values, q0 with v0 or p0, or start=.

        `guess` maps "q" to a final configuration, or to one row for each of the steps + 1 states, and names of controls to
        values; without it the system is guessed to stay at its start.
        """
        positive("tolerance", tolerance)
        count("max_iterations", max_iterations, least=1)
        truth("verbose", verbose)
        if guess is not None and not isinstance(guess, Mapping):
            raise InputError(f'guess maps names to values, as in guess={{"q": [1.0]}}; got {one_line(guess)}')
        system, state = initial_state(self.system, params=self.params, **start)
        check_method(self.method, system, "OptimalControl")
        check_differentiable(self.method, "optimal control")
        if driver_of(self.method).has_impacts or self.method.starting is not None:
            raise InputError(f"{self.method} is not a map of (q, p) without impacts: take another method for optimal control")
        with contextlib.nullcontext() if verbose else busy("looking for an optimal control"):
            program = Transcription(self, system, state)
            return program.solve(dict(guess or {}), tolerance, max_iterations, verbose)
