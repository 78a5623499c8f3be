"""Small models of every kind, which the doors of the table take, the command included (`parity_models.py:pendulum`)."""

import numpy as np

import dalembert as da

pendulum = da.Hamiltonian(
    lambda q, p, m, g: p @ p / (2 * m) + m * g * q[1], dim=2, holonomic=lambda q: [q @ q - 1], params={"m": 0.2, "g": 9.81}
)
driven = da.Lagrangian(
    lambda t, q, v, a: 0.1 * v @ v + a * np.cos(t) * q[0] - 0.2 * q[1], dim=2, params={"a": 0.3},
    holonomic=lambda t, q: [q @ q - (1 + 0.1 * t) ** 2],
)  # fmt: skip
sleigh = da.Lagrangian(
    lambda q, v: 0.1 * v[:2] @ v[:2] + 1e-3 * v[2] ** 2 - 0.3 * q[0], dim=3,
    nonholonomic=lambda q, v: [np.sin(q[2]) * v[0] - np.cos(q[2]) * v[1]],
)  # fmt: skip
curved = da.ODAE(
    v=lambda z: z, f=lambda y, z: [-y[0], -0.1 * z[1]], r=lambda y, lam: -(lam[0] + 0.2 * lam[0] ** 3) * y,
    g=lambda y: [(y @ y - 1) / 2], dim_y=2, dim_z=2,
)  # fmt: skip
growth = da.problems.index_two_growth().system
ball = da.Lagrangian(
    lambda q, v: 0.1 * v @ v - 1.962 * q[1], dim=2, unilateral=lambda q: q[1], restitution=0.6, friction=0.3,
)  # fmt: skip
ladder = da.Lagrangian(
    lambda q, v: 0.1 * v[:2] @ v[:2] + 3e-3 * v[2] ** 2 - 1.962 * q[1], dim=3, params={"mu": 0.3}, friction=lambda mu: [mu, mu],
    unilateral=lambda q: [q[1] - 0.4 * np.sin(q[2]), q[0] - 0.3 * np.cos(q[2])],
    slip=lambda q, v: [v[0] + 0.4 * np.sin(q[2]) * v[2], v[1] + 0.3 * np.cos(q[2]) * v[2]],
)  # fmt: skip
"""A rod that falls onto the ground and leans on a wall."""
free = da.Hamiltonian(lambda q, p: p @ p / 2 + q @ q / 2, dim=1)
disks = da.Spheres([0.1, 0.1], masses=[0.2, 0.2], gravity=(0, -9.81), planes=[((0, 1), 0)], friction=0.3, space=2)

door = da.Mechanism(gravity=(0, -9.81), coordinates="planar", params={"load": 0.2})
"""A rod on two hinges of one axis, which state more than is independent, with another rod on it."""
_leaf, _handle = door.rod("leaf", (0, 0), (0.3, 0.1), mass="load"), door.rod("handle", (0.3, 0.1), (0.3, 0.4), mass=0.4)
for _ in range(2):
    door.revolute(door.ground, _leaf, at=(0, 0))
door.revolute(_leaf, _handle, at=(0.3, 0.1))
