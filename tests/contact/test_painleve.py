"""Where several contacts slide at once, a run stops only if the rigid model has no or several motions."""

import itertools

import numpy as np
import pytest
from contact_models import biped

import dalembert as da
from dalembert.contact._complementarity import PlanarFriction

METHODS = (da.NonsmoothRattle(), da.MoreauJean())


def solutions_of(M, b):
    """All z >= 0 with w = b + M z >= 0 and z w = 0, of the complementary bases that have one."""
    found = []
    for basis in itertools.product((False, True), repeat=len(b)):
        inside, z = np.array(basis), np.zeros(len(b))
        if np.any(inside):
            own = M[np.ix_(inside, inside)]
            if np.linalg.cond(own) > 1e10:
                continue
            z[inside] = -np.linalg.solve(own, b[inside])
        if np.all(z >= -1e-9) and np.all((b + M @ z)[~inside] >= -1e-9):
            found.append(z)
    return found


def motions(J, free, mu, signs):
    """The accelerations of unit masses under contacts with normals J[0] and tangents J[1], from complementarity problems.

    Contacts at rest have T = T+ - T-, and 0 <= lam + D^T a _|_ T >= 0, 0 <= mu N - T+ - T- _|_ lam >= 0.
    D. E. Stewart and J. C. Trinkle, Int. J. Numer. Methods Eng. 39 (1996) 2673-2691, for accelerations.
    """
    forces, rows, size = [], [], sum(1 if sign else 4 for sign in signs)
    extra, k = np.zeros((size, size)), 0
    for n, t, coefficient, sign in zip(*J, mu, signs, strict=True):
        if sign:
            forces, rows, k = [*forces, n - sign * coefficient * t], [*rows, n], k + 1
        else:
            forces, rows = [*forces, n, t, -t, 0 * t], [*rows, n, t, -t, 0 * t]
            extra[k + 1 : k + 3, k + 3], extra[k + 3, k : k + 3] = 1, (coefficient, -1, -1)
            k += 4
    E, W = np.array(rows), np.array(forces)
    different = []
    for z in solutions_of(E @ W.T + extra, E @ free):
        a = free + W.T @ z
        if all(np.abs(a - other).max() > 1e-6 for other in different):
            different.append(a)
    return different


@pytest.mark.parametrize("signs", [(1,), (1, -1), (1, 0), (1, -1, 1), (-1, 0, 1)], ids=str)
def test_motions_are_counted_as_complementarity_problems_count_them(signs):
    """A body with three coordinates and random directions; a wall that slides alone has one motion if N can push."""
    rng, m, several = np.random.default_rng(1), len(signs), 0
    for _ in range(150):
        J, free, mu = rng.normal(size=(2, m, 3)), rng.normal(size=3), rng.uniform(0, 2, m)
        rows = np.concatenate(J)
        law = PlanarFriction(rows @ rows.T, rows @ free, np.arange(m), m + np.arange(m), mu, np.zeros(m))
        M = J[0] @ (J[0] - (mu * signs)[:, None] * J[1]).T
        if all(signs) and all(
            np.linalg.det(M[np.ix_(some, some)]) > 0 for k in range(m) for some in itertools.combinations(range(m), k + 1)
        ):
            assert len(motions(J, free, mu, signs)) == 1  # the theorem
        if all(signs) or not law._is_unique(np.array(signs)):
            one = len(motions(J, free, mu, signs)) == 1
            assert law.has_one_motion(np.array(signs)) == one
            several += not one
    assert several > 10


def sliding_body(arms, normals, tangents):
    """A body (x, y, angle) of unit mass and inertia on two planes through `arms`, points of it, at the start."""

    def moved(q):
        c, s = np.cos(q[2]), np.sin(q[2])
        return [(q[0] + c * x - s * y - x, q[1] + s * x + c * y - y) for x, y in arms.reshape(2, 2)]

    def slip(q, v):
        points = [(x + a, y + b) for (x, y), (a, b) in zip(moved(q), arms.reshape(2, 2), strict=True)]
        return [
            t[0] * (v[0] - (y - q[1]) * v[2]) + t[1] * (v[1] + (x - q[0]) * v[2])
            for (x, y), t in zip(points, tangents, strict=True)
        ]

    return da.Lagrangian(
        lambda q, v, force: v @ v / 2 + q @ force,
        3,
        unilateral=lambda q: [n[0] * x + n[1] * y for (x, y), n in zip(moved(q), normals, strict=True)],
        friction=lambda mu: mu,
        slip=slip,
        restitution=0.0,
        params={"force": np.zeros(3), "mu": 1.0},
    )


PLANES = {
    "two feet that are dragged over ground": ((-0.6, -1.5, 0.8, -1.5), (0.0, 0.0)),
    "a ladder on a wall and a floor": ((1.5, -1.2, -1.5, 1.2), (0.0, -np.pi / 2)),
    "a cart with blocked wheels on a kink": ((-0.9, -0.7, 0.5, -2.0), (0.4, -0.3)),
}


