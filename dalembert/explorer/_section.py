"""A Poincare section that grows: each request continues the run where the last one ended."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from dalembert.errors import InputError
from dalembert.explorer._subject import Posed
from dalembert.methods import OneStepMethod
from dalembert.runs._poincare import poincare
from dalembert.runs._simulate import simulate
from dalembert.systems import State
from dalembert.systems._consistent import unpack

LEAST_STEPS, MOST_STEPS, SECONDS = 200, 20_000, 0.12
"""How much time of the processor one answer takes, about: half of it prepares the search for crossings."""


class Section:
    """The crossings of one run with a surface on which a variable has a value, upwards."""

    def __init__(self, posed: Posed, method: OneStepMethod, h: float) -> None:
        self._posed, self._method, self._h = posed, method, h
        self._state: State | None = posed.state
        self._surface: tuple[int, float] | None = None
        self._steps = 200

    def more(self, by: int, level: float, x: int, y: int) -> dict[str, Any]:
        """More crossings, as points of the variables x and y."""
        system = self._posed.system
        size = system.n_state
        if not all(0 <= i < size for i in (by, x, y)):
            raise InputError(f"the variables of this model are counted from 0 to {size - 1}; got {by}, {x} and {y}")
        if self._surface != (by, level):
            self._surface, self._state, self._steps = (by, level), self._posed.state, 200
        if self._state is None:
            return {"points": [], "t": None, "ended": True}
        began = time.thread_time()
        how: dict[str, Any] = {"start": self._state, "h": self._h, "steps": self._steps, "progress": False}
        found = poincare(system, self._method, section=self._function(by, level), workers=1, **how)
        run = simulate(system, self._method, save_every=self._steps, on_failure="return", **how)
        last, guess, theta = np.array(run.states[-1]), self._state.multipliers, self._state.theta
        end, ended = float(run.t[-1]), run.status != "done"
        self._state = None if ended else unpack(system, end, last, theta, guess)
        taken = time.thread_time() - began
        self._steps = int(np.clip(self._steps * np.clip(SECONDS / max(taken, 1e-6), 0.25, 4), LEAST_STEPS, MOST_STEPS))
        return {"points": found.states[:, [x, y]].tolist(), "t": end, "ended": ended}

    def _function(self, by: int, level: float) -> Any:
        (first, size), (second, _) = self._posed.system.state_blocks
        letter, index = (first, by) if by < size else (second, by - size)
        functions = {"q": lambda q: q[index] - level, "p": lambda p: p[index] - level,
                     "y": lambda y: y[index] - level, "z": lambda z: z[index] - level}  # fmt: skip
        return functions[letter]
