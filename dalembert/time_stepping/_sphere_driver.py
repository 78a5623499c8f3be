"""Time stepping of many spheres: cells find the contacts, projections in turn (Gauss-Seidel) solve them, in compiled code.

The step is that of `MoreauJean` with theta = 1/2 under constant forces. The laws of one contact have a diagonal matrix, so each
projection solves them at once, all others given: P_N <- prox(P_N - xi_N / G_N), P_F <- prox(P_F - gamma_F / G_F). Sweeps start
from the impulses of the step before, leave out contacts of bodies at which the last sweep changed nothing, and end when no
impulse changes by more than `TOLERANCE` of the largest, or after `SWEEPS` of them, which `run.stats` counts. Vectors have three
components; discs move in z = 0.
"""

from __future__ import annotations

import numpy as np

from dalembert.engine._compiled import compiled, internal
from dalembert.time_stepping._stepping_driver import DONE, FULL, LOGGED, NOT_FINITE, TOO_MANY

SWEEPS, TOLERANCE = 1000, 1e-9
SWEPT, LEFT = range(2)
"""Counters of a run beside LOGGED: sweeps, and steps that were not solved."""


@internal()
def bucket(a, b, c, count):
    """Where a cell is in a table whose length is a power of two."""
    return ((a * 73856093) ^ (b * 19349663) ^ (c * 83492791)) & (count - 1)


@internal()
def find(bodies, planes, size, axes, table, found):
    """List all pairs of bodies, and of planes and bodies, that overlap at the middle of the step; their number, or -1.

    A row of `found.pairs` is (a, b), with a = -1 - k for plane k; `normals` point from a to b. Pairs follow each other by b.
    """
    x, radii, (heads, following, cells) = bodies.middle, bodies.radii, table
    depth = axes - 2
    for k in range(len(heads)):
        heads[k] = -1
    count = 0
    for b in range(len(x)):
        found.first[b] = count
        for k in range(len(planes)):
            gap = planes[k, 0] * x[b, 0] + planes[k, 1] * x[b, 1] + planes[k, 2] * x[b, 2] - planes[k, 3] - radii[b]
            if gap <= 0.0:
                if count == len(found.pairs):
                    return -1
                found.pairs[count, 0], found.pairs[count, 1] = -1 - k, b
                for j in range(3):
                    found.normals[count, j] = planes[k, j]
                count += 1
        for j in range(3):
            cells[b, j] = int(np.floor(x[b, j] / size))
        ca, cb, cc = cells[b]
        for i in range(ca - 1, ca + 2):
            for j in range(cb - 1, cb + 2):
                for k in range(cc - depth, cc + depth + 1):
                    a = heads[bucket(i, j, k, len(heads))]
                    while a >= 0:
                        if cells[a, 0] == i and cells[a, 1] == j and cells[a, 2] == k:
                            r0, r1, r2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
                            apart = np.sqrt(r0 * r0 + r1 * r1 + r2 * r2)
                            if 0.0 < apart <= radii[a] + radii[b]:
                                if count == len(found.pairs):
                                    return -1
                                found.pairs[count, 0], found.pairs[count, 1] = a, b
                                found.normals[count, 0] = r0 / apart
                                found.normals[count, 1] = r1 / apart
                                found.normals[count, 2] = r2 / apart
                                count += 1
                        a = following[a]
        own = bucket(ca, cb, cc, len(heads))
        following[b], heads[own] = heads[own], b
    found.first[len(x)] = count
    return count


