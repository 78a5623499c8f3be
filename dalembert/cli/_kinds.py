"""Kinds of systems, and which methods serve them: what `dalembert list --for` and `dalembert explore` choose from."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

import dalembert as da
from dalembert.cli._methods import example, makers, method
from dalembert.cli._models import catalogue
from dalembert.errors import DalembertError

if TYPE_CHECKING:
    from dalembert.methods import OneStepMethod
    from dalembert.systems import System

KINDS = {
    "free": "no constraints",
    "holonomic": "holonomic constraints",
    "nonholonomic": "nonholonomic constraints",
    "walls": "walls: unilateral constraints with impacts",
    "odae": "overdetermined DAEs: friction, forces nonlinear in the multipliers",
    "index2": "DAEs of index 2",
}
"""What a system may be, in the order in which systems are listed."""

SAMPLES = {
    "free": ("double_pendulum_in_angles",),
    "holonomic": ("pendulum",),
    "nonholonomic": ("chaplygin_sleigh", "contact_oscillator"),  # a mass matrix that varies, and one that does not
    "walls": ("double_pendulum_at_wall", "bouncing_ball"),
    "odae": ("mass_on_surface",),
    "index2": ("index_two_growth",),
}
"""Problems of each kind; a method that serves one of them serves the kind."""


def kind_of(system: System) -> str:
    """The kind of a system, by what decides which methods serve it.

    Example:
        >>> kind_of(da.problems.pendulum().system), kind_of(da.problems.skate().system)
        ('holonomic', 'nonholonomic')

    """
    if isinstance(system, da.IndexTwoDAE):
        return "index2"
    if not isinstance(system, da.systems.MechanicalSystem):
        return "odae"
    if system.n_unilateral:
        return "walls"
    if system.n_nonholonomic:
        return "nonholonomic"
    return "holonomic" if system.n_holonomic else "free"


@functools.cache
def kinds() -> dict[str, str]:
    """The kinds of the problems of the catalogue, by name."""
    return {name: kind_of(make().system) for name, make in sorted(catalogue().items())}


@functools.cache
def examples() -> dict[str, OneStepMethod]:
    """One method of every maker, with its defaults, and where it has none, with an example; by name."""
    return {name: method(example(name, make)) for name, make in makers().items()}


def serves(stepper: OneStepMethod, system: System) -> bool:
    """Whether a method takes a system.

    Example:
        >>> serves(da.Rattle(), da.problems.pendulum().system), serves(da.Rattle(), da.problems.skate().system)
        (True, False)

    """
    try:
        stepper.check(system)
    except DalembertError:
        return False
    return True


def kinds_served(stepper: OneStepMethod) -> list[str]:
    """The kinds of systems that a method serves."""
    return [kind for kind in KINDS if any(serves(stepper, system) for system in _samples(kind))]


@functools.cache
def _samples(kind: str) -> list[System]:
    return [catalogue()[name]().system for name in SAMPLES[kind]]


FAMILIES = {
    "lobatto": "symplectic Lobatto methods",
    "spark": "Gauss-Lobatto SPARK methods",
    "collocation": "Runge-Kutta methods",
    "runge_kutta": "Runge-Kutta methods",
    "underlying_ode": "Runge-Kutta methods",
    "variational": "variational integrators",
    "half_explicit": "Euler and half-explicit methods",
    "euler": "Euler and half-explicit methods",
    "nonholonomic_integrators": "discrete Lagrange-d'Alembert methods",
    "lagrange_dalembert": "discrete Lagrange-d'Alembert methods",
    "index_two": "methods for DAEs of index 2",
    "cva": "collision integrators",
    "vci": "collision integrators",
    "mcva": "collision integrators",
    "time_stepping": "time stepping with contact and friction",
    "composition": "adjoints and compositions",
    "step_sizes": "steps that vary",
}
"""What the methods of each file are, in the order in which they are listed."""


def family(make: object) -> str:
    """What a method is, in a few words: of a file that is not in the list, its first line."""
    module = inspect.getmodule(make)
    name = module.__name__.rpartition(".")[2] if module else ""
    return FAMILIES.get(name) or (inspect.getdoc(module) or name).partition("\n")[0].rstrip(".")
