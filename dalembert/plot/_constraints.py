"""Constraints along a run: how well they hold, and the multipliers of their forces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dalembert.draw._style import BLUE, CYCLE, VERMILION, panel
from dalembert.errors import InputError
from dalembert.plot._panels import EPSILON, LEAST_RESIDUAL, PathLike, curve_names, history, of_index_two
from dalembert.plot._thin import envelope

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dalembert.runs._trajectory import Trajectory


def residuals(run: Trajectory, *, ax: Axes | None = None, path: PathLike | None = None) -> Figure:
    """How far a run is from its constraints: the largest |g| and |g_dot| against time, on a logarithmic axis.

    Long runs show the largest residual in each of 100 stretches. The dashed line is the machine precision.

    Example:
        >>> import dalembert as da
        >>> from dalembert import plot
        >>> run = da.simulate(da.problems.pendulum(), da.Rattle(), steps=500)
        >>> plot.residuals(run).axes[0].get_yscale()
        'log'

    """
    with panel(ax, path, (5.0, 2.4)) as (figure, axes):
        top = 1e-14
        drawn = [(name, value) for name, value in run.residuals.items() if value.shape[1]]
        for (name, value), color in zip(drawn, (BLUE, VERMILION, *CYCLE[2:]), strict=False):
            t, _, largest = envelope(run.t, np.max(np.abs(value), axis=1), bins=100)
            axes.plot(t, np.maximum(largest, LEAST_RESIDUAL), color=color, label=RESIDUAL_NAMES.get(name, f"$|{name}|$"))
            top = max(top, 3 * float(np.nanmax(largest)))
        if drawn:
            axes.axhline(EPSILON, color="#707070", linewidth=0.8, linestyle=(0, (4, 3)))
            axes.set(yscale="log", ylim=(LEAST_RESIDUAL, top), ylabel="residual", xlabel="$t$")
            axes.minorticks_off()
            axes.legend(loc="lower right", ncols=2, bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
            axes.grid(True)
        else:
            axes.text(0.5, 0.5, "no constraints", ha="center", va="center", transform=axes.transAxes)
            axes.set_axis_off()
    return figure


RESIDUAL_NAMES = {"g": "$|g|$", "g_dot": r"$|\dot g|$"}


def multipliers(
    run: Trajectory,
    which: Sequence[int] | None = None,
    *,
    window: tuple[float, float] | None = None,
    ax: Axes | None = None,
    path: PathLike | None = None,
) -> Figure:
    """The multipliers lam and psi of the constraints against time; for a DAE of index 2, its algebraic variables z.

    `which` are indices, those of psi after those of lam, at most seven. `window` is the stretch of time to show; without it,
    all of the run.

    Example:
        >>> import dalembert as da
        >>> from dalembert import plot
        >>> run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), steps=500)
        >>> len(plot.multipliers(run, window=(0, 20)).axes[0].lines)
        2

    """
    values = np.hstack([run.lam, run.psi])
    letters = ((r"\lambda", run.lam.shape[1]), ("z" if of_index_two(run) else r"\psi", run.psi.shape[1]))
    names = [f"${letter}_{{{i + 1}}}$" for letter, count in letters for i in range(count)]
    chosen = list(range(min(len(names), len(CYCLE)))) if which is None else list(which)
    if not names:
        raise InputError("this system has no constraints, so there are no multipliers to draw")
    if len(chosen) > len(CYCLE) or any(not 0 <= i < len(names) for i in chosen):
        raise InputError(f"choose at most {len(CYCLE)} multipliers out of 0 to {len(names) - 1}; got which={chosen}")
    first, last = (run.t[0], run.t[-1]) if window is None else window
    inside = (run.t >= first) & (run.t <= last)
    if not inside.any():
        raise InputError(f"the run has no state between t = {first:g} and {last:g}")
    with panel(ax, path, (5.0, 2.4)) as (figure, axes):
        for i, color in zip(chosen, CYCLE, strict=False):
            history(axes, run.t[inside], values[inside, i], color=color, label=names[i])
        axes.set(xlabel="$t$", ylabel="algebraic variable" if of_index_two(run) else "multiplier")
        curve_names(axes)
        axes.grid(True)
    return figure