@internal()
def velocities(bodies, a, b, n, slip):
    """gamma_N of a pair, and gamma_F into `slip`: v_b - v_a, less the normal part, - (R_a w_a + R_b w_b) x n."""
    u0, u1, u2 = bodies.v[b, 0], bodies.v[b, 1], bodies.v[b, 2]
    w0, w1, w2 = bodies.radii[b] * bodies.w[b, 0], bodies.radii[b] * bodies.w[b, 1], bodies.radii[b] * bodies.w[b, 2]
    if a >= 0:
        u0, u1, u2 = u0 - bodies.v[a, 0], u1 - bodies.v[a, 1], u2 - bodies.v[a, 2]
        R = bodies.radii[a]
        w0, w1, w2 = w0 + R * bodies.w[a, 0], w1 + R * bodies.w[a, 1], w2 + R * bodies.w[a, 2]
    normal = u0 * n[0] + u1 * n[1] + u2 * n[2]
    slip[0] = u0 - normal * n[0] - (w1 * n[2] - w2 * n[1])
    slip[1] = u1 - normal * n[1] - (w2 * n[0] - w0 * n[2])
    slip[2] = u2 - normal * n[2] - (w0 * n[1] - w1 * n[0])
    return normal


@internal()
def push(bodies, a, b, n, normal, d):
    """Change the velocities of a pair by an impulse along n and d across it."""
    for body, sign in ((b, 1.0), (a, -1.0)):
        if body >= 0:
            m, arm = sign / bodies.masses[body], bodies.radii[body] / bodies.inertias[body]
            for j in range(3):
                bodies.v[body, j] += m * (normal * n[j] + d[j])
            bodies.w[body, 0] -= arm * (n[1] * d[2] - n[2] * d[1])
            bodies.w[body, 1] -= arm * (n[2] * d[0] - n[0] * d[2])
            bodies.w[body, 2] -= arm * (n[0] * d[1] - n[1] * d[0])


@internal()
def inherit(found, before, count):
    """Start from the impulses that the same pairs had in the step before; no impulses of the others."""
    for k in range(count):
        a, b = found.pairs[k, 0], found.pairs[k, 1]
        for j in range(4):
            found.impulses[k, j] = 0.0
        for old in range(before.first[b], before.first[b + 1]):
            if before.pairs[old, 0] == a:
                for j in range(4):
                    found.impulses[k, j] = before.impulses[old, j]
        along = 0.0  # the plane across the normal has turned with it
        for j in range(3):
            along += found.impulses[k, 1 + j] * found.normals[k, j]
        for j in range(3):
            found.impulses[k, 1 + j] -= along * found.normals[k, j]


@internal()
def project(bodies, found, k, mu, slip):
    """Solve the laws of one contact; the largest change of its impulses."""
    a, b, n, P = found.pairs[k, 0], found.pairs[k, 1], found.normals[k], found.impulses[k]
    G_N = 1.0 / bodies.masses[b] + (1.0 / bodies.masses[a] if a >= 0 else 0.0)
    G_F = G_N + bodies.radii[b] ** 2 / bodies.inertias[b] + (bodies.radii[a] ** 2 / bodies.inertias[a] if a >= 0 else 0.0)
    normal = max(0.0, P[0] - (velocities(bodies, a, b, n, slip) - found.bounce[k]) / G_N)
    change = abs(normal - P[0])
    size = 0.0
    for j in range(3):
        slip[j] = P[1 + j] - slip[j] / G_F
        size += slip[j] ** 2
    size = np.sqrt(size)
    scale = 1.0 if size <= mu * normal else mu * normal / size
    for j in range(3):
        slip[j] = scale * slip[j] - P[1 + j]
        change = max(change, abs(slip[j]))
        P[1 + j] += slip[j]
    push(bodies, a, b, n, normal - P[0], slip)
    P[0] = normal
    return change


