"""Results on disk: one file an experiment, valid for the software that computed it."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dalembert
from dalembert.draw._style import replacing
from dalembert.errors import InputError
from dalembert.experiments import Check, Experiment, Result
from dalembert.reproduction._machine import versions

UNRELATED = ("cli", "experiments", "reproduction")
"""Parts of the library that change no number: commands, other experiments, this page."""


@dataclass(frozen=True)
class Store:
    """The directory of a report: results/NAME.json, figures/NAME.png and report.html, those of full length below full/."""

    out: Path
    full: bool

    @property
    def directory(self) -> Path:
        """Where everything of this length is."""
        return self.out / "full" if self.full else self.out

    @property
    def figures(self) -> Path:
        """Where the figures are."""
        return self.directory / "figures"

    @property
    def page(self) -> Path:
        """The report."""
        return self.directory / "report.html"

    def prepare(self) -> None:
        """Make the directories."""
        try:
            self.figures.mkdir(parents=True, exist_ok=True)
            (self.directory / "results").mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(
                f"the directory {error.filename} cannot be made ({error.strerror}): choose another one with --out"
            ) from None

    def keep(self, result: Result) -> None:
        """Write a result; the file appears complete or not at all."""
        record = to_record(result) | {"fingerprint": fingerprint(result.experiment)}
        write_atomically(self._file(result.experiment), json.dumps(record, indent=1))

    def load(self, experiment: Experiment, formats: Sequence[str] = ("png",)) -> Result | None:
        """The kept result of an experiment; None unless this software computed it, it did not fail and its figures exist."""
        record = self._read(experiment)
        if record is None or record.get("fingerprint") != fingerprint(experiment) or record["error"]:
            return None
        files = [self.figures / f"{experiment.name}.{kind}" for kind in formats]
        return from_record(experiment, record, files) if all(file.is_file() for file in files) else None

    def load_all(self, experiments: Iterable[Experiment], formats: Sequence[str]) -> dict[str, Result]:
        """The kept results of those experiments that have one, by name."""
        found = {experiment.name: self.load(experiment, formats) for experiment in experiments}
        return {name: result for name, result in found.items() if result is not None}

    def forget(self, experiment: Experiment) -> None:
        """Have the experiment computed afresh."""
        self._file(experiment).unlink(missing_ok=True)

    def seconds(self, experiment: Experiment) -> float | None:
        """How long it took the last time, whichever software computed it."""
        record = self._read(experiment)
        return None if record is None or record["error"] else float(record["seconds"])

    def _file(self, experiment: Experiment) -> Path:
        return self.directory / "results" / f"{experiment.name}.json"

    def _read(self, experiment: Experiment) -> dict[str, Any] | None:
        try:
            record = json.loads(self._file(experiment).read_text(encoding="utf-8"))
            return record if {"error", "seconds", "checks", "full"} <= set(record) else None
        except (OSError, ValueError, TypeError):  # none yet, or not a file of ours: compute it again
            return None


def write_atomically(path: Path, text: str) -> None:
    """Write a file that appears complete or not at all."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


# -- records -------------------------------------------------------------------------------------------------------------


def to_record(result: Result) -> dict[str, Any]:
    """What of a result is kept: all but data and figure."""
    return {
        "name": result.experiment.name,
        "full": result.full,
        "seconds": result.seconds,
        "checks": [[check.name, float(check.value), check.relation, float(check.bound)] for check in result.checks],
        "table": result.table,
        "error": result.error,
        "trace": result.trace,
    }


def from_record(experiment: Experiment, record: dict[str, Any], files: Iterable[Path]) -> Result:
    """The result of a record."""
    checks = tuple(Check(*check) for check in record["checks"])
    table = tuple(tuple(row) for row in record.get("table", ()))
    return Result(
        experiment, record["full"], record["seconds"], checks=checks, table=table, files=tuple(files), error=record["error"],
        trace=record["trace"],
    )  # fmt: skip


# -- what a result depends on --------------------------------------------------------------------------------------------


def fingerprint(experiment: Experiment) -> str:
    """A hash of the sources of the library and of the experiment, and of the versions of the packages below them.

    An experiment may name what it rests on instead.

    Example:
        >>> from dalembert import experiments
        >>> from dalembert.reproduction._results import fingerprint
        >>> one, other = (experiments.find(f"jay1996.figure5.{k}") for k in (1, 2))
        >>> fingerprint(one) == fingerprint(other), fingerprint(one) == fingerprint(experiments.find("hilden2009.figure4.1"))
        (True, False)

    """
    if experiment.rests_on is not None:
        return _hash(text.encode() for text in (json.dumps(versions()), *experiment.rests_on()))
    return _hash([_library().encode(), *(path.read_bytes() for path in _sources(experiment))])


@functools.cache
def _library() -> str:
    root = Path(dalembert.__file__).parent
    shared = set((root / "experiments").glob("_*.py"))  # what every experiment measures with
    sources = [
        path for path in sorted(root.rglob("*.py")) if path.relative_to(root).parts[0] not in UNRELATED or path in shared
    ]
    return _hash([json.dumps(versions()).encode(), *(path.read_bytes() for path in sources)])


def _sources(experiment: Experiment) -> list[Path]:
    """The files that the experiment's functions are in, with their neighbours if these make a package."""
    found: set[Path] = set()
    for function in (experiment.compute, experiment.draw, experiment.holds):
        while isinstance(function, functools.partial):
            function = function.func
        code = inspect.unwrap(function)
        file = Path(inspect.getsourcefile(code if inspect.isroutine(code) else type(code)) or "")
        beside = (each for pattern in ("*.py", "*.toml") for each in file.parent.glob(pattern))
        found |= set(beside) if (file.parent / "__init__.py").is_file() else {file}
    return sorted(path for path in found if path.is_file())


def _hash(contents: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for content in contents:
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:20]
