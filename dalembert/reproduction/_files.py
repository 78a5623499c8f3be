"""Experiments of your own, in a file."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from dalembert.errors import InputError
from dalembert.experiments import Experiment, _registry, names, register

_loaded: dict[Path, list[str]] = {}


def load_experiments(file: str | os.PathLike[str]) -> list[str]:
    """Register the experiments that a Python file defines at its top level; their names.

    A file that is loaded again replaces what it registered before.
    """
    path = Path(file).resolve()
    for name in _loaded.pop(path, []):
        _registry.forget(name)
    module_name = f"dalembert_experiments_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"there is no Python file {file}")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # so that the file can import its neighbours
    before = set(names())
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    known = {id(_registry.find(name)) for name in names()}
    for thing in vars(module).values():
        if isinstance(thing, Experiment) and id(thing) not in known:
            register(thing)
    _loaded[path] = [name for name in names() if name not in before]
    if not _loaded[path]:
        raise InputError(f"{file} defines no experiment: assign an experiments.Experiment to a name in it")
    return _loaded[path]
