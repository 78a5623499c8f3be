"""dalembert: structure-preserving simulation of constrained mechanical systems.

    import numpy as np
    import dalembert as da

    run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3))
    run.plot("double_pendulum.png")

Write a model as plain NumPy functions (`Hamiltonian`, `Lagrangian`), choose a method by its name in the literature
(`LobattoIIIAB`, `Rattle`), and `simulate`. Derivatives, Newton iterations and machine code are derived from these.
"""

import importlib as _importlib
from typing import TYPE_CHECKING
from typing import Any as _Any

from dalembert._version import __version__ as __version__

if TYPE_CHECKING:
    from dalembert._public import *  # noqa: F403
    from dalembert._public import __all__ as __all__

# Rooms that are public as they are. All other names are listed in `_public.py`, which is loaded when one is asked for.
_ROOMS = ("draw", "experiments", "mechanisms", "plot", "problems", "systems", "tableaux", "verify")


def __getattr__(name: str) -> _Any:
    if name in _ROOMS:
        return _importlib.import_module(f"dalembert.{name}")
    public = _importlib.import_module("dalembert._public") if name == "__all__" or not name.startswith("_") else None
    if name in globals():  # another room, which that has loaded
        return globals()[name]
    if public is None or name not in (*public.__all__, "__all__"):
        raise AttributeError(f"module 'dalembert' has no attribute {name!r}")
    place = public.LATER.get(name)
    value = getattr(public if place is None else _importlib.import_module(f"dalembert.{place}"), name)
    value = globals()[name] = _importlib.import_module("dalembert._calls").public(value)
    return value


def __dir__() -> list[str]:
    return sorted([*__getattr__("__all__"), "__version__"])
