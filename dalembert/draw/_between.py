"""States between stored ones, for pictures: by the method's own polynomials, by cubic ones through positions and velocities, or
by straight lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import DalembertError

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory

MOST_STEPS = 4000
"""How many steps are solved again for one picture."""


def states_at(run: Trajectory, times: np.ndarray, *, dense: bool = True) -> np.ndarray:
    """The states of a run at any times within it, (times, size); those of stored times as they are.

    Between stored ones they follow the method's dense output where it has one and every step was stored; else positions of a
    mechanical system are Hermite's cubic polynomials, as they are where no `dense` output is wanted, which takes long. Runs
    with impacts, and those without their model, have straight lines.
    """
    known_t, known = _known_states(run)
    if len(known_t) == 1:
        return np.repeat(known[:1], len(times), axis=0)
    along = np.sign(run.h)  # so that time rises
    after = np.clip(np.searchsorted(along * known_t, along * times), 1, len(known_t) - 1)
    share = ((times - known_t[after - 1]) / (known_t[after] - known_t[after - 1]))[:, None]
    states = np.where(share == 1, known[after], (1 - share) * known[after - 1] + share * known[after])
    inner = np.flatnonzero(((share > 0) & (share < 1))[:, 0])
    if not len(inner) or run.impacts is not None or run.system is None:
        return states
    if dense and len(np.unique(after[inner])) <= MOST_STEPS:
        try:
            inside = run.at(times[inner])
        except DalembertError:  # no dense output
            pass
        else:
            states[inner] = np.hstack([inside.y, inside.z])
            return states
    if run.blocks[0][0] == "q":
        states[inner, : run.y.shape[1]] = _hermite(run, after[inner], share[inner])
    return states


def _hermite(run: Trajectory, after: np.ndarray, share: np.ndarray) -> np.ndarray:
    q, v = np.asarray(run.q), np.asarray(run.v)
    step = (run.t[after] - run.t[after - 1])[:, None]
    s, rest = share, 1 - share
    ends = rest**2 * (1 + 2 * s) * q[after - 1] + s**2 * (1 + 2 * rest) * q[after]
    return ends + step * s * rest * (rest * v[after - 1] - s * v[after])


def _known_states(run: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """The stored states and those at impacts, by time; of those at one time, the last."""
    t, states = run.t, np.asarray(run.states)
    if run.impacts is not None and len(run.impacts):
        t = np.concatenate([t, run.impacts.t])
        states = np.vstack([states, np.hstack([run.impacts.q, run.impacts.p_after])])
        order = np.argsort(t, kind="stable")
        t, states = t[order], states[order]
        keep = np.append(np.diff(t) > 0, True)
        t, states = t[keep], states[keep]
    return t, states
