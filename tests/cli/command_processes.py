"""The command in a process of its own."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import dalembert as da


def process(line, **options):
    environment = os.environ | {"PYTHONPATH": str(Path(da.__file__).parents[1])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    return subprocess.Popen([sys.executable, "-m", "dalembert", *shlex.split(line)], **(pipes | options))
