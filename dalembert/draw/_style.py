"""The look of all figures, and how they are written."""

from __future__ import annotations

import contextlib
import functools
import io
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalembert.errors import DalembertError, InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
)  # fmt: skip
"""The palette of Okabe and Ito, told apart with every kind of colour vision."""

CYCLE = (BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SUFFIXES = (".png", ".pdf", ".svg")

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.formatter.use_mathtext": True,
    "axes.formatter.limits": (-3, 5),
    "axes.axisbelow": True,
    "axes.xmargin": 0.02,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.0,
    "mathtext.fontset": "dejavusans",
    "legend.handlelength": 1.4,
    "legend.columnspacing": 1.2,
    "figure.dpi": 150,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "dalembert",
}


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that belongs to nobody else: no window, no global list of figures; notebooks show it."""
    return _figure_class()(figsize=(width, height), layout="constrained")


@functools.cache
def _figure_class() -> type[Figure]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class DetachedFigure(Figure):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            FigureCanvasAgg(self)

        def _repr_png_(self) -> bytes:
            return render(self, "png")

    return DetachedFigure


def render(figure: Figure, kind: str, dpi: float = 200) -> bytes:
    """The contents of a figure's file; the same figure gives the same bytes."""
    undated: dict[str, dict[str, Any]] = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    content = io.BytesIO()
    with styled():
        figure.savefig(content, format=kind, dpi=dpi, metadata=undated[kind])
    return content.getvalue()


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """The look of all figures, for as long as one is being made."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        yield


@contextlib.contextmanager
def panel(
    ax: Axes | None, path: str | os.PathLike[str] | None, size: tuple[float, float], projection: str | None = None
) -> Iterator[tuple[Figure, Axes]]:
    """Axes to draw one panel in: those given, or those of a new figure, which is written to `path` in the end."""
    if path is not None:
        check_suffix(path)
    with styled():
        if ax is None:
            figure = new_figure(*size)
            ax = figure.add_subplot(projection=projection)
        else:
            figure = ax.figure  # type: ignore[assignment]
        yield figure, ax
        if path is not None:
            save(figure, path)


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Refuse, before anything is computed, a file that could not be written."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError(f"a figure is written as {', '.join(SUFFIXES)}, by the end of its name; got {os.fspath(path)!r}")


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path beside `target` to write to, which replaces it in the end: no reader ever sees half of a file."""
    part = target.with_name(f".{target.stem}.{os.getpid()}.part{target.suffix}")
    try:
        yield part
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def save(figure: Figure, path: str | os.PathLike[str], *, dpi: float = 200) -> Path:
    """Write a figure as .png, .pdf or .svg, by the end of its name; the file appears complete or not at all.

    `dpi` is the resolution of a .png, and of clouds of points in the others.

    Example:
        >>> import dalembert as da
        >>> from dalembert import plot
        >>> figure = da.simulate(da.problems.pendulum(), da.Rattle(), steps=50).plot()
        >>> plot.save(figure, "run.gif")
        Traceback (most recent call last):
        dalembert.errors.InputError: a figure is written as .png, .pdf, .svg, by the end of its name; got 'run.gif'

    """
    check_suffix(path)
    target = Path(path)
    content = render(figure, target.suffix.lower()[1:], dpi)
    try:
        with replacing(target) as part:
            part.write_bytes(content)
    except OSError as error:
        raise DalembertError(f"the figure could not be written to {target} ({error.strerror}): choose another path") from error
    return target


# -- words in figures --------------------------------------------------------------------------------------------------


def number(value: float) -> str:
    """A number with two digits, as print sets it.

    Example:
        >>> number(-2.34e-7), number(0.0), number(0.25)
        ('$-2.3\\\\times 10^{-7}$', '$0$', '$0.25$')

    """
    if value == 0 or not math.isfinite(value):
        return f"${value:g}$" if value == 0 else str(value)
    if 1e-2 <= abs(value) < 1e4:
        return f"${value:.3g}$"
    mantissa, exponent = f"{value:.1e}".split("e")
    return rf"${mantissa}\times 10^{{{int(exponent)}}}$"


def symbol(label: str) -> str:
    """The mathematical form of a coordinate's name: x1 with its index below.

    Example:
        >>> symbol("x1"), symbol("theta"), symbol("z")
        ('x_{1}', '\\\\theta', 'z')

    """
    stem = label.rstrip("0123456789")
    index = label[len(stem) :]
    stem = stem.rstrip("_")
    letters = f"\\{stem}" if stem in GREEK else (stem if len(stem) == 1 else rf"\mathrm{{{stem}}}")
    return f"{letters}_{{{index}}}" if index else letters


GREEK = frozenset({
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu", "nu", "xi", "pi", "rho",
    "sigma", "tau", "phi", "chi", "psi", "omega",
})  # fmt: skip
