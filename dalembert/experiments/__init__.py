"""The literature's experiments, done again: what was claimed, what is computed here, and whether it holds.

    from dalembert import experiments

    result = experiments.run("jay1996.figure5.6", out="out")
    print(result)

An `Experiment` names its document and figure, states the claim in one sentence, and brings three functions: `compute`,
`draw` and `holds`, the last of which turns the data into numbers with bounds. `register` adds one. Each package here is a
document, which states its claims above the functions that judge them (`_experiment.Document.claim`) and registers those in
its `EXPERIMENTS`: a new package is all that a new document needs. Figures are drawn with `_figures`, errors measured with
`_measures`.
`dalembert.reproduction` runs many of them and writes the report.
"""

import importlib
import pkgutil

from dalembert.experiments._experiment import Check, Experiment, Result
from dalembert.experiments._registry import documents, find, names, register, run

for _module in pkgutil.iter_modules(__path__):
    if _module.ispkg:
        for _experiment in importlib.import_module(f"{__name__}.{_module.name}").EXPERIMENTS:
            register(_experiment)

__all__ = ["Check", "Experiment", "Result", "documents", "find", "names", "register", "run"]
