"""Points of the motion, and partial steps from one to another: Phi^partial of Algorithm 1 of Pekarek and Murphey (2014).

Like the driver, this knows no model (`_event_memory`).
"""

from __future__ import annotations

import numpy as np

from dalembert.contact._dense_newton import apart_as, compiled_as, newton
from dalembert.engine._kernel_call import call_kernel


@compiled_as("void", "point", "float64")
def place(events, point, t):
    """Put a state, and its time, where the kernels look for it; what they found is kept if it is the one that was there."""
    at, memory = events.at, events.memory
    moved = memory[at.t] != t
    memory[at.t] = t
    for k in range(2 * at.n):
        moved |= memory[at.state + k] != memory[point.state + k]
        memory[at.state + k] = memory[point.state + k]
    if moved:
        at.looked = at.measured = 0


@compiled_as("void", "point", "float64", from_python=True)
def observe(events, point, t):
    """phi and phi_dot at a point."""
    at, memory = events.at, events.memory
    place(events, point, t)
    if not at.looked:
        call_kernel(at.call_look, memory)
        at.looked = 1
    for k in range(at.m):
        memory[point.phi + k], memory[point.rate + k] = memory[at.phi + k], memory[at.rate + k]


@compiled_as("void")
def measure(events):
    """H, how far round-off blurs phi, and grad phi^T H_pp grad phi, at the point that was just placed."""
    if not events.at.measured:
        call_kernel(events.at.call_measure, events.memory)
        events.at.measured = 1


@compiled_as("void", "point", "point")
def copy(events, source, target):
    """The same state, phi and phi_dot at another point: all three lie behind each other."""
    for k in range(2 * (events.at.n + events.at.m)):
        events.memory[target.state + k] = events.memory[source.state + k]


@compiled_as("void", "int64", "int64", "int64")
def choose(events, vector, size, which):
    """A unit vector that selects one guard."""
    for k in range(size):
        events.memory[vector + k] = 1.0 if k == which else 0.0


@apart_as("boolean", "boolean", "point")
def end_flow(events, after, target):
    """The end of the partial step from HERE whose equations have just been solved; False if it is not finite."""
    at, memory = events.at, events.memory
    call_kernel(at.call_end_after if after else at.call_end, memory)
    total = 0.0
    for k in range(2 * at.n):
        memory[target.state + k] = memory[at.here.state + k] + memory[at.delta + k]
        total += memory[target.state + k]
    return np.isfinite(total)


@apart_as("boolean", "boolean", "float64", "float64", "point")
def flow(events, after, t, dt, target):
    """The partial step of length dt from HERE to `target`; False if its equations could not be solved."""
    at, memory = events.at, events.memory
    place(events, at.here, t)
    memory[at.dt] = dt
    equations = at.flow_after if after else at.flow
    call_kernel(equations.guess, memory)
    return newton(events, equations, dt) and end_flow(events, after, target)
