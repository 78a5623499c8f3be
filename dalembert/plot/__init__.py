"""Figures of runs and of convergence studies, good enough for a paper, drawn without a display.

Every function returns a `matplotlib.figure.Figure`; `path=` writes it as .png, .pdf or .svg, and `ax=` draws into axes of
your own. Runs of any length are thinned in a way that keeps their extremes. Matplotlib is loaded when something is drawn.
"""

from dalembert._calls import check_calls as _check_calls
from dalembert.draw._style import save
from dalembert.plot._against_time import energy_error, impacts, multipliers, residuals, solution
from dalembert.plot._convergence import convergence, work_precision
from dalembert.plot._mechanism import configurations, portrait
from dalembert.plot._overview import overview
from dalembert.plot._phase import phase_portrait, poincare

__all__ = [
    "configurations",
    "convergence",
    "energy_error",
    "impacts",
    "multipliers",
    "overview",
    "phase_portrait",
    "poincare",
    "portrait",
    "residuals",
    "save",
    "solution",
    "work_precision",
]

_check_calls(globals())
