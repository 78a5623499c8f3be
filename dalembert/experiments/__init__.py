"""The literature's experiments, done again: what was claimed, what is computed here, and whether it holds.

    from dalembert import experiments

    result = experiments.run("jay1996.figure5.6", out="out")
    print(result)

An `Experiment` names its document and figure, states the claim in one sentence, and brings three functions: `compute`,
`draw` and `holds`, the last of which turns the data into numbers with bounds. `register` adds one.
"""

from dalembert.experiments import hilden2009, jay1996, jay_simeon, pekarek2014, small_jay2011
from dalembert.experiments._experiment import Check, Experiment, Result
from dalembert.experiments._registry import find, names, register, run

for _document in (jay1996, jay_simeon, small_jay2011, pekarek2014, hilden2009):
    for _experiment in _document.EXPERIMENTS:
        register(_experiment)

__all__ = ["Check", "Experiment", "Result", "find", "names", "register", "run"]