@pytest.mark.parametrize("method", [*METHODS, da.CVA()], ids=str)
@pytest.mark.parametrize("planes", PLANES)
def test_two_contacts_that_slide_stop_a_run_where_there_are_no_or_several_motions(planes, method):
    arms, angles = (np.array(part) for part in PLANES[planes])
    normals, tangents = np.array([-np.sin(angles), np.cos(angles)]).T, np.array([np.cos(angles), np.sin(angles)]).T
    system, rng, counts = sliding_body(arms, normals, tangents), np.random.default_rng(3), {True: 0, False: 0}
    points = arms.reshape(2, 2)
    turned = np.column_stack([-points[:, 1], points[:, 0]])
    J = np.array([np.column_stack([d, np.sum(d * turned, axis=1)]) for d in (normals, tangents)])
    along = np.linalg.svd(J[0])[2][2]  # the only motion that leaves no plane
    for _ in range(40):
        v, force, mu = along * rng.choice([-5, 5]), rng.normal(size=3) * 10 - [0, 20, 0], rng.uniform(0.1, 3)
        signs = np.sign(J[1] @ v).astype(int)
        turning = np.array(
            [[-(v[2] ** 2) * d @ point for d, point in zip(side, points, strict=True)] for side in (normals, tangents)]
        )
        free = force + np.linalg.lstsq(J[0], turning[0], rcond=None)[0]  # normal accelerations of points on circles
        found = motions(J, free, [mu, mu], signs)
        start = {"q0": [0, 0, 0], "v0": v, "params": {"force": force, "mu": mu}}
        run = da.simulate(system, method, **start, h=1e-6, steps=2, on_failure="return")
        if isinstance(method, da.CVA) and np.all(J[0] @ free > 0):
            assert run.status == "done"  # its contacts begin with a hit or a force that presses: it flies
        elif len(found) != 1:
            assert run.status == "failed" and "Painleve" in run.message, (found, run.status)
        else:
            assert run.status == "done", run.message
            change = 2e-6 * (found[0] - free + force)
            if not isinstance(method, da.MoreauJean):  # which does not see contacts that curve away within half a step
                assert np.abs(run.v[-1] - v - change).max() < 1e-3 * np.abs(change).max()
        counts[len(found) == 1] += 1
    assert min(counts.values()) >= 3, counts


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_foot_above_the_ground_and_one_that_sticks_have_no_paradox(method):
    """A biped trips over its front foot; the other one, 9 cm above the ground, would have the paradox if it were there."""
    values = {"a": 0.14825457700044203, "b": 0.8425938536168702, "J": 0.4540284412773389, "mu": 0.8}
    start = {"q0": [0, 1.0095, 0.2972], "v0": [1.3346, -0.4709, 0.1529], "params": values, "t1": 0.4}
    run = da.simulate(biped(), method, **start, h=1e-3)
    other = da.simulate(biped(), da.CVA(), **start, h=1e-3)
    assert np.abs(run.q[-1] - other.q[-1]).max() < 5e-3


@pytest.mark.parametrize("method", [*METHODS, da.CVA()], ids=str)
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e9])
def test_a_start_is_judged_in_its_first_step_whatever_units_the_wall_has(method, unit):
    """A rod's tip slides at the start, with a paradox; what comes near at 1 mm/s instead is an impact, which has a law."""
    system = da.Lagrangian(
        lambda q, v: (v[0] ** 2 + v[1] ** 2) / 2 + v[2] ** 2 / 6 - 10 * q[1],
        3,
        unilateral=lambda q: unit * (q[1] - np.sin(q[2])),
        friction=5 / 3 * unit,  # |T| <= mu N |grad phi|
        slip=lambda q, v: v[0] + np.sin(q[2]) * v[2],
        restitution=0.0,
    )
    angle, rng = np.arctan(2), np.random.default_rng(5)
    start = {"q0": [0, np.sin(angle), angle], "h": 1e-6, "steps": 1, "on_failure": "return"}
    for w in rng.normal(size=10):
        run = da.simulate(system, method, v0=[-30, np.cos(angle) * w, w], **start)
        assert "Painleve" in run.message and len(run.t) == 1
    assert da.simulate(system, method, v0=[-30, -1e-3, 0], **start).status == "done"


def cut_rod(pieces, mu):
    """A rod of length 2 that leans on its tip at tan(angle) = 2, cut into pieces that are welded together by constraints."""
    from_tip = -1 + (2 * np.arange(pieces) + 1) / pieces

    def welds(q):
        bodies = q.reshape(pieces, 3)
        return [
            row
            for (x0, y0, a0), (x1, y1, a1), u0, u1 in zip(bodies, bodies[1:], from_tip, from_tip[1:], strict=False)
            for row in (x1 - x0 - (u1 - u0) * np.cos(a0), y1 - y0 - (u1 - u0) * np.sin(a0), a1 - a0)
        ]

    def energies(q, v):
        x, y, turns = v.reshape(pieces, 3).T
        return (x @ x + y @ y) / (2 * pieces) + turns @ turns / (6 * pieces**3) - 10 * q[1::3].sum() / pieces

    angle = np.arctan(2)
    at = [[u * np.cos(angle), (1 + u) * np.sin(angle), angle] for u in from_tip]
    rod = da.Lagrangian(
        energies,
        3 * pieces,
        holonomic=welds if pieces > 1 else None,
        unilateral=lambda q: q[1] - np.sin(q[2]) / pieces,
        friction=mu,
        slip=lambda q, v: v[0] + np.sin(q[2]) / pieces * v[2],
        restitution=0.0,
    )
    return rod, np.concatenate(at), np.tile([-30.0, 0, 0], pieces)


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("mu", [1.2, 1.45, 5 / 3])
def test_a_rod_is_judged_alike_whatever_number_of_constraints_holds_it_together(method, mu):
    """A rod of 7 pieces has 18 of them; the paradox begins at mu = (1 + 3 cos^2) / (3 sin cos) = 4/3."""
    found = []
    for pieces in (1, 7):
        rod, q0, v0 = cut_rod(pieces, mu)
        run = da.simulate(rod, method, q0=q0, v0=v0, h=1e-6, steps=3, on_failure="return")
        found.append("Painleve" in run.message if run.status == "failed" else False)
    assert found == [mu > 4 / 3] * 2
