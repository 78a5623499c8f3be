"""Planar trees and loops of bodies in absolute angles, by Dormand and Prince's method of order 8: a reference in Numba.

A body k hangs at its own point `own` on the point `hinge` of its parent, both in the frames of their bodies, whose origins are
the centres of mass; loops join two more points. Springs, dampers and torques act between a body and its parent.
"""

from __future__ import annotations

import numba
import numpy as np
from scipy.integrate import DOP853

GRAVITY = 9.81
STEP, LONGEST = 0.05, 5_000
"""The step in units of the fastest rate, and the number of steps after which they are not made shorter any more."""

STAGES = DOP853.n_stages
A, B = np.ascontiguousarray(DOP853.A[:STAGES, :STAGES]), np.array(DOP853.B)

jit = numba.njit(cache=True)  # loops in place of sums of arrays are compiled in a third of the time


@jit
def add_turned(body, x, y, sign, angles, rates, slope, bias):
    """Add a vector (x, y) that a body turns to the derivative of a place by angles, and to its acceleration without theirs."""
    if body >= 0:
        c, s = np.cos(angles[body]), np.sin(angles[body])
        u, w = sign * (c * x - s * y), sign * (s * x + c * y)
        slope[0, body] -= w
        slope[1, body] += u
        bias[0] -= rates[body] ** 2 * u
        bias[1] -= rates[body] ** 2 * w


@jit
def add_centre(k, body, sign, parents, hinge, own, angles, rates, slope, bias):
    """The same for the centre of a body of mechanism k: the sum of vectors along its path to the ground."""
    while body >= 0:
        add_turned(parents[body], hinge[k, body, 0], hinge[k, body, 1], sign, angles, rates, slope, bias)
        add_turned(body, own[k, body, 0], own[k, body, 1], -sign, angles, rates, slope, bias)
        body = parents[body]


@jit
def equations(
    k, parents, loops, m, J, hinge, own, ends, torque, stiffness, rest, damping, angles, rates, mass, force, G, bias
):  # fmt: skip
    """M, f, G, b of M a = f - G^T lam, G a = b, for mechanism k, into arrays of zeros."""
    n = len(parents)
    slope, place_bias = np.zeros((2, n)), np.zeros(2)
    for body in range(n):
        slope[:], place_bias[:] = 0.0, 0.0
        add_centre(k, body, 1.0, parents, hinge, own, angles, rates, slope, place_bias)
        for i in range(n):
            force[i] -= m[k, body] * (slope[0, i] * place_bias[0] + slope[1, i] * (place_bias[1] + GRAVITY))
            for j in range(n):
                mass[i, j] += m[k, body] * (slope[0, i] * slope[0, j] + slope[1, i] * slope[1, j])
        mass[body, body] += J[k, body]
        turn, rate, parent = angles[body], rates[body], parents[body]
        if parent >= 0:
            turn, rate = turn - angles[parent], rate - rates[parent]
        moment = torque[k, body] - stiffness[k, body] * (turn - rest[k, body]) - damping[k, body] * rate
        force[body] += moment
        if parent >= 0:
            force[parent] -= moment
    for loop in range(len(loops)):
        slope[:], place_bias[:] = 0.0, 0.0
        for side in range(2):
            body, sign, end = loops[loop, side], 1.0 - 2.0 * side, ends[k, 2 * loop + side]
            add_centre(k, body, sign, parents, hinge, own, angles, rates, slope, place_bias)
            add_turned(body, end[0], end[1], sign, angles, rates, slope, place_bias)
        for row in range(2):
            bias[2 * loop + row] = -place_bias[row]
            for i in range(n):
                G[2 * loop + row, i] = slope[row, i]


@jit
def solve(matrix, x):
    """Gauss elimination with row pivots, over the right-hand side x."""
    n = len(x)
    for j in range(n):
        pivot = j + np.argmax(np.abs(matrix[j:, j]))
        for i in range(j, n):
            matrix[j, i], matrix[pivot, i] = matrix[pivot, i], matrix[j, i]
        x[j], x[pivot] = x[pivot], x[j]
        for i in range(j + 1, n):
            factor = matrix[i, j] / matrix[j, j]
            x[i] -= factor * x[j]
            for c in range(j + 1, n):
                matrix[i, c] -= factor * matrix[j, c]
    for i in range(n - 1, -1, -1):
        for c in range(i + 1, n):
            x[i] -= matrix[i, c] * x[c]
        x[i] /= matrix[i, i]


@jit
def slope(k, parents, loops, m, J, hinge, own, ends, torque, stiffness, rest, damping, y, out):
    """The right-hand side for y = (angles, rates), into `out`."""
    n, rows = len(parents), 2 * len(loops)
    matrix, x = np.zeros((n + rows, n + rows)), np.zeros(n + rows)
    equations(
        k, parents, loops, m, J, hinge, own, ends, torque, stiffness, rest, damping, y[:n], y[n:],
        matrix[:n, :n], x[:n], matrix[n:, :n], x[n:],
    )  # fmt: skip
    for row in range(n, n + rows):
        for i in range(n):
            matrix[i, row] = matrix[row, i]
    solve(matrix, x)
    for i in range(n):
        out[i], out[n + i] = y[n + i], x[i]


@jit
def add(y, factor, slope):
    """Add a multiple of a slope to y."""
    for i in range(len(y)):
        y[i] += factor * slope[i]


@jit
def largest_of(y):
    """The largest absolute value, NaN if one of them is."""
    largest = 0.0
    for value in y:
        if abs(value) > largest or np.isnan(value):
            largest = abs(value)
    return largest


@jit
def after(
    k, parents, loops, m, J, hinge, own, ends, torque, stiffness, rest, damping, start, duration, fastest
):  # fmt: skip
    """y after a time, and the largest of |rate| and sqrt |acceleration|; again with shorter steps where these have grown."""
    n, slopes = len(parents), np.zeros((STAGES, len(start)))
    while True:
        steps = min(max(int(np.ceil(duration * fastest / STEP)), 4), LONGEST)
        h, y, largest = duration / steps, start.copy(), fastest
        for _ in range(steps):
            for i in range(STAGES):
                at = y.copy()
                for j in range(i):
                    add(at, h * A[i, j], slopes[j])
                slope(k, parents, loops, m, J, hinge, own, ends, torque, stiffness, rest, damping, at, slopes[i])
            rate = max(largest_of(y[n:]), np.sqrt(largest_of(slopes[0, n:])))
            largest = max(largest, min(rate, 1e9))
            for i in range(STAGES):
                add(y, h * B[i], slopes[i])
        exploded = not np.isfinite(largest_of(y))
        if steps == LONGEST or not (exploded or largest > 1.5 * fastest):
            return y, largest
        fastest = 2.0 * fastest if exploded else largest
