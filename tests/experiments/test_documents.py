"""Every figure, table and numerical example of the documents has its experiment, or a reason why there is none."""

import re

import pytest

from dalembert import experiments
from dalembert.experiments.benchmarks.records import RECORDS

GIVEN = "coefficients, compared entry by entry in tests/tableaux"
DRAWING = "a drawing: nothing is computed"

DOCUMENTS = {
    "jay1996": {
        "table 2.1": GIVEN,
        "table 2.2": GIVEN,
        "nodes of the 11-stage Lobatto method, (2.7)": GIVEN,
        **{f"figure 5.{k}": f"jay1996.figure5.{k}" for k in range(1, 9)},
        "section 5, the unprojected Gauss method": "jay1996.gauss_diverges",
        "section 3 and corollary 4.4: symplectic, symmetric": "jay1996.structure",
        "(4.25), the stiff spring pendulum": "jay1996.stiff_spring",
        "beyond the paper: the heavy top": "jay1996.heavy_top",
    },
    "jay_simeon": {
        **{f"figure 4.{k}": f"jay_simeon.figure4.{k}" for k in range(1, 5)},
        "section 3.4, the limit of the natural method on (4.1)": "jay_simeon.limit4.1",
        "section 3.4, the limit of the natural method on (4.2)": "jay_simeon.limit4.2",
        "(3.8), the conjugate method": "jay_simeon.adjoint",
        "section 5, composition": "jay_simeon.composition",
    },
    "small_jay2011": {
        "example, simple pendulum, h = 0.05": "small_jay2011.pendulum",
        "example, simple pendulum, h = 0.01": "small_jay2011.pendulum",
        "example, skate by SPARK, h = 0.1": "small_jay2011.skate",
        "example, skate by EMPRK, h = 0.1": "small_jay2011.skate",
        "theorem on convergence": "small_jay2011.orders",
        "theorem on existence and uniqueness": "small_jay2011.existence",
        "drawings of the pendulum and the skate": DRAWING,
    },
    "pekarek2014": {
        "figure 1": "pekarek2014.figure1",
        "figure 2": "pekarek2014.figure2",
        "figure 3": "pekarek2014.figure3",
        "figure 4": "pekarek2014.figure4",
        "table I": "pekarek2014.table1",
        "table II": "pekarek2014.table2",
        "theorem 2, remainders of truncated modified Hamiltonians": "pekarek2014.truncations",
        "section 4.1, tolerance of collision times": "pekarek2014.collision_tolerance",
        "section 5, jagged errors of VCI": "pekarek2014.jaggedness",
        "section 5, energies over many impacts": "pekarek2014.many_impacts",
    },
    "hilden2009": {
        **{f"figure 1.{k}": DRAWING for k in range(1, 5)},
        **{f"figure 2.{k}": f"hilden2009.figure2.{k}" for k in range(1, 5)},
        "table 2.1": "hilden2009.table2.1",
        "algorithm 2.1": "the simplified Newton iteration, of which the engine has its own",
        **{f"figure 3.{k}": DRAWING for k in range(1, 4)},
        "figure 3.4": "hilden2009.figure3.4",
        **{f"figure 4.{k}": f"hilden2009.figure4.{k}" for k in range(1, 6)},
        "figure 4.6": DRAWING,
        "figure 4.7": "hilden2009.table4.1",
        "figure 4.8": "hilden2009.table4.1",
        "table 4.1": "hilden2009.table4.1",
        **{f"figure 4.{k}": f"hilden2009.figure4.{k}" for k in range(9, 20)},
        "(4.3), the order of the generalised method": "hilden2009.variable_mass",
        "the open question of chapters 4 and 5": "hilden2009.newton_tolerance",
        "figure 4.14, which orbits are chaotic": "hilden2009.lyapunov",
        "further work: Jay's long-time experiment": "hilden2009.particles",
        "further work: mixed constraints": "hilden2009.mixed_constraints",
    },
    "benchmarks": {record.item: f"benchmarks.{record.name}" for record in RECORDS},
}
"""By document: every figure and table in print, the claims that were put to the test beside them, and the experiments."""


def is_experiment(text):
    return re.fullmatch(r"[a-z_]+\d*\.[\w.]+", text) is not None


@pytest.mark.parametrize("document", DOCUMENTS)
def test_everything_in_print_is_done_again_or_excused(document):
    demanded = {text for text in DOCUMENTS[document].values() if is_experiment(text)}
    assert demanded <= set(experiments.documents()[document])
    assert set(experiments.documents()[document]) <= demanded, "an experiment that stands for nothing in its document"


def test_no_document_is_forgotten():
    assert set(DOCUMENTS) == set(experiments.documents())


@pytest.mark.parametrize(("document", "item", "name"), [
    (document, item, name) for document, items in DOCUMENTS.items() for item, name in items.items()
    if re.fullmatch(r"(figure|table) [\d.]+", item) and is_experiment(name)
])  # fmt: skip
def test_an_experiment_names_the_figure_or_table_that_it_is(document, item, name):
    number = item.split()[1]
    assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.]*\d)", experiments.find(name).item)
