"""The list of experiments, and running one."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from dalembert.draw._style import save
from dalembert.errors import DalembertError, InputError, suggestion
from dalembert.experiments._experiment import Experiment, Result
from dalembert.experiments._figures import Figure

_registered: dict[str, Experiment] = {}


def register(experiment: Experiment) -> Experiment:
    """Add an experiment to the list under its name, which must be new.

    Example:
        >>> from dalembert import experiments
        >>> experiments.register(experiments.find("jay1996.figure5.6"))
        Traceback (most recent call last):
        dalembert.errors.InputError: there is an experiment named 'jay1996.figure5.6' already: choose another name

    """
    if experiment.name in _registered:
        raise InputError(f"there is an experiment named {experiment.name!r} already: choose another name")
    _registered[experiment.name] = experiment
    return experiment


def forget(name: str) -> None:
    """Take an experiment off the list, if it is there."""
    _registered.pop(name, None)


def names() -> list[str]:
    """The names of all experiments, in the order in which they were registered.

    Example:
        >>> from dalembert import experiments
        >>> [name for name in experiments.names() if name.startswith("jay1996.")][:2]
        ['jay1996.figure5.1', 'jay1996.figure5.2']

    """
    return list(_registered)


def documents() -> dict[str, list[str]]:
    """The names of the experiments by the short name of their document, the part before the first dot.

    Example:
        >>> from dalembert import experiments
        >>> experiments.documents()["small_jay2011"][:2]
        ['small_jay2011.pendulum', 'small_jay2011.skate']

    """
    found: dict[str, list[str]] = {}
    for name in _registered:
        found.setdefault(name.partition(".")[0], []).append(name)
    return found


def find(name: str) -> Experiment:
    """The experiment with this name.

    Example:
        >>> from dalembert import experiments
        >>> experiments.find("jay1996.figure5.6").item
        'figure 5.6'

    """
    if name not in _registered:
        hint = suggestion(name, _registered) or ": the names are listed by experiments.names()"
        raise InputError(f"there is no experiment named {name!r}{hint}")
    return _registered[name]


def run(
    name: str | Experiment,
    full: bool = False,
    out: str | os.PathLike[str] | None = None,
    *,
    formats: Sequence[str] = ("png",),
    on_failure: Literal["raise", "return"] = "raise",
) -> Result:
    """Compute an experiment, judge its claim and draw it; with `out`, write the figure into that directory.

    An experiment that raises an error raises it here; with `on_failure="return"` the result carries it as `.error`.

    Example:
        >>> from dalembert import experiments
        >>> result = experiments.run("jay1996.figure5.6")
        >>> result.holds, len(result.checks)
        (True, 4)

    """
    experiment = find(name) if isinstance(name, str) else name
    if out is not None:
        _make_directory(Path(out))
    began = time.perf_counter()
    result = Result(experiment, full, 0.0)
    try:
        data = experiment.compute(full)
        checks = tuple(experiment.holds(data))
        table = () if experiment.table is None else tuple(tuple(row) for row in experiment.table(data))
        figure = experiment.draw(data)
        files = () if out is None else _write(experiment, figure, Path(out), formats)
        result = Result(experiment, full, time.perf_counter() - began, data, checks, table, figure, files)
    except Exception as error:
        if on_failure == "raise":
            raise
        reason = str(error) if isinstance(error, DalembertError) else f"{type(error).__name__}: {error}"
        result = Result(experiment, full, time.perf_counter() - began, error=reason, trace=traceback.format_exc())
    return result


def _write(experiment: Experiment, figure: Figure, out: Path, formats: Sequence[str]) -> tuple[Path, ...]:
    return tuple(save(figure, out / f"{experiment.name}.{kind}") for kind in formats)


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the directory {path} cannot be made ({error.strerror}): choose another one") from None
