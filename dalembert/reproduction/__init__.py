"""Many experiments at once, and one page about them.

    from dalembert import reproduction

    report = reproduction.reproduce(["jay1996.figure5.6"], out="out/report")
    print(report.path, report.all_hold)

Experiments run in processes of their own, so that one that fails or is killed stops no other. Each result is kept in a file as
soon as it is there, and taken from it the next time unless the software or the experiment has changed. `dalembert reproduce`
is this on the command line.
"""

from dalembert.reproduction._files import load_experiments
from dalembert.reproduction._machine import machine, version, versions
from dalembert.reproduction._page import Report
from dalembert.reproduction._reproduce import reproduce
from dalembert.reproduction._watcher import Watcher

__all__ = ["Report", "Watcher", "load_experiments", "machine", "reproduce", "version", "versions"]
