"""The lengths of steps that end on a surface, for many steps at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from dalembert.engine._spec import RunSpec
from dalembert.runs._drivers import run_ensemble
from dalembert.systems._states import States

MOST_ITERATIONS = 200
MOST_FAILURES = 12
"""How many lengths are tried for which a step fails, or the section function is not a number."""

SAME = 1e-6
"""How well a step must be reproduced, and how small a gap of the section function is not a jump, relative to its change."""

ARRIVED = 1e-9
WIDTH = 64
"""How many units of round-off wide a bracket may be in which a section function jumps."""

ROUND_OFF = 1e3 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Surface:
    """A section function of (t, y, z, theta), and how far round-off in its arguments blurs it."""

    value: ca.Function
    blur: ca.Function

    @staticmethod
    def of(section: ca.Function) -> Surface:
        """sum_i |d section / d x_i| |x_i| over all arguments, to be multiplied by the unit of round-off."""
        arguments = [ca.SX.sym(f"x{k}", section.size1_in(k)) for k in range(section.n_in())]
        x = ca.vertcat(*arguments)
        slope = ca.jacobian(section(*arguments), x).T
        return Surface(section, ca.Function("blur", arguments, [ca.sum1(ca.densify(ca.fabs(slope) * ca.fabs(x)))]))

    def at(self, t: np.ndarray, states: np.ndarray, theta: np.ndarray, dim_y: int) -> tuple[np.ndarray, np.ndarray]:
        """The values at states, one a row, and their round-off."""
        y, z = np.split(states, [dim_y], axis=1)
        arguments = (t[None], y.T, z.T, theta.T)
        value, blur = (np.asarray(f.map(len(t))(*arguments), dtype=float).ravel() for f in (self.value, self.blur))
        return value, ROUND_OFF * np.nan_to_num(blur, nan=0.0, posinf=0.0)


class Search:
    """A secant iteration for the length tau inside of the bracket [0, h], for the steps from all states before a crossing.

    `step` is a run of one step from each of them, `sizes` are those of the steps, and `values` those of the section function at
    their ends. The search ends where they do not become smaller any more. Where a secant does not help, as at the kinks of
    steps with impacts, bisections do. Afterwards `tau` is nan where there is no crossing, and `why` says so unless the section
    function jumped across zero.
    """

    def __init__(self, step: RunSpec, sizes: np.ndarray, surface: Surface, workers: int | None) -> None:
        assert isinstance(step.start, States)
        self.step, self.before, self.h, self.surface, self.workers = step, step.start, sizes, surface, workers
        self.ends = self.before.packed.copy()
        self.tau = np.full(len(self.before), np.nan)
        self.why = np.full(len(self.before), "", dtype=object)

    def _steps(self, which: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Steps of lengths tau: their ends, and the section function there with its round-off; nan where a step failed."""
        before, system = self.before.take(which), self.step.system
        run = run_ensemble(replace(self.step, start=before), sizes=tau, workers=self.workers)
        ends = run.last[:, : system.n_state]
        value, blur = self.surface.at(before.t + tau, ends, before.theta, system.state_blocks[0][1])
        self.why[which[~np.isfinite(value)]] = "the section function is not a finite number within it"
        for k in np.flatnonzero(run.steps_done < 1):
            self.why[which[k]] = f"a shorter step failed: {run.failures.get(int(k), 'the search was interrupted')}"
        return ends, np.where((run.steps_done < 1) | ~np.isfinite(value), np.nan, value), blur

    def reproduced(self, values: np.ndarray) -> np.ndarray:
        """Which steps, made again from the states before them, end where the run ended them."""
        ends, value, blur = self._steps(np.arange(len(self.before)), self.h)
        same = np.abs(value - values[:, 1]) <= SAME * np.abs(values[:, 1] - values[:, 0]) + blur
        self.why[~same & np.isfinite(value)] = "the same step, made again, ended somewhere else"
        exact = same & (values[:, 1] == 0)
        self.ends[exact], self.tau[exact] = ends[exact], self.h[exact]
        return np.flatnonzero(same & ~exact)

    def run(self, values: np.ndarray, kinks: bool) -> None:
        """Look for all crossings; with `kinks`, every third iteration is a bisection from the beginning."""
        count, h = len(self.before), self.h
        low, high, change = np.zeros(count), h.copy(), np.abs(values[:, 1] - values[:, 0])
        at_low, at_high = values.T.copy()
        best, least, bound = np.full(count, np.nan), np.full(count, np.inf), np.zeros(count)
        last, at_last = low.copy(), at_low.copy()
        with np.errstate(all="ignore"):
            guess = high - at_high * (high - low) / (at_high - at_low)
        guess = np.where((guess > low) & (guess < high), guess, h / 2)
        stalled, failures = np.zeros((2, count), dtype=int)
        unfinished = self.reproduced(values)
        for iteration in range(MOST_ITERATIONS):
            if not len(unfinished):
                break
            active, tau = unfinished, guess[unfinished]
            ends, value, blur = self._steps(active, tau)
            known = np.isfinite(value)
            better = known & (np.abs(value) < least[active])
            stalled[active] = np.where(better, 0, stalled[active] + 1)
            failures[active] += ~known
            chosen = active[better]
            best[chosen], least[chosen], self.ends[chosen] = tau[better], np.abs(value[better]), ends[better]
            bound[chosen] = ARRIVED * change[chosen] + blur[better]
            before = known & (np.sign(value) == np.sign(at_low[active]))
            low[active[before]], at_low[active[before]] = tau[before], value[before]
            after = known & ~before
            high[active[after]], at_high[active[after]] = tau[after], value[after]
            with np.errstate(all="ignore"):
                secant = tau - value * (tau - last[active]) / (value - at_last[active])
            last[active[known]], at_last[active[known]] = tau[known], value[known]
            bisect = iteration % 3 == 2 and (kinks or iteration > 10)
            inside = (secant > low[active]) & (secant < high[active]) & (not bisect)
            fraction = (0.5 + failures[active] * (np.sqrt(5) - 1) / 2) % 1  # not again where it was not a number
            guess[active] = np.where(inside, secant, low[active] + fraction * (high[active] - low[active]))
            arrived = least[active] <= bound[active]
            patience = 2 if iteration < 10 else 6  # bisections do not help everywhere
            done = (least[active] == 0) | (stalled[active] >= patience) & arrived | (failures[active] >= MOST_FAILURES)
            done |= high[active] - low[active] <= np.where(arrived, 1, WIDTH) * np.finfo(float).eps * h[active]
            unfinished = active[~done]
        found = least <= bound
        self.tau[found] = best[found]
        jumped = (high - low <= WIDTH * np.finfo(float).eps * h) & (np.abs(at_high - at_low) > SAME * change)
        self.why[found | jumped | np.isfinite(self.tau)] = ""
        self.why[unfinished[~found[unfinished]]] = "no length of it was found that ends on the section"
