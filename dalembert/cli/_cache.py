"""Clear the cache of compiled models.

Remove the machine code of models that is kept on disk. What is needed is compiled again; `dalembert info` says where it lies
and how much it is.

examples:
  dalembert cache clear
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do with the cache."""
    parser.add_argument("action", choices=["clear"], help="remove all stored machine code of models")


def execute(options: argparse.Namespace) -> int:
    """Clear the cache and say how much that was."""
    from dalembert.compiler._jit import cache_directory, remove_stored

    del options  # there is one action
    directory = cache_directory()
    files, size = (0, 0) if directory is None else remove_stored(directory)
    print(f"{files} file{'' if files == 1 else 's'} removed, {size / 1e6:.1f} MB")
    return 0
