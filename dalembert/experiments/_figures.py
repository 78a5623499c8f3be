"""How figures of experiments are drawn: panels in one style, logarithmic axes, lines of promised slopes, legends.

Matplotlib is loaded when a figure is drawn, and not before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.draw._style import BLACK, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any

DASHED, DOTTED = (0, (4, 3)), (0, (1, 2))
GREY = "#707070"
DASHES: dict[str, Any] = {"linewidth": 0.8, "linestyle": DASHED}
"""Options of a line that marks a value."""


def panels(
    width: float, height: float, rows: int = 1, columns: int = 1, **layout: Any
) -> Callable[[Callable[..., None]], Callable[..., Figure]]:
    """Decorate `draw(data, axes)`, which fills panels, so that `draw(data)` returns the figure.

    `axes` are one set of axes, or an array of them by row and column, as from matplotlib's `Figure.subplots`.
    """

    def decorate(draw: Callable[..., None]) -> Callable[..., Figure]:
        @functools.wraps(draw)
        def drawn(data: Any, *arguments: Any, **options: Any) -> Figure:
            with styled():
                figure = new_figure(width, height)
                draw(data, figure.subplots(rows, columns, **layout), *arguments, **options)
            return figure

        return drawn

    return decorate


def log_log(ax: Axes, title: str = "", xlabel: str = "$h$", ylabel: str = "") -> None:
    """Logarithmic axes with a grid at the decades: errors against step sizes."""
    ax.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
    ax.set_title(title, loc="left")
    ax.minorticks_off()
    ax.grid(True)


def over_time(ax: Axes, title: str = "", xlabel: str = "$t$", ylabel: str = "", pad: float | None = None) -> None:
    """Axes for series against time."""
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_title(title, loc="left", pad=pad)
    ax.grid(True)


def zero_line(ax: Axes, linewidth: float = 0.8) -> None:
    """A dashed line at zero."""
    ax.axhline(0.0, color=BLACK, linewidth=linewidth, linestyle=DASHED)


def slope_line(
    ax: Axes, h: np.ndarray, error: np.ndarray, order: float, color: str, below: float = 0.5, at: int = 0
) -> np.ndarray:
    """A dashed line of a promised slope, below the errors by a factor at one of the step sizes; its values are returned."""
    line = below * error[at] * (h / h[at]) ** order
    ax.plot(h, line, color=color, linewidth=0.7, linestyle=DASHED)
    return np.asarray(line)


def legend_below(ax: Axes, columns: int, loc: str = "outside lower center", **options: Any) -> None:
    """The legend of one panel, for all panels, outside of them."""
    figure: Any = ax.figure
    figure.legend(*ax.get_legend_handles_labels(), loc=loc, ncols=columns, **options)


def sizes_as_ticks(ax: Axes, h: np.ndarray) -> None:
    """The step sizes themselves as ticks."""
    ax.minorticks_off()
    ax.set_xticks(h, [f"{size:g}" for size in h])
