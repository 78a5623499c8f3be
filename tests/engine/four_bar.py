"""A four-bar linkage as an engineer states it, and its motion by an independent equation in one angle.

Three bodies in (x, y, theta), pins at both ends of each, gravity, a motor on the crank and viscous friction in the joints.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.integrate import solve_ivp

import dalembert as da

BODIES = ("1", "2", "3")
SI = {
    "l1": 0.1, "l2": 0.35, "l3": 0.25, "base": 0.35, "m1": 0.2, "m2": 0.6, "m3": 0.4, "g": 9.81, "torque": 0.6, "c": 0.02,
}  # fmt: skip
DIMENSIONS = {"l": (0, 1, 0), "b": (0, 1, 0), "m": (1, 0, 0), "g": (0, 1, -2), "t": (1, 2, -2), "c": (1, 2, -1)}
"""Powers of mass, length and time, by the first letter of a parameter."""


def in_units(mass: float, length: float, time: float) -> dict[str, float]:
    """The parameters in units of which a kilogram, a metre and a second are so many."""
    units = np.array([mass, length, time], dtype=float)
    return {name: float(value * np.prod(units ** DIMENSIONS[name[0]])) for name, value in SI.items()}


def masses(values: Mapping[str, float]) -> np.ndarray:
    """The diagonal of the mass matrix."""
    pairs = [(values["m" + k], values["l" + k]) for k in BODIES]
    return np.array([entry for m, length in pairs for entry in (m, m, m * length**2 / 12)])


def energy(q, p, l1, l2, l3, m1, m2, m3, g):
    total = 0.0
    for k, (m, length) in enumerate(((m1, l1), (m2, l2), (m3, l3))):
        x, y, a = p[3 * k : 3 * k + 3]
        total += (x**2 + y**2) / (2 * m) + a**2 / (2 * m * length**2 / 12) + m * g * q[3 * k + 1]
    return total


def pins(q, l1, l2, l3, base):
    def end(k, length, side):
        x, y, a = q[3 * k : 3 * k + 3]
        return x + side * length / 2 * np.cos(a), y + side * length / 2 * np.sin(a)

    rows = []
    for (x, y), (u, v) in (
        (end(0, l1, -1), (0.0, 0.0)),
        (end(0, l1, 1), end(1, l2, -1)),
        (end(1, l2, 1), end(2, l3, 1)),
        (end(2, l3, -1), (base, 0.0)),
    ):
        rows += [x - u, y - v]
    return rows


def motor_and_friction(v, torque, c):
    a1, a2, a3, none = v[2], v[5], v[8], 0.0 * v[0]
    moments = (torque - c * a1 - c * (a1 - a2), -c * (a2 - a1) - c * (a2 - a3), -c * a3 - c * (a3 - a2))
    return np.array([entry for moment in moments for entry in (none, none, moment)], like=v)


def linkage(values: Mapping[str, float] = SI) -> da.Hamiltonian:
    """The numbers in `params`, where users put them."""
    return da.Hamiltonian(energy, dim=9, holonomic=pins, force=motor_and_friction, params=values)


def linkage_with_numbers(values: Mapping[str, float] = SI) -> da.Hamiltonian:
    """The numbers written into the functions."""
    l1, l2, l3, base, m1, m2, m3, g, torque, c = values.values()
    return da.Hamiltonian(
        lambda q, p: energy(q, p, l1, l2, l3, m1, m2, m3, g),
        dim=9,
        holonomic=lambda q: pins(q, l1, l2, l3, base),
        force=lambda v: motor_and_friction(v, torque, c),
    )


def _unit(a: float) -> np.ndarray:
    return np.array([np.cos(a), np.sin(a)])


def _normal(a: float) -> np.ndarray:
    return np.array([-np.sin(a), np.cos(a)])


def configuration(crank: float, values: Mapping[str, float] = SI) -> np.ndarray:
    """q where the crank has this angle, the coupler above it."""
    l1, l2, l3, base = (values[name] for name in ("l1", "l2", "l3", "base"))
    pin = l1 * _unit(crank)
    across = np.array([base, 0.0]) - pin
    distance = np.hypot(*across)
    coupler = np.arctan2(across[1], across[0]) + np.arccos((l2**2 + distance**2 - l3**2) / (2 * l2 * distance))
    end = pin + l2 * _unit(coupler) - [base, 0.0]
    rocker = np.arctan2(end[1], end[0])
    centres = pin / 2, pin + l2 / 2 * _unit(coupler), np.array([base, 0.0]) + l3 / 2 * _unit(rocker)
    return np.concatenate([[*c, a] for c, a in zip(centres, (crank, coupler, rocker), strict=True)])


def derivatives(q: np.ndarray, values: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """dq/dcrank and d2q/dcrank2, from the closed loop of the links."""
    a1, a2, a3 = q[2::3]
    l1, l2, l3 = (values["l" + k] for k in BODIES)
    loop = np.column_stack([l2 * _normal(a2), -l3 * _normal(a3)])
    k2, k3 = np.linalg.solve(loop, -l1 * _normal(a1))
    c2, c3 = np.linalg.solve(loop, l1 * _unit(a1) + l2 * k2**2 * _unit(a2) - l3 * k3**2 * _unit(a3))
    first = [(l1 / 2 * _normal(a1), 1.0), (l1 * _normal(a1) + l2 / 2 * k2 * _normal(a2), k2), (l3 / 2 * k3 * _normal(a3), k3)]
    second = [
        (-l1 / 2 * _unit(a1), 0.0),
        (-l1 * _unit(a1) + l2 / 2 * (c2 * _normal(a2) - k2**2 * _unit(a2)), c2),
        (l3 / 2 * (c3 * _normal(a3) - k3**2 * _unit(a3)), c3),
    ]
    return tuple(np.concatenate([[*xy, a] for xy, a in rows]) for rows in (first, second))


def start(values: Mapping[str, float] = SI, crank: float = 1.0, rate: float = 0.0) -> dict[str, np.ndarray]:
    """q0 and p0 for a crank of this angle and rate."""
    q = configuration(crank, values)
    return {"q0": q, "p0": masses(values) * derivatives(q, values)[0] * rate}


def exact_configurations(
    times: np.ndarray, values: Mapping[str, float] = SI, crank: float = 1.0, rate: float = 0.0
) -> np.ndarray:
    """q at these times by the equation of motion of the crank's angle alone, J.M J a'' = J.F - a'^2 J.M J'."""
    mass = masses(values)
    weight = np.zeros(9)
    weight[1::3] = -values["g"] * mass[1::3]

    def acceleration(_, crank_and_rate):
        a, w = crank_and_rate
        J, J_slope = derivatives(configuration(a, values), values)
        force = weight + np.asarray(motor_and_friction(J * w, values["torque"], values["c"]), dtype=float)
        return [w, (J @ force - w**2 * (mass * J) @ J_slope) / ((mass * J) @ J)]

    solution = solve_ivp(
        acceleration, (0.0, float(times[-1])), [crank, rate], method="DOP853", rtol=1e-12, atol=1e-12, t_eval=times
    )
    return np.array([configuration(a, values) for a in solution.y[0]])
