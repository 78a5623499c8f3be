"""Tolerances that no step size can meet: what chaos, rounding and singularities forbid, each in a sentence."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dalembert.errors import ToleranceError
from dalembert.runs._path import Path, Task
from dalembert.runs._pilot import Growth, Pilot
from dalembert.systems._consistent import unpack
from dalembert.systems._projection import project_momentum, project_position

ROUND_OFF = 2e-16
CHAOS = math.log(1e4)
"""The logarithm of an amplification of errors that regular motion does not have."""
CHANGE = 1e-12
"""Of the state, to see how changes grow."""
FEWEST = 32
"""Steps from which growth can be told."""
FARTHER, SHORTEST, FEWER = 1.02, 300.0, 4.0
"""Steps that do not come so many times farther show that there is no way past a time, if they are so many times shorter; the
last if no shorter ones can be tried."""


class NoWayPastError(ToleranceError):
    """Smaller and smaller steps do not lead past some time."""


def refuse_chaos(task: Task, flown: Pilot, grown: Growth) -> None:
    """Refuse tolerances that round-off exceeds before the end, growing as errors do; powers of t are not taken for that.

    Errors of steps that are too large grow without chaos, too. So small changes of the start must grow as fast, in both runs.
    """
    reached = float(flown.t[-1])
    if grown.kind == "power" or len(flown.t) - 1 < FEWEST:
        return
    rate = exponent(flown.worst(task)) / reached
    wanted = float(np.max(task.tolerances(flown.extent) / task.sizes(flown.extent)))
    if rate * reached < CHAOS or math.log(wanted / ROUND_OFF) > rate * task.length:
        return
    rate = min(rate, *(exponent(changes(task, flown, parts)) / reached for parts in (1, 2)))
    if rate * reached < CHAOS or (horizon := math.log(wanted / ROUND_OFF) / rate) > task.length:
        return
    raise ToleranceError(
        f"the motion is chaotic: errors, also those of rounding, grow by a factor e every {1 / rate:.2g}, and no step size "
        f"keeps them below {wanted:g} of the positions after about t = {task.at(horizon):.3g}: ask for t1 up to that, or for a "
        "larger rtol"
    )


def exponent(values: np.ndarray) -> float:
    """The logarithm of how much values grow that grow exponentially, from their halves; less if they grow in bursts."""
    n = len(values) - 1
    quarter, half, end = (math.log(max(float(values[n // part]), 1e-300)) for part in (4, 2, 1))
    return min(2 * (end - half), 4 * (half - quarter))


def refuse_rounding(task: Task, flown: Pilot) -> None:
    """Refuse tolerances that are less than what errors of rounding grow to, measured by a start that is changed a little.

    That is done where the error of the pilot grew so much more than linearly that they might.
    """
    worst, wanted = flown.worst(task), float(np.max(task.tolerances(flown.extent) / task.sizes(flown.extent)))
    early = max(1, (len(worst) - 1) // 16)
    excess = worst[-1] / max(worst[early], 1e-300) * early / (len(worst) - 1)
    if excess * ROUND_OFF < 0.03 * wanted:
        return
    grown = amplification(task, flown)
    reached = grown * 2 * ROUND_OFF
    if reached > wanted:
        raise ToleranceError(
            f"a change of the start grows {grown:.1e} times along this motion, so that errors of rounding come to about "
            f"{reached:.0e} of the positions, whatever h is: ask for a larger rtol or an earlier t1"
        )


def amplification(task: Task, flown: Pilot) -> float:
    """How many times larger a small change of the start becomes along a pilot, relative to the size of positions."""
    return max(float(changes(task, flown)[-1]) / CHANGE, 1.0)


def changes(task: Task, flown: Pilot, parts: int = 1) -> np.ndarray:
    """How large a small change of the start becomes along a pilot's run of h / parts, relative to the positions, (time,).

    Every variable is changed relative to its own size along the pilot, so that units do not matter, and on the constraints.
    """
    system, start = task.system, task.start
    changed = start.packed + CHANGE * flown.largest * np.where(np.arange(system.n_state) % 2, -1, 1)
    y, z = np.split(changed, [len(start.first)])
    y = project_position(system, start.t, y, z, start.theta) if system.n_holonomic else y
    z = project_momentum(system, start.t, y, z, start.theta) if system.n_multipliers else z
    other = replace(task, start=unpack(system, start.t, np.concatenate([y, z]), start.theta, start.multipliers))
    steps = (len(flown.t) - 1) * flown.every
    q = np.concatenate(list(Path(other, flown.method, flown.h / parts, parts * steps, parts * flown.every)))
    unchanged = flown.coarse if parts == 1 else flown.fine
    return np.maximum.accumulate(np.max(np.abs(q - unchanged[: len(q)]) / task.sizes(flown.extent), axis=1))


def refuse_singular(task: Task, flown: Pilot, tried: list[tuple[float, float]], times: float = SHORTEST) -> None:
    """Refuse motions that smaller and smaller steps do not continue, or whose errors do not fall, behind some time.

    `tried` are the step sizes of pilots and the times that they came to. An encounter needs steps as short as it is, so that
    there is no way past a time only if steps that are `times` shorter come no farther.
    """
    end = tried[-1][1]
    stuck = [h for h, reached in tried if reached >= end / FARTHER]
    if len(stuck) < 3 or max(stuck) < times * flown.h:
        return
    where = task.at(end)
    why = f"steps fail there ({flown.reason})" if flown.reason else "errors do not fall with h behind it"
    raise NoWayPastError(
        f"the step sizes that were tried, down to h = {flown.h:.1g}, do not lead past t = {where:.6g}: {why}; the motion comes "
        "close to a singularity there, has one, or is not smooth. If bodies pass close to each other, take da.ReversibleSteps, "
        "and if it is stiff, da.ControlledSteps(da.RadauIIA(3)), both without rtol=; else ask for an earlier t1, or give a "
        "method and h=, whose steps may pass over it"
    )