@internal()
def solve(bodies, found, count, mu, e, h, gravity, slip):
    """The impulses of all contacts of a step; how many sweeps they took."""
    for k in range(count):
        a, b, n = found.pairs[k, 0], found.pairs[k, 1], found.normals[k]
        found.bounce[k] = e * max(0.0, -velocities(bodies, a, b, n, slip))
    for body in range(len(bodies.v)):
        for j in range(3):
            bodies.v[body, j] += h * gravity[j]
    for k in range(count):
        push(bodies, found.pairs[k, 0], found.pairs[k, 1], found.normals[k], found.impulses[k, 0], found.impulses[k, 1:])
    least, moved = 0.0, bodies.moved
    for body in range(len(moved)):
        moved[body] = 0
    for sweep in range(SWEEPS):
        settled, largest = True, 0.0
        for k in range(count):
            a, b = found.pairs[k, 0], found.pairs[k, 1]
            touched = moved[b] >= sweep or (a >= 0 and moved[a] >= sweep)
            if touched and project(bodies, found, k, mu, slip) > least:
                settled, moved[b] = False, sweep + 1
                if a >= 0:
                    moved[a] = sweep + 1
            largest = max(largest, found.impulses[k, 0])
        if settled:
            return sweep + 1
        least = TOLERANCE * largest
    return SWEEPS + 1


@compiled()
def advance_spheres(
    bodies, planes, table, found, before, all_counts, tally, laws, store, log, last_step, save_every, log_every, final, t0
):
    """Steps until `last_step`, or until the log is full or one fails; contacts of every `log_every`-th step are logged."""
    h, size, mu, e = laws[0], laws[1], laws[2], laws[3]
    gravity, slip, axes, counts = laws[4:7], laws[7:10], int(laws[10]), all_counts[0]
    while counts.steps_done < last_step:
        if tally[LOGGED] + len(found.pairs) > len(log):
            return FULL
        for b in range(len(bodies.x)):
            for j in range(3):
                bodies.middle[b, j] = bodies.x[b, j] + h / 2 * bodies.v[b, j]
                bodies.old[b, j], bodies.old[b, 3 + j] = bodies.v[b, j], bodies.w[b, j]
        count = find(bodies, planes, size, axes, table, found)
        if count < 0:
            return TOO_MANY
        inherit(found, before, count)
        sweeps = solve(bodies, found, count, mu, e, h, gravity, slip)
        tally[SWEPT] += sweeps
        tally[LEFT] += sweeps > SWEEPS
        total = 0.0
        for b in range(len(bodies.x)):
            for j in range(3):
                bodies.x[b, j] += h / 2 * (bodies.old[b, j] + bodies.v[b, j])
                bodies.turned[b, j] += h / 2 * (bodies.old[b, 3 + j] + bodies.w[b, j])
                total += bodies.x[b, j] + bodies.w[b, j]
            before.first[b + 1] = found.first[b + 1]
        if not np.isfinite(total):
            return NOT_FINITE
        for k in range(count):
            for j in range(2):
                before.pairs[k, j] = found.pairs[k, j]
            for j in range(4):
                before.impulses[k, j] = found.impulses[k, j]
        counts.steps_done += 1
        step = counts.steps_done
        if step % log_every == 0 or step == final:
            note(found, count, tally, log, t0 + step * h - h, t0 + step * h)
        if step % save_every == 0:
            save(bodies, axes, store[counts.saved])
            counts.saved += 1
    return DONE


@internal()
def note(found, count, tally, log, begin, end):
    """Log the contacts of a step that act: which, other, begin, end, P_N, P_F."""
    for k in range(count):
        if found.impulses[k, 0] > 0.0:
            row = log[tally[LOGGED]]
            row[0], row[1], row[2], row[3] = found.pairs[k, 1], found.pairs[k, 0], begin, end
            for j in range(4):
                row[4 + j] = found.impulses[k, j]
            tally[LOGGED] += 1


@compiled()
def save(bodies, axes, row):
    """Positions and momenta, body by body: as many components as there are axes, then angles."""
    angles = 2 * axes - 3
    each, half = axes + angles, len(row) // 2
    for b in range(len(bodies.x)):
        for j in range(axes):
            row[each * b + j] = bodies.x[b, j]
            row[half + each * b + j] = bodies.masses[b] * bodies.v[b, j]
        for j in range(angles):
            row[each * b + axes + j] = bodies.turned[b, 3 - angles + j]
            row[half + each * b + axes + j] = bodies.inertias[b] * bodies.w[b, 3 - angles + j]
