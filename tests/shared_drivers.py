"""The drivers that Numba compiles for a minute on a new machine: each is compiled by one process of `make test`.

Processes that start together would all compile the same ones first. Here each takes one that nobody has taken yet, and goes on
when all are on disk.
"""

import os
import time
from pathlib import Path

import numpy as np

import dalembert as da

PATIENCE = 300.0
"""Seconds after which a process compiles for itself what another one has not finished."""


def falling():
    return da.Hamiltonian(lambda q, p: p @ p / 2 + q[0], dim=1, unilateral=lambda q: [q[0]])


def steps():
    da.simulate(da.problems.pendulum(), da.Rattle(), h=0.01, steps=2)


def impacts():
    da.simulate(falling(), da.CVA(), q0=[1e-3], p0=[0.0], h=0.01, steps=10)


def time_stepping():
    da.simulate(falling(), da.MoreauJean(), q0=[1e-3], p0=[0.0], h=0.01, steps=10)


def lanes():
    da.simulate_many(da.problems.pendulum(), da.Rattle(), params={"g": np.ones(4)}, h=0.01, steps=2, simd=True)


def derivatives():
    da.sensitivities(da.problems.pendulum(), da.Rattle(), wrt="g", h=0.01, steps=2)
    da.gradient(lambda q: q[1], da.problems.pendulum(), da.Rattle(), wrt="g", h=0.01, steps=2)


def spheres():
    apart = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    da.simulate(da.Spheres([0.05, 0.05], masses=[0.2, 0.5]), da.MoreauJean(), q0=apart, v0=np.zeros(6), h=1e-3, steps=2)


DRIVERS = (steps, time_stepping, spheres, impacts, lanes, derivatives)
"""In an order in which what one of them shares with another is there before that one is begun."""


def compile_together(place: Path):
    """Compile what no other process that shares this folder compiles, then wait for the others."""
    place.mkdir(exist_ok=True)
    for make in DRIVERS:
        try:
            os.close(os.open(place / f"{make.__name__} taken", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        try:
            make()
        finally:
            (place / f"{make.__name__} done").touch()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and not all((place / f"{make.__name__} done").exists() for make in DRIVERS):
        time.sleep(0.1)
