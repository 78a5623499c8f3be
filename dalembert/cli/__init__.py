"""The command `dalembert`: list, run, explore, resume, reproduce, bench, info, completion.

Exit codes: 0 for success; 1 when a step, an experiment or a file failed; 2 for a command that cannot be carried out as it
stands; 130 after Ctrl-C. Errors are one sentence on standard error; what was asked for goes to standard output.
"""

from dalembert.cli._main import main

__all__ = ["main"]
