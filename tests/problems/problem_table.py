"""One row a problem of the catalogue, with what is claimed of it; and how a problem is compared with a reference."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.draw._scene import Scene
from dalembert.systems import state_at

LOBATTO = da.LobattoIIIAB(stages=3)
EULER = da.compose(da.SymplecticEuler(), 2)


@dataclass(frozen=True)
class Row:
    """What is claimed of a problem.

    `start` lists the keywords that are no constants of the system, with another value to try: they set the start or the shape.
    `exact` lists the conserved quantities that the row's method keeps to round-off. `rigid` says that the drawn lines keep
    their lengths, or that they do not, or (None) nothing. A problem that is no mechanism is not `drawn`. `factor` changes a
    constant to another one that is possible. What compiles for more than a few seconds is `slow`.
    The residuals of the start are below `at_start`, larger where velocities are, or where inertias differ by thousands.
    """

    name: str
    start: dict[str, Any]
    conserved: tuple[str, ...] = ("energy",)
    exact: tuple[str, ...] = ()
    arguments: dict[str, Any] = field(default_factory=dict)
    spatial: bool = False
    rigid: bool | None = True
    drawn: bool = True
    stretch: float = 1e-6
    traced: float = 1e-2
    factor: float = 1.1
    slow: bool = False
    at_start: float = 4e-15

    def __call__(self, **changes: Any) -> da.problems.Problem:
        return getattr(da.problems, self.name)(**{**self.arguments, **changes})

    @functools.cached_property
    def problem(self) -> da.problems.Problem:
        """The problem itself, made once."""
        return self()

    @functools.cached_property
    def run(self) -> da.Trajectory:
        """A run of it, computed once."""
        raise NotImplementedError

    @property
    def keywords(self) -> set[str]:
        return set(inspect.signature(getattr(da.problems, self.name)).parameters)

    def __str__(self) -> str:
        return "_".join([self.name, *self.arguments])


@dataclass(frozen=True)
class Smooth(Row):
    """A problem without impacts and nonholonomic constraints.

    Its method is symplectic and partitioned where it has an energy, and keeps what is bilinear in (q, p) and generates a
    symmetry (Jay's IIIA-IIIB pair has b = b^ and (2.3b)). The energy is not among these: its error is O(h^4) for s = 3, without
    drift. `h` is the larger of the two step sizes at which the energy error is compared, and `bound` how much larger the error
    may be over eight times the time. `steps` of the problem's own h by `method` must stay on the constraints to `round_off`.
    """

    method: da.OneStepMethod = LOBATTO
    steps: int = 300
    h: float = 0.1
    bound: float = 1.5
    round_off: float = 1e-13

    @functools.cached_property
    def run(self) -> da.Trajectory:
        return da.simulate(self.problem, self.method, steps=self.steps, progress=False)


@dataclass(frozen=True)
class Nonholonomic(Row):
    """A problem with nonholonomic constraints.

    The Gauss-Lobatto SPARK method of so many stages keeps the constraints to `round_off`, and what is conserved converges with
    its order from the step size h (by default the problem's own) to its half over `t1` (by default 100 h).
    """

    stages: int = 3
    h: float | None = None
    t1: float | None = None
    round_off: float = 1e-14
    nonzero: float = 0.1

    def run_with(self, refined: int) -> da.Trajectory:
        h = self.problem.h if self.h is None else self.h
        steps = 100 if self.t1 is None else round(self.t1 / h)
        return da.simulate(
            self.problem, da.GaussLobattoSPARK(self.stages), h=h / refined, steps=steps * refined, progress=False
        )

    @functools.cached_property
    def run(self) -> da.Trajectory:
        return self.run_with(1)


@dataclass(frozen=True)
class Walled(Row):
    """A problem with impacts, by CVA."""

    rigid: bool | None = None
    traced: float = 0.0
    factor: float = 0.9

    @functools.cached_property
    def run(self) -> da.Trajectory:
        return da.simulate(self.problem, da.CVA(), progress=False)


PAIR = (0.3, -0.2)
TOP = {"inclination": 0.7, "spin": 3.0, "precession": 0.2}
TOP_CONSERVES = ("vertical_angular_momentum", "axial_angular_momentum")
ANGLES = {"azimuths": PAIR, "polar_angles": (1.0, 2.0), "azimuth_rates": PAIR, "polar_rates": PAIR}
SMOOTH = [
    Smooth("pendulum", {"angle": 0.7}),
    Smooth("simple_pendulum", {"angle": 0.7}),
    Smooth("double_pendulum", {}),
    Smooth("pendulum_of_varying_length", {"angle": 0.7}, (), rigid=False),
    Smooth("stiff_spring_pendulum", {"angle": 0.7, "stretch": 0.02}, arguments={"stretch": 0.01}, rigid=False, h=0.005),
    Smooth("chain", {"links": 4, "sag": 0.3}, arguments={"links": 3, "sag": 1.0}),
    Smooth("four_bar", {"angle": 0.7, "rate": 2.5}, h=0.02),
    Smooth("charged_particle_on_sphere", {}, ("energy", "axial_angular_momentum"), ("axial_angular_momentum",), spatial=True),
    Smooth("spherical_pendulum", {"angle": 0.7, "rate": 0.5}, ("energy", TOP_CONSERVES[0]), TOP_CONSERVES[:1], spatial=True),
    # its error peaks at close encounters, some of which are closer than the first
    Smooth("two_bodies_on_sphere", ANGLES, ("energy", "angular_momentum"), ("angular_momentum",), spatial=True, h=0.01,
           bound=2.5),
    Smooth("rigid_body", {"omega": (1.0, 2.0, 3.0)}, ("energy", "angular_momentum"), ("angular_momentum",), spatial=True),
    Smooth("heavy_top", {**TOP, "translation": True}, ("energy", *TOP_CONSERVES), TOP_CONSERVES, spatial=True),
    Smooth("heavy_top", {**TOP, "translation": False}, ("energy", *TOP_CONSERVES), TOP_CONSERVES, {"translation": True}, True),
    # It falls: eight times the time is eight times the speed, and the error grows with its square.
    Smooth("cart_pendulum", {"beta": 4.0}, h=0.005, bound=1.1 * 8**2),
    Smooth("double_pendulum_in_angles", {"angles": PAIR}),
    Smooth("particle_in_magnetic_field", {}, ("energy", "axial_momentum"), ("axial_momentum",), spatial=True, rigid=False),
    Smooth("rod_on_spring", {"angles": PAIR}, rigid=False),
    Smooth("slider_crank", {"angle": 0.9, "rate": 7.0}, h=0.004),
    Smooth("andrews_squeezer", {}, (), rigid=None, traced=1e-9),
    Smooth("two_four_bars", {"speed": 1.3}, h=0.02),
    Smooth("n_four_bar", {"loops": 3, "speed": 1.3}, h=0.015),
    Smooth("car_axis", {}, (), rigid=None),
    Smooth("andrews_in_angles", {}, (), rigid=None, traced=1e-9),
    Smooth("elastic_slider_crank", {}, (), rigid=None, at_start=1e-12, round_off=1e-12),
    Smooth("fekete", {}, (), spatial=True, rigid=None, slow=True),
    Smooth("pleiades", {}, ("angular_momentum",), ("angular_momentum",), rigid=None, traced=1e-5),
    Smooth("jansens_leg", {"rate": 3.0}, h=0.005),
    Smooth("gyroscope", {"tilt": 0.4, "spin": 120.0, "precession": 1.0}, spatial=True, h=0.002, slow=True, round_off=1e-12,
           at_start=1e-13),
    Smooth("bricard", {}, spatial=True, slow=True, h=0.01),
    Smooth("flyball_governor", {"spin": 5.0}, (), spatial=True, rigid=None, slow=True, round_off=1e-11, at_start=2e-12),
    Smooth("flyball_governor_in_angles", {"spin": 5.0}, (), rigid=None, traced=1e-9),
    Smooth("six_axis_arm", {}, (), spatial=True, slow=True),
    Smooth("stewart_platform", {}, (), spatial=True, rigid=None),
    Smooth("nonlinear_multiplier", {}, (), drawn=False, method=EULER, steps=50),
    Smooth("mass_on_surface", {"x": 9.0, "speed": 3.0}, (), method=EULER, steps=100),
    Smooth("pendulum_with_friction", {"angle": 0.7, "rate": 3.5}, (), method=EULER),
    Smooth("bead_on_rotating_wire", {"rho": 0.6, "speed": 0.7}, (), spatial=True, method=EULER, steps=100),
]  # fmt: skip

BLADE = {"omega": 1.3, "speed": 0.4}
DISK = {"lean": 0.2, "lean_rate": 0.1, "yaw_rate": 0.3, "roll_rate": 1.7}
TABLE = {"x": 0.7, "y": 0.2, "v_x": 0.3, "v_y": 0.6, "spin": 0.9}
ON_TABLE = ("speed", "spin", "centre_of_circle", "moving_energy")
RATES = ("energy", "turning", "rolling")
"""The energy and both rates of the upright disk, because k at the stages is solved by the exact velocities."""
SLEIGH = {"x": 0.7, "y": 0.2, "theta": 0.1, "speed": 0.5, "turning": 0.3}
CONTACT = {"b": 0.8, "E0": 1.3, "z0": 0.4, "vz0": 0.2}
IN_BOWL = ("energy", "spin", "vertical_integral")
FOURTH: dict[str, Any] = {"stages": 2, "h": 0.05, "t1": 5.0, "round_off": 2e-14, "nonzero": 0.01, "traced": 1e-3}
"""Rows in which the method of order four is measured."""
LOOSE: dict[str, Any] = {"spatial": True, "rigid": False, **FOURTH}
NONHOLONOMIC = [
    Nonholonomic("skate", BLADE, ("energy", "spin"), ("spin",)),
    Nonholonomic("knife_edge", BLADE, ("energy", "spin"), ("spin",)),
    Nonholonomic("snakeboard", {"speed": 0.3}, ()),
    Nonholonomic("car_with_trailer", {"speed": 0.7, "fold": 0.3}),
    # its thread is paid out
    Nonholonomic("appell_hamel", {"speed": 0.7, "heading": 0.9}, ("energy", "heading"), ("energy", "heading"), spatial=True,
                 rigid=False, stretch=1e-2),
    Nonholonomic("rolling_disk", DISK, spatial=True),
    Nonholonomic("ball_on_turntable", TABLE, ON_TABLE, ("spin",), spatial=True),
    Nonholonomic("vertical_disk", {"phi": 0.3, "turning": 1.3, "rolling": 0.7}, RATES, RATES, spatial=True, **FOURTH),
    Nonholonomic("chaplygin_sleigh", SLEIGH, arguments={"speed": 0.4, "turning": 0.6}, **FOURTH),
    Nonholonomic("skateboard", {"lean": 0.3, "lean_rate": 0.1, "speed": 1.2}, spatial=True, **FOURTH),
    Nonholonomic("contact_oscillator", CONTACT, ("energy", "free_energy", "radius"), ("free_energy",), {"vz0": 0.3}, **LOOSE),
    Nonholonomic("perturbed_contact_oscillator", CONTACT, ("energy", "free_energy"), ("free_energy",), {"vz0": 0.3}, **LOOSE),
    Nonholonomic("nonholonomic_particles", {"spread": 0.5, "phase": 0.4, "n": 2}, rigid=False, **FOURTH),
    Nonholonomic("continuously_variable_transmission", {"shift": 0.5, "angle": 0.7, "speed": 0.5}, ("energy", "energy_of_belt"),
                 ("energy_of_belt",), **LOOSE),
    Nonholonomic("ball_in_bowl", {"angle": 0.6, "speed": 0.7, "spin": 1.3}, IN_BOWL, spatial=True, **FOURTH),
    Nonholonomic("ball_on_slope", {"across": 0.3}, spatial=True, **FOURTH | {"h": 0.02, "t1": 1.0}),
    Nonholonomic("whipple_bicycle", {"speed": 4.8, "push": 0.04}, spatial=True, slow=True, rigid=None, at_start=4e-14,
                 **FOURTH),
    Nonholonomic("rattleback", {"roll": 0.02, "pitch": 0.015, "spin": -4.0}, spatial=True, **FOURTH | {"h": 0.001, "t1": 0.5}),
]  # fmt: skip

PARTICLE = {"start": (0.2, -0.1), "velocity": (0.5, 0.3)}
ENERGY, FOCI = ("energy",), ("energy", "product_of_angular_momenta")
WALLED = [
    Walled("cart_pendulum_above_floor", {"beta": 4.0}),
    Walled("double_pendulum_at_wall", {"angles": (-0.9, -0.8)}),
    Walled("double_pendulum_at_wall_in_angles", {"angles": (-0.9, -0.8)}),
    Walled("bouncing_ball", {"height": 2.0}, ()),
    Walled("bouncing_ball", {"height": 2.0}, arguments={"e": 1.0}),
    Walled("ball_on_vibrating_table", {"height": 0.4}, ()),
    Walled("newtons_cradle", {"balls": 4, "lifted": 2, "angle": 0.7}),
    Walled("balls_on_ring", {"speeds": (0.4, -0.3, 0.1, 0.2, -0.5)}, ("energy", "momentum"), ("energy", "momentum")),
    Walled("circular_billiard", PARTICLE, ("energy", "angular_momentum"), ("energy", "angular_momentum"), {"B": 0.7}),
    Walled("elliptic_billiard", PARTICLE, FOCI, FOCI),
    Walled("elliptic_billiard", PARTICLE, ENERGY, ENERGY, {"B": 0.7}),
    Walled("stadium_billiard", PARTICLE, ENERGY, ENERGY, {"B": 0.7, "start": (1.2, 0.3)}),
    Walled("hard_disks", {"disks": 5, "speed": 0.5, "direction": 1.0}, ENERGY, ENERGY, {"disks": 6}),
]
ALL: list[Row] = [*SMOOTH, *NONHOLONOMIC, *WALLED]
INDEX_TWO = {"index_two_growth", "index_two_growth_in_parts", "wheelset"}
"""Not of the form (y, z): tested in test_hilden_problems.py and test_benchmark_problems.py."""


def over(rows: Any) -> Any:
    return pytest.mark.parametrize(
        "row", [pytest.param(row, marks=pytest.mark.slow if row.slow else ()) for row in rows], ids=str
    )


def start_of(problem: da.problems.Problem) -> Any:
    names = ("q0", "v0", "p0", "y0", "z0", "lam0")
    given = {name: getattr(problem, name) for name in names if getattr(problem, name) is not None}
    return state_at(problem.system, t0=problem.t0, **given)


def dim(problem: da.problems.Problem) -> int:
    return problem.system.state_blocks[0][1]


def sizes(value: np.ndarray) -> np.ndarray:
    """How far a quantity is from its first value, (time,)."""
    return np.abs(value - value[0]).reshape(len(value), -1).max(axis=1)


def links(scene: Scene) -> Iterator[np.ndarray]:
    """The lengths between neighbouring points of every drawn part that connects points, (time, links)."""
    for part in scene.parts:
        if part.kind in ("rod", "body", "line"):
            yield np.linalg.norm(np.diff(part.points, axis=1), axis=2)


# -- references ----------------------------------------------------------------------------------------------------------


def solve(f: Callable[[float, np.ndarray], Any], y0: Any, t1: float) -> np.ndarray:
    """The solution at t1 of an ODE written by hand, by SciPy's DOP853."""
    solution = solve_ivp(lambda t, y: np.asarray(f(t, y)), (0.0, t1), np.asarray(y0, float), "DOP853", rtol=1e-13, atol=1e-13)
    assert solution.success
    return solution.y[:, -1]


def end_of(problem: da.problems.Problem, t1: float, steps: int, method: da.OneStepMethod | None = None) -> da.Trajectory:
    """A run, far from its start in the end, so that agreement means something; by Lobatto IIIA-IIIB of four stages."""
    method = da.LobattoIIIAB(stages=4) if method is None else method
    run = da.simulate(problem, method, h=t1 / steps, steps=steps, save_every=steps, progress=False)
    assert np.max(np.abs(run.y[-1] - run.y[0])) > 0.1
    return run


def assert_same(run: da.Trajectory, tolerance: float = 1e-10, **reference: Any) -> None:
    """The last state of a run agrees with a reference."""
    for name, value in reference.items():
        error = np.max(np.abs(getattr(run, name)[-1] - np.asarray(value)))
        assert error < tolerance, f"{name} is off by {error:.1e}"


def assert_ends_in(
    problem: da.problems.Problem, t1: float, steps: int, method: da.OneStepMethod | None = None, **expected: Any
) -> da.Trajectory:
    """The last state of a run with nonholonomic constraints agrees to 1e-9."""
    method = da.GaussLobattoSPARK(stages=3) if method is None else method
    run = da.simulate(problem, method, h=t1 / steps, steps=steps, save_every=steps, progress=False)
    assert_same(run, 1e-9, **expected)
    return run


def assert_closed_form(problem: da.problems.Problem, t1: float, steps: int) -> None:
    """A run ends in the exact solution, which starts where the problem does and takes any array of times."""
    exact = problem.exact
    assert exact is not None
    assert_ends_in(problem, t1, steps, **exact(t1))
    along = exact(np.linspace(0.0, 1.0, 5))
    assert np.max(np.abs(along["q"][0] - problem.q0)) < 1e-15
    for name, values in along.items():
        assert values.shape == (5, *exact(0.25)[name].shape)
        assert np.max(np.abs(values[1] - exact(0.25)[name])) < 1e-15
