"""The problems by which solvers are ranked: IFToMM's library of benchmarks and the test set for initial value problem solvers.

`records` is the table: one record a problem, with what is run and what others published: another problem is another record.
`_benchmark` says what is measured of it, `_peers` what it is measured beside, and `references` holds the digits that
errors are measured against, with the methods that they come from (`python benchmarks/references.py`).
"""

from dalembert.experiments.benchmarks import records
from dalembert.experiments.benchmarks._benchmark import BENCHMARKS

EXPERIMENTS = tuple(BENCHMARKS.experiments)
__all__ = ["EXPERIMENTS", "records"]
