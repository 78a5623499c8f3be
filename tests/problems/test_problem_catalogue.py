"""One row a problem; generic tests over the rows: starts, parameters, constraints, conserved quantities, drawings."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from drawn_links import links

import dalembert as da
from dalembert.draw._scene import sample
from dalembert.systems import MechanicalSystem, state_at

METHOD = da.LobattoIIIAB(stages=3)
EULER = da.compose(da.SymplecticEuler(), 2)


@dataclass(frozen=True)
class Row:
    """What is claimed of a problem.

    `start` lists the keywords that are no constants of the system, with another value to try: they set the start or the shape.
    `momentum` lists the conserved quantities that are bilinear in (q, p) and generate a symmetry: a symplectic partitioned
    Runge-Kutta method conserves these exactly (Jay's IIIA-IIIB pair has b = b^ and (2.3b)). Energy is not among them: its error
    is O(h^4) for s = 3, without drift. `rigid` says that the drawn lines keep their lengths. `h` is the larger of the two step
    sizes at which the energy error is compared, and `bound` how much larger the error may be over eight times the time.
    `steps` of the problem's own h by `method` must stay on the constraints. A problem that is no mechanism is not `drawn`.
    """

    name: str
    start: dict[str, Any]
    momentum: tuple[str, ...] = ()
    energy: bool = True
    rigid: bool = True
    spatial: bool = False
    h: float = 0.1
    bound: float = 1.5
    method: da.OneStepMethod = METHOD
    steps: int = 300
    drawn: bool = True
    arguments: dict[str, Any] = field(default_factory=dict)

    def __call__(self, **changes: Any) -> da.problems.Problem:
        return getattr(da.problems, self.name)(**{**self.arguments, **changes})


ANOTHER_PAIR = (0.3, -0.2)
TOP = {"inclination": 0.7, "spin": 3.0, "precession": 0.2}
TABLE = [
    Row("pendulum", {"angle": 0.7}),
    Row("simple_pendulum", {"angle": 0.7}),
    Row("double_pendulum", {}),
    Row("pendulum_of_varying_length", {"angle": 0.7}, energy=False, rigid=False),
    Row("stiff_spring_pendulum", {"angle": 0.7, "stretch": 0.02}, rigid=False, h=0.005, arguments={"stretch": 0.01}),
    Row("chain", {"links": 4, "sag": 0.3}, h=0.1, arguments={"links": 3, "sag": 1.0}),
    Row("four_bar", {"angle": 0.7, "rate": 2.5}, h=0.02),
    Row("charged_particle_on_sphere", {}, ("axial_angular_momentum",), spatial=True),
    Row("spherical_pendulum", {"angle": 0.7, "rate": 0.5}, ("vertical_angular_momentum",), spatial=True),
    Row(
        "two_bodies_on_sphere",
        {
            "azimuths": ANOTHER_PAIR,
            "polar_angles": (1.0, 2.0),
            "azimuth_rates": ANOTHER_PAIR,
            "polar_rates": ANOTHER_PAIR,
        },
        ("angular_momentum",),
        spatial=True,
        h=0.01,
        bound=2.5,  # its error peaks at close encounters, some of which are closer than the first
    ),
    Row("rigid_body", {"omega": (1.0, 2.0, 3.0)}, ("angular_momentum",), spatial=True),
    Row(
        "heavy_top",
        {**TOP, "translation": True},
        ("vertical_angular_momentum", "axial_angular_momentum"),
        spatial=True,
    ),
    Row(
        "heavy_top",
        {**TOP, "translation": False},
        ("vertical_angular_momentum", "axial_angular_momentum"),
        spatial=True,
        arguments={"translation": True},
    ),
    # It falls: eight times the time is eight times the speed, and the error grows with its square.
    Row("cart_pendulum", {"beta": 4.0}, h=0.005, bound=1.1 * 8**2),
    Row("double_pendulum_in_angles", {"angles": ANOTHER_PAIR}),
    Row("particle_in_magnetic_field", {}, ("axial_momentum",), rigid=False, spatial=True),
    Row("rod_on_spring", {"angles": ANOTHER_PAIR}, rigid=False),
    Row("nonlinear_multiplier", {}, energy=False, drawn=False, method=EULER, steps=50),
    Row("mass_on_surface", {"x": 9.0, "speed": 3.0}, energy=False, method=EULER, steps=100),
    Row("pendulum_with_friction", {"angle": 0.7, "rate": 3.5}, energy=False, method=EULER),
    Row("bead_on_rotating_wire", {"rho": 0.6, "speed": 0.7}, energy=False, spatial=True, method=EULER, steps=100),
]


def over(rows: list[Row]) -> Any:
    return pytest.mark.parametrize("row", rows, ids=[row.name + "_moving" * ("translation" in row.arguments) for row in rows])


def keywords(row: Row) -> dict[str, Any]:
    return {name: p.default for name, p in inspect.signature(getattr(da.problems, row.name)).parameters.items()}


def start_of(problem: da.problems.Problem) -> Any:
    names = ("q0", "v0", "p0", "y0", "z0", "lam0")
    given = {name: getattr(problem, name) for name in names if getattr(problem, name) is not None}
    return state_at(problem.system, t0=problem.t0, **given)


def dim(problem: da.problems.Problem) -> int:
    return problem.system.state_blocks[0][1]


def sizes(value: np.ndarray) -> np.ndarray:
    """How far a quantity is from its first value, (time,)."""
    return np.abs(value - value[0]).reshape(len(value), -1).max(axis=1)


NONHOLONOMIC = {
    "skate", "knife_edge", "snakeboard", "car_with_trailer", "appell_hamel", "rolling_disk", "ball_on_turntable"
}  # fmt: skip
"""Covered by a table of their own in test_nonholonomic_problems.py."""
HILDEN = {
    "vertical_disk", "chaplygin_sleigh", "skateboard", "contact_oscillator", "perturbed_contact_oscillator",
    "nonholonomic_particles", "continuously_variable_transmission", "ball_in_bowl", "rattleback", "index_two_growth",
    "index_two_growth_in_parts"
}  # fmt: skip
"""The same in test_hilden_problems.py."""

WALLS = {
    "cart_pendulum_above_floor", "double_pendulum_at_wall", "double_pendulum_at_wall_in_angles", "bouncing_ball",
    "ball_on_vibrating_table", "newtons_cradle", "balls_on_ring", "circular_billiard", "elliptic_billiard", "stadium_billiard",
    "hard_disks"
}  # fmt: skip
"""The same in test_impact_problems.py."""


def test_the_table_covers_the_catalogue() -> None:
    assert {row.name for row in TABLE} | {"Problem"} | NONHOLONOMIC | HILDEN | WALLS == set(da.problems.__all__)


@over(TABLE)
def test_problem_states_what_it_is(row: Row) -> None:
    problem = row()
    assert problem.name == row.name
    assert problem.title and problem.reference
    assert len(problem.labels) == len(set(problem.labels)) == dim(problem)
    assert set(problem.conserved) == {*row.momentum, *(["energy"] if row.energy else [])}
    assert getattr(da.problems, row.name).__doc__.count(">>> ") >= 2


@over(TABLE)
def test_start_is_consistent_whatever_the_constants(row: Row) -> None:
    changes: list[dict[str, Any]] = [{}]
    changes += [{name: 1.1 * value} for name, value in row().system.params.items()]
    changes += [{name: value} for name, value in row.start.items()]
    for change in changes:
        state = start_of(row(**change))
        for residual in state.residuals.values():
            assert np.max(np.abs(residual), initial=0.0) < 4e-15, change


@over(TABLE)
def test_every_keyword_is_a_parameter_of_the_system_or_sets_the_start(row: Row) -> None:
    problem = row()
    constants = set(problem.system.params)
    assert set(keywords(row)) == constants | set(row.start)
    assert not constants & set(row.start)
    state = start_of(problem)
    for name, value in row.start.items():
        other = row(**{name: value})
        if dim(other) == dim(problem):
            moved = start_of(other)
            assert max(np.max(np.abs(moved.y - state.y)), np.max(np.abs(moved.z - state.z))) > 1e-3, name
            assert other.system.params == problem.system.params
        else:
            assert name in {"links", "translation"}


@over(TABLE)
def test_no_constant_is_baked_into_the_equations(row: Row) -> None:
    problem = row()
    defaults = problem.system.params
    state = start_of(problem)
    # A generic state: with no velocity or coordinate zero, every constant has an effect somewhere.
    random = np.random.default_rng(1)
    y, z, lam = (x + 0.1 * random.standard_normal(len(x)) for x in (state.y, state.z, state.lam))
    generic = {"t": 0.3, "y": y, "z": z, "lam": lam, "psi": state.psi}
    functions = {"H", "force", "g"} if isinstance(problem.system, MechanicalSystem) else {"v", "f", "r", "g"}
    for name, value in defaults.items():
        changed = row(**{name: 1.1 * value})
        assert changed.system.fingerprint == problem.system.fingerprint, f"{name} changes the symbolic graph"
        assert changed.system.params == {**defaults, name: 1.1 * value}
        theta = problem.system.parameters.vector({name: 1.1 * value})
        here = problem.system.parameters.vector()
        effect = [
            np.max(np.abs(problem.system.at(f, generic, theta) - problem.system.at(f, generic, here)), initial=0.0)
            for f in functions
        ]
        assert max(effect) > 1e-6, f"{name} has no effect"


@over(TABLE)
def test_constraints_hold_and_momentum_maps_are_conserved_to_round_off(row: Row) -> None:
    problem = row()
    run = da.simulate(problem, row.method, steps=row.steps, progress=False)
    assert np.max(np.abs(run.y - run.y[0])) > 1e-2  # it moves
    for residual in run.residuals.values():
        assert np.max(np.abs(residual), initial=0.0) < 1e-13
    for name in row.momentum:
        value = problem.conserved[name](run)
        assert len(value) == len(run.t)
        assert np.max(np.abs(value[0])) > 0.1  # the quantity is not trivially zero
        assert sizes(value).max() < 1e-12, name


@over([row for row in TABLE if row.energy])
def test_energy_error_is_of_fourth_order_and_bounded(row: Row) -> None:
    problem = row()
    energy = problem.conserved["energy"]
    coarse = da.simulate(problem, METHOD, h=row.h, steps=4000, progress=False)
    fine = da.simulate(problem, METHOD, h=row.h / 2, steps=1000, progress=False)
    error = sizes(energy(coarse))
    assert 10 < error[:501].max() / sizes(energy(fine)).max() < 24  # 2^4 = 16
    # No drift: the error of eight times the time is that of the beginning.
    assert error.max() < row.bound * error[:501].max()


@over(TABLE)
def test_drawing_shows_the_mechanism(row: Row) -> None:
    problem = row()
    run = da.simulate(problem, row.method, steps=50, progress=False)
    if not row.drawn:
        assert problem.drawing is None
        return
    assert problem.drawing is not None
    scene = sample(run, problem.drawing, run.t)
    assert scene.dim == (3 if row.spatial else 2)
    change = [np.ptp(link, axis=0).max() for link in links(scene)]
    assert max(change, default=0.0) < 1e-12 if row.rigid else max(change) > 1e-6
    assert all(np.ptp(part.points[:, 0], axis=0).max() > 1e-2 for part in scene.parts if part.kind == "trace")


# -- what the paper states -----------------------------------------------------------------------------------------------


def test_charged_particle_has_the_constants_and_the_energy_of_the_paper() -> None:
    problem = da.problems.charged_particle_on_sphere()
    assert problem.system.params == {"m": 1.0, "omega": 1.0, "R": 1.0, "eE": 1.0}  # (5.3)
    assert np.array_equal(problem.q0, [0.2, 0.2, np.sqrt(0.92)])  # (5.4)
    assert problem.p0 is not None and np.array_equal(problem.p0, [1.0, -1.0, 0.0])
    assert (problem.h, problem.steps) == (0.12, 5000)
    energy = problem.system.evaluate("H", 0.0, problem.q0, problem.p0).item()
    assert energy == pytest.approx(1.2**2 - np.sqrt(0.92), abs=1e-15)
    assert energy == pytest.approx(0.4808336955, abs=2e-10)  # as printed; 1.2^2 - sqrt(0.92) is 0.48083369534


def test_double_pendulum_has_the_constants_and_the_energy_of_the_paper() -> None:
    problem = da.problems.double_pendulum()
    assert problem.system.params == {"m1": 1.0, "m2": 1.0, "l1": 1.0, "l2": 1.0, "g": 1.0}  # (5.7)
    assert np.array_equal(problem.q0, [0.5, -np.sqrt(0.75), 0.0, -2 * np.sqrt(0.75)])  # (5.8)
    assert problem.p0 is not None and np.array_equal(problem.p0, np.zeros(4))
    assert (problem.h, problem.steps) == (0.12, 5000)
    energy = problem.system.evaluate("H", 0.0, problem.q0, problem.p0).item()
    assert energy == pytest.approx(-3 * np.sqrt(0.75), abs=1e-15)
    assert energy == pytest.approx(-2.5980762113, abs=1e-10)  # as printed, cut off after ten digits


def test_pendulum_has_the_multiplier_of_the_paper() -> None:
    m, l, g = 1.3, 0.8, 1.7  # noqa: E741
    problem = da.problems.pendulum(m=m, l=l, g=g, angle=2.0)
    run = da.simulate(problem, METHOD, steps=100, progress=False)
    stated = (np.sum(run.p**2, axis=1) / m - m * g * run.q[:, 1]) / l  # (1.11)
    assert np.max(np.abs(run.lam[:, 0] - stated)) < 1e-13


# -- what single problems claim ------------------------------------------------------------------------------------------


def test_grashof_condition_of_the_default_four_bar() -> None:
    params = da.problems.four_bar().system.params
    sides = sorted(float(params[name]) for name in ("ground", "crank", "coupler", "rocker"))
    assert sides[0] == params["crank"] and len(set(sides)) == 4
    assert sides[0] + sides[3] < sides[1] + sides[2]


def test_axial_momentum_of_an_asymmetric_top_is_neither_claimed_nor_conserved() -> None:
    symmetric, asymmetric = da.problems.heavy_top(), da.problems.heavy_top(I2=0.9)
    run = da.simulate(asymmetric, METHOD, steps=300, progress=False)
    assert set(asymmetric.conserved) == {"energy", "vertical_angular_momentum"}
    assert sizes(asymmetric.conserved["vertical_angular_momentum"](run)).max() < 1e-12
    assert sizes(symmetric.conserved["axial_angular_momentum"](run)).max() > 1e-3


def test_angular_momenta_of_tops_are_those_of_mechanics() -> None:
    """With R = I turned about x, L = R I R^T omega: the bilinear forms against the inertia tensor about the fixed point."""
    m, l, moments, tilt, spin, precession = 1.2, 0.9, np.array([0.6, 0.6, 1.0]), 0.7, 3.0, 0.4  # noqa: E741
    sin, cos = np.sin(tilt), np.cos(tilt)
    R = np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]])
    about_fixed_point = moments + m * l**2 * np.array([1, 1, 0])
    body = about_fixed_point * np.array([0.0, precession * sin, spin])
    for translation in (False, True):
        problem = da.problems.heavy_top(m=m, l=l, inclination=tilt, spin=spin, precession=precession, translation=translation)
        run = da.simulate(problem, METHOD, steps=1, progress=False)
        assert problem.conserved["vertical_angular_momentum"](run)[0] == pytest.approx((R @ body)[2], abs=1e-14)
        assert problem.conserved["axial_angular_momentum"](run)[0] == pytest.approx(body[2], abs=1e-14)


def test_stiff_spring_bounds_the_step_of_the_explicit_stage() -> None:
    """RATTLE without constraints is the Verlet method, stable on an oscillator of frequency w for h w < 2 only."""
    problem = da.problems.stiff_spring_pendulum(m=2.0, epsilon=1e-3)
    limit = 2 * 1e-3 * np.sqrt(2.0)
    below, above = (da.simulate(problem, da.Rattle(), h=f * limit, steps=500, progress=False) for f in (0.95, 1.05))
    length = [np.abs(np.hypot(run.q[:, 0], run.q[:, 1]) - 1).max() for run in (below, above)]
    assert length[0] < 1e-4 < 1e-1 < length[1]


def test_stiff_spring_tends_to_the_rigid_pendulum() -> None:
    """Released without stretch, the spring pendulum is O(epsilon^2) away from the pendulum."""
    exact = da.problems.pendulum().exact
    assert exact is not None
    errors = []
    for epsilon in (0.02, 0.01):
        run = da.simulate(da.problems.stiff_spring_pendulum(epsilon=epsilon), METHOD, h=0.001, steps=2000, progress=False)
        errors.append(np.max(np.abs(run.q - exact(run.t)["q"])))
    assert errors[0] / errors[1] == pytest.approx(4.0, abs=0.3)


@pytest.mark.parametrize(
    ("make", "fix"),
    [
        (lambda: da.problems.rigid_body(I1=2.0), "less than the sum of the other two"),
        (lambda: da.problems.heavy_top(I3=1.2), "less than the sum of the other two"),
        (lambda: da.problems.four_bar(rocker=10.0), "change angle or the lengths"),
        (lambda: da.problems.four_bar(coupler=0.5), "change angle or the lengths"),
        (lambda: da.problems.chain(links=0), "at least one"),
        (lambda: da.problems.chain(links=2.5), "whole number"),
    ],
)
def test_impossible_constants_are_refused_with_the_fix(make: Any, fix: str) -> None:
    with pytest.raises(da.InputError, match=fix):
        make()
