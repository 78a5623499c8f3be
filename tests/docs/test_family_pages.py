"""The measured tables of the pages on Runge-Kutta, half-explicit and variational methods and compositions, measured again."""

from functools import cache

import pytest
from test_documentation import DOCS, table

import dalembert as da

PAGES = ("runge-kutta", "half-explicit", "compositions", "variational")
ROWS = [(page, row) for page in PAGES for row in table(DOCS / f"{page}.md", "Slopes of the errors")]
H = 0.12


@cache
def middle_of_the_motion():
    problem = da.problems.double_pendulum()
    run = da.simulate(problem, da.LobattoIIIAB(stages=4), h=0.05, steps=40)
    return problem, da.consistent(problem.system, q0=run.q[-1], p0=run.p[-1])


def measured(method, counts):
    """Slopes of q, p and lam, and the two defects of a step."""
    problem, start = middle_of_the_motion()
    study = da.verify.order(problem, method, t1=5.0, steps=counts, reference=(da.LobattoIIIAB(stages=8), 200))
    slopes = [study.slopes[name] for name in ("q", "p", "lam")]
    return slopes, [
        da.verify.symplecticity_defect(problem.system, method, h=H, start=start),
        da.verify.reversibility_defect(problem.system, method, h=H, start=start),
    ]


@pytest.mark.parametrize(("page", "row"), ROWS, ids=lambda value: value if isinstance(value, str) else value[0])
def test_orders_and_defects_on_the_page_are_what_is_measured(page, row):
    name, promised, counts, *printed = row
    method = eval(name.strip("`"), {"da": da})
    slopes, defects = measured(method, [int(n) for n in counts.split(",")])
    for component, slope, shown, order in zip(("q", "p", "lam"), slopes, printed, promised.split(","), strict=False):
        if shown != "-":
            assert slope == pytest.approx(float(shown), abs=0.03), component
            assert method.order[component] == int(order) and slope > int(order) - 0.2
    for value, shown in zip(defects, printed[3:], strict=True):
        if shown.startswith("<"):
            assert value < float(shown.removeprefix("<"))
        else:
            assert value == pytest.approx(float(shown), rel=0.1)
