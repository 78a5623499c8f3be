"""Figures of runs and of convergence studies, good enough for a paper, drawn without a display.

Every function returns a `matplotlib.figure.Figure`; `path=` writes it as .png, .pdf or .svg, and `ax=` draws into axes of
your own. Runs of any length are thinned in a way that keeps their extremes. Matplotlib is loaded when something is drawn.
"""

from dalembert.plot._overview import overview
from dalembert.plot._panels import configurations, convergence, energy_error, multipliers, phase_portrait, residuals
from dalembert.plot._style import save

__all__ = [
    "configurations",
    "convergence",
    "energy_error",
    "multipliers",
    "overview",
    "phase_portrait",
    "residuals",
    "save",
]
