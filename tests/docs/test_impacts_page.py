"""The measured tables of docs/impacts.md, measured again."""

import numpy as np
import pytest
from test_documentation import DOCS, table

from dalembert import experiments

PAGE = DOCS / "impacts.md"


def test_ranges_of_the_three_energies():
    data = experiments.find("pekarek2014.figure3").compute(False)
    names = ("MCVAA", "MCVAC", "MCVA_even")
    for name, (_, *printed) in zip(names, table(PAGE, "**Figure 3.**"), strict=True):
        measured = [np.ptp(data[f"{name}_{kind}"][~np.isnan(data[f"{name}_{kind}"])]) for kind in ("H", "discrete", "modified")]
        assert np.array(printed, dtype=float) == pytest.approx(measured, rel=0.05)


def test_errors_over_the_starts_and_how_jagged_they_are():
    data = experiments.find("pekarek2014.figure4").compute(False)
    names = ("CVA", "VCI", "MCVAC", "MCVAA", "CVA_SVA")
    for name, (_, coarse, fine, variations) in zip(names, table(PAGE, "**Figure 4.**"), strict=True):
        for printed, variation, h in zip((coarse, fine), variations.split(", "), (0.032, 0.01), strict=True):
            errors = data[f"{name}_{h}"]
            assert float(printed) == pytest.approx(np.median(errors), rel=0.02)
            assert float(variation) == pytest.approx(np.sum(np.abs(np.diff(np.log10(errors)))), abs=0.01)
