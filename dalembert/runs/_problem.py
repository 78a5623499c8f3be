"""A problem of the catalogue: everything that `da.simulate(problem, method)` needs, and what is known about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.draw import Drawing, Part, mass, mechanism, rod
from dalembert.mechanisms import Mechanism
from dalembert.systems import System

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Problem:
    """A system with initial values, a sensible step size and length, what is known exactly, and how to draw it.

    Mechanical systems start from `q0` with `v0` or `p0`, others from `y0` and `z0`; `lam0` chooses the branch of multipliers
    that enter nonlinearly. `exact` maps a time, or an array of times, to a dictionary of arrays such as "q", "p", "lam" with
    time first, for the constants that the problem was made with. `conserved` maps names to functions of a trajectory that the
    exact solution keeps constant. `drawing` is a function of the state that returns the parts of the mechanism (`da.draw`).

    Example:
        >>> import dalembert as da
        >>> problem = da.problems.double_pendulum()
        >>> problem.name, problem.h, problem.steps
        ('double_pendulum', 0.12, 5000)

    """

    name: str
    title: str
    reference: str
    system: System
    q0: np.ndarray | None = None
    h: float = 0.01
    steps: int = 1000
    v0: np.ndarray | None = None
    p0: np.ndarray | None = None
    y0: np.ndarray | None = None
    z0: np.ndarray | None = None
    lam0: np.ndarray | None = None
    t0: float = 0.0
    exact: Callable[[Any], dict[str, np.ndarray]] | None = None
    conserved: Mapping[str, Callable[[Trajectory], np.ndarray]] = field(default_factory=dict)
    drawing: Drawing | None = None
    labels: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What was changed from the usual constants, where that is known: titles of figures say so."""

    def __post_init__(self) -> None:
        (_, first), (_, second) = self.system.state_blocks
        labelled = len(self.labels) == (first or second) and not self.system.coordinate_names
        names = {"coordinate_names": self.labels} if labelled else {}
        object.__setattr__(self, "system", self.system.called(title=self.title, settings=self.settings, **names))

    def __repr__(self) -> str:
        return f"<Problem {self.name}: {self.title}>"


def stated(system: Any) -> tuple[Any, Drawing | None]:
    """The system of a problem or of a mechanism, or what else was given, and how it is drawn."""
    if isinstance(system, Problem):
        return system.system, system.drawing
    if isinstance(system, Mechanism):
        return system.system(), mechanism(system)
    return system, None


def energy_is_conserved(run: Trajectory) -> np.ndarray:
    """The energy of a run, for problems that conserve it."""
    return run.energy


def angular_momentum_of_points(run: Trajectory) -> np.ndarray:
    """The sum of q_i x p_i over the points in space that make up q, (time, 3)."""
    q, p = (part.reshape(len(run.t), -1, 3) for part in (run.q, run.p))
    return np.cross(q, p).sum(axis=1)


def links_from_origin(q: np.ndarray) -> list[Part]:
    """Rods from the origin through all points of the plane that make up q, with masses at their ends."""
    points = np.asarray(q).reshape(-1, 2)
    return [rod([0.0, 0.0], *points), *(mass(point) for point in points)]
