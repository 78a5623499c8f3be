"""Reading what is to be simulated: a problem of the catalogue, or a model and a drawing of one's own."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import dalembert as da
from dalembert.cli._user_code import UsageError, user_code
from dalembert.errors import suggestion

if TYPE_CHECKING:
    from dalembert.draw import Drawing
    from dalembert.mechanisms import Mechanism
    from dalembert.problems import Problem
    from dalembert.systems import System


def _is_subject(thing: Any) -> bool:
    """Whether `da.simulate` takes it as its first argument."""
    return isinstance(thing, (da.problems.Problem, da.Mechanism, da.systems.System))


def catalogue() -> dict[str, Callable[..., Problem]]:
    """The functions of the catalogue, by name."""
    return {name: getattr(da.problems, name) for name in da.problems.__all__ if name != "Problem"}


@dataclass(frozen=True)
class Model:
    """What is to be simulated: a problem or a bare system, its name, the parameters to override, the file that it is from."""

    name: str
    subject: Problem | Mechanism | System
    params: dict[str, Any] = field(default_factory=dict)
    file: Path | None = None
    module: ModuleType | None = None

    @property
    def problem(self) -> Problem | None:
        """The problem, if it is one."""
        return self.subject if isinstance(self.subject, da.problems.Problem) else None

    @property
    def system(self) -> System:
        """The system, of the problem or the mechanism if it is one."""
        from dalembert.runs._problem import stated  # not loaded for --help

        return stated(self.subject)[0]

    @property
    def drawn(self) -> bool:
        """Whether it says how it is drawn."""
        from dalembert.runs._problem import stated

        return stated(self.subject)[1] is not None


def model(text: str, settings: Mapping[str, Any]) -> Model:
    """The problem of a name of the catalogue, or the problem or system of `mymodel.py:name`, with settings applied."""
    if text.partition(":")[0].endswith(".py"):
        return _from_file(text, settings)
    known = catalogue()
    if text not in known:
        raise UsageError(
            f"there is no problem {text!r}{suggestion(text, known)} (see dalembert list problems; a model of your own is "
            "mymodel.py:name)"
        )
    return Model(text, _call(text, known[text], settings))


def _call(name: str, function: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    known = inspect.signature(function).parameters
    for setting in settings:
        if setting not in known:
            what = f"it has {', '.join(known)}" if known else "nothing of it can be set"
            raise UsageError(f"{name} has no {setting!r}{suggestion(setting, known)} ({what})")
    made = function(**settings)
    return replace(made, settings=dict(settings)) if isinstance(made, da.problems.Problem) and settings else made


def _from_file(text: str, settings: Mapping[str, Any]) -> Model:
    file, _, name = text.partition(":")
    module = _load(Path(file))
    if not name:
        found = [key for key, thing in vars(module).items() if _is_subject(thing)]
        if len(found) != 1:
            what = f"it has {', '.join(found)}" if found else "it has no da.problems.Problem, da.Mechanism or system of its own"
            raise UsageError(f"say which object of {file} to simulate, as in {file}:name ({what})")
        name = found[0]
    thing, params = _member(module, file, name), dict(settings)
    if callable(thing) and not isinstance(thing, type):
        with user_code(Path(file)):
            thing, params = _call(name, thing, settings), {}
    if not _is_subject(thing):
        raise UsageError(
            f"{text} is of type {type(thing).__name__}: it must be a da.problems.Problem, a da.Mechanism, a da.Hamiltonian, "
            "da.Lagrangian, da.ODAE or da.IndexTwoDAE, or a function that returns one"
        )
    return Model(name, thing, params, Path(file), module)


def maker(chosen: Model) -> Callable[..., Any] | None:
    """The function of the user's file that made a model; None if the model itself stands there."""
    thing = None if chosen.module is None else getattr(chosen.module, chosen.name)
    return thing if callable(thing) and not _is_subject(thing) else None


def drawing(text: str, chosen: Model) -> tuple[Drawing, Path]:
    """The function `mymodel.py:name` that draws a mechanism, and its file, which may be that of the model."""
    file, _, name = text.partition(":")
    if not file.endswith(".py") or not name:
        raise UsageError(
            f"--draw takes a function of your own that returns parts of dalembert.draw, as mymodel.py:name; got {text!r}"
        )
    module = chosen.module if chosen.file == Path(file) else None
    function = _member(_load(Path(file)) if module is None else module, file, name)
    if not callable(function) or isinstance(function, type):
        raise UsageError(
            f"{text} is of type {type(function).__name__}: it must be a function that returns parts of dalembert.draw"
        )
    return function, Path(file)


def _member(module: ModuleType, file: str, name: str) -> Any:
    if not hasattr(module, name):
        public = [key for key in vars(module) if not key.startswith("_")]
        raise UsageError(f"{file} has no {name!r}{suggestion(name, public)}")
    return getattr(module, name)


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    name = f"dalembert_model_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    directory = str(path.resolve().parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)  # so that the model can import its neighbours
    with user_code(path):
        spec.loader.exec_module(module)
    return module
