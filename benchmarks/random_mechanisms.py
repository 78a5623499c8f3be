"""Random planar mechanisms: every run is right against an independent solution, or refused; none is slow, none silently wrong.

python benchmarks/random_mechanisms.py                   200 structures with 512 sets of numbers each, about 20 minutes of CPU
python benchmarks/random_mechanisms.py --structures 8    a look
python benchmarks/random_mechanisms.py --rows FILE       keeps a row for each structure and goes on where it was stopped

A structure is a tree of bodies that are pinned to each other or to the ground, with up to two more pins that close loops. Its
members differ in everything else: masses over six decades, inertias, places of pins, motors, springs and dampers in the joints,
and starts. dalembert gets coordinates (x, y, theta) for each body and a pair of equations for each pin. The reference has
absolute angles as its only coordinates, explicit mass matrices, and Dormand and Prince's method of order 8.
"""

from __future__ import annotations

import argparse
import collections
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import planar_mechanics
from common import note, table

import dalembert as da

GRAVITY = 9.81
METHODS = {
    da.LobattoIIIAB(3): 4, da.Rattle(): 2, da.GaussLobattoSPARK(2): 4, da.RadauIIA(2, projected=True): 3, da.LobattoIIIAB(4): 6,
}  # fmt: skip
"""With their orders; structures take them in turn."""

STEPS = 12
COARSEST, FINEST = 0.25, 2.5e-4
"""Step sizes, in units of the fastest rate of a member."""

LARGEST_ERROR = 5.0
ROUND_OFF = 1e-9
"""A run is right if its error, relative to the mechanism's size, is below LARGEST_ERROR (h w)^order + ROUND_OFF,
and ten times what the reference is off."""


def turned(angle: np.ndarray, point: np.ndarray) -> np.ndarray:
    """A vector of a body in space: the body is turned by this angle."""
    c, s = np.cos(angle)[..., None], np.sin(angle)[..., None]
    return np.concatenate([c * point[..., :1] - s * point[..., 1:], s * point[..., :1] + c * point[..., 1:]], axis=-1)


def _across(rate: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """The velocity of a point at the end of an arm that turns."""
    return rate[:, None] * np.stack([-arm[:, 1], arm[:, 0]], axis=1)


@dataclass(frozen=True)
class Structure:
    """Which bodies hang on which; -1 is the ground."""

    parents: tuple[int, ...]
    loops: tuple[tuple[int, int], ...]

    @classmethod
    def random(cls, rng: np.random.Generator) -> Structure:
        bodies = int(rng.integers(2, 7))
        parents = (-1, *(int(rng.integers(-1, k)) for k in range(1, bodies)))
        loops: list[tuple[int, int]] = []
        for _ in range(int(rng.integers(0, 8))):
            i, j = int(rng.integers(0, bodies)), int(rng.integers(-1, bodies))
            neighbours = i == j or (j >= 0 and parents[j] == i) or parents[i] == j
            if not neighbours and not {(i, j), (j, i)} & set(loops) and len(loops) < min(2, (bodies - 1) // 2):
                loops.append((i, j))
        return cls(parents, tuple(loops))

    @property
    def bodies(self) -> int:
        return len(self.parents)

    @property
    def moves(self) -> bool:
        """Whether all bodies can move, and no equation follows from others: three bodies in a triangle may do neither."""
        try:
            some = Members.random(self, 4, np.random.default_rng(0))
        except np.linalg.LinAlgError:
            return False
        G = some.equations(some.angles, some.rates)[2]
        independent = not G.size or np.linalg.svd(G, compute_uv=False).min() > 1e-9
        return bool(independent and np.all(np.abs(some.rates) > 1e-9))


@dataclass
class Members:
    """The numbers of many mechanisms of one structure; the first axis counts them."""

    structure: Structure
    m: np.ndarray
    J: np.ndarray
    hinge: np.ndarray
    """Where a body is pinned to its parent, in the parent's frame."""
    own: np.ndarray
    """The same point in the body's own frame, whose origin is its centre of mass."""
    ends: np.ndarray
    """The two points that each loop joins, in their bodies' frames."""
    torque: np.ndarray
    stiffness: np.ndarray
    rest: np.ndarray
    damping: np.ndarray
    angles: np.ndarray
    rates: np.ndarray

    @classmethod
    def random(cls, structure: Structure, count: int, rng: np.random.Generator) -> Members:
        n = structure.bodies
        length = rng.uniform(0.05, 0.5, (count, n, 1))
        m = 0.2 * 10.0 ** rng.uniform(-3, 3, (count, n))
        J = m * length[..., 0] ** 2 / 12 * 10.0 ** rng.uniform(-1, 0.5, (count, n))
        hinge, own = length * rng.uniform(-1, 1, (2, count, n, 2)) / 2
        zero, angles = np.zeros((count, n)), rng.uniform(-np.pi, np.pi, (count, n))
        ends = length[:, :1] * rng.uniform(-1, 1, (count, 2 * len(structure.loops), 2))
        made = cls(structure, m, J, hinge, own, ends, zero, zero, angles, zero, angles, zero)
        made._close_loops()
        made._drive(rng)
        return made

    def _close_loops(self) -> None:
        """Put the second end of each loop where the first one is."""
        centres = self.centres(self.angles)
        for k, (i, j) in enumerate(self.structure.loops):
            place = centres[:, i] + turned(self.angles[:, i], self.ends[:, 2 * k])
            self.ends[:, 2 * k + 1] = place if j < 0 else turned(-self.angles[:, j], place - centres[:, j])

    def _drive(self, rng: np.random.Generator) -> None:
        """Motors, springs, dampers and rates that move a mechanism within a second, whatever its masses are."""
        shape = self.m.shape
        mass, _, G, _ = self.equations(self.angles, self.rates)
        free = np.linalg.inv(mass)
        normal = free @ G.transpose(0, 2, 1)
        mobility = free - normal @ np.linalg.solve(G @ normal, normal.transpose(0, 2, 1))
        relative = np.eye(shape[1]) - np.array([[float(i == p) for i in range(shape[1])] for p in self.structure.parents])
        felt = 1 / np.maximum(np.einsum("ki,nij,kj->nk", relative, mobility, relative), 1e-6 / self.J)  # inertia at a joint
        frequency = 10.0 ** rng.uniform(0, 1.3, shape)
        self.torque = felt * 10.0 ** rng.uniform(0, 1.5, shape) * rng.choice([-1.0, 0.0, 1.0], shape)
        self.stiffness = felt * frequency**2 * rng.choice([0.0, 1.0], shape)
        self.damping = 2 * rng.uniform(0, 0.7, shape) * felt * frequency * rng.choice([0.0, 1.0], shape)
        self.rest = self.angles @ relative.T + rng.uniform(-1, 1, shape)
        rates = (10.0 ** rng.uniform(-1, 1, shape) * rng.choice([-1.0, 1.0], shape))[..., None]
        for _ in range(3):  # again, for what rounding leaves
            rates = rates - normal @ np.linalg.solve(G @ normal, G @ rates)
        self.rates = rates[..., 0]

    def starts(self, system: da.Lagrangian) -> np.ndarray:
        """Which members may start: not those in singular positions, in which their multipliers are not determined."""
        q, v, params, allowed = self.coordinates(self.angles), self.velocities(), self.params, []
        for k in range(len(q)):
            try:
                da.simulate(
                    system,
                    da.Rattle(),
                    q0=q[k],
                    v0=v[k],
                    params={name: value[k] for name, value in params.items()},
                    h=1e-9,
                    steps=0,
                )
                allowed.append(True)
            except da.InconsistentStart:
                allowed.append(False)
        return np.array(allowed)

    def chosen(self, which: np.ndarray) -> Members:
        """Some of the members."""
        parts = {name: value[which] for name, value in vars(self).items() if name != "structure"}
        return Members(self.structure, **parts)

    # the reference: everything in absolute angles

    def centres(self, angles: np.ndarray) -> np.ndarray:
        """Of all bodies; each hangs on one that comes before it."""
        places: list[np.ndarray] = []
        for k, parent in enumerate(self.structure.parents):
            base = 0.0 if parent < 0 else places[parent]
            hinge = self.hinge[:, k] if parent < 0 else turned(angles[:, parent], self.hinge[:, k])
            places.append(base + hinge - turned(angles[:, k], self.own[:, k]))
        return np.stack(places, axis=1)

    @property
    def numbers(self) -> tuple[np.ndarray, ...]:
        """What the compiled reference is given."""
        structure = np.array(self.structure.parents), np.array(self.structure.loops, dtype=np.int64).reshape(-1, 2)
        own = self.m, self.J, self.hinge, self.own, self.ends, self.torque, self.stiffness, self.rest, self.damping
        return (*structure, *(np.ascontiguousarray(value) for value in own))

    def equations(self, angles: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """M, f, G, b of M a = f - G^T lam, G a = b."""
        (count, n), rows = angles.shape, 2 * len(self.structure.loops)
        sizes = ((count, n, n), (count, n), (count, rows, n), (count, rows))
        mass, force, G, bias = (np.zeros(size) for size in sizes)
        for k in range(count):
            planar_mechanics.equations(k, *self.numbers, angles[k], rates[k], mass[k], force[k], G[k], bias[k])
        return mass, force, G, bias

    def slope(self, y: np.ndarray) -> np.ndarray:
        """The right-hand side of the reference, for y = (angles, rates)."""
        numbers = self.numbers
        slopes = np.empty_like(y)
        for k, row in enumerate(y):
            planar_mechanics.slope(k, *numbers, row, slopes[k])
        return slopes

    def fastest(self) -> np.ndarray:
        """The largest rate at the start: of the linearised equations, of turning, and of the accelerations."""
        y = np.concatenate([self.angles, self.rates], axis=1)
        here, n = self.slope(y), self.m.shape[1]
        step = 1e-6 * np.maximum(1.0, np.abs(y))
        columns = []
        for k in range(2 * n):
            shifted = y.copy()
            shifted[:, k] += step[:, k]
            columns.append((self.slope(shifted) - here) / step[:, k, None])
        linear = np.max(np.abs(np.linalg.eigvals(np.stack(columns, axis=2))), axis=1)
        return np.maximum(linear, _turning(here, n))

    def reference(self, duration: float, fastest: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(x, y, theta) of all bodies after this time, how far longer steps are off it, and the largest rates."""
        n, start, numbers = self.m.shape[1], np.concatenate([self.angles, self.rates], axis=1), self.numbers
        fine, rough, largest = start.copy(), start.copy(), fastest.copy()
        for k in range(len(start)):
            rough[k], largest[k] = planar_mechanics.after(k, *numbers, start[k], duration, fastest[k])
            fine[k], _ = planar_mechanics.after(k, *numbers, start[k], duration, 1.7 * largest[k])
        wanted = self.coordinates(fine[:, :n])
        return wanted, np.max(np.abs(wanted - self.coordinates(rough[:, :n])), axis=1), largest

    def coordinates(self, angles: np.ndarray) -> np.ndarray:
        return np.concatenate([self.centres(angles), angles[..., None]], axis=2).reshape(len(angles), -1)

    def velocities(self) -> np.ndarray:
        """Of all coordinates: for every body the rate of its parent's place, and what turning adds."""
        places: list[np.ndarray] = []
        for k, parent in enumerate(self.structure.parents):
            velocity = -_across(self.rates[:, k], turned(self.angles[:, k], self.own[:, k]))
            if parent >= 0:
                arm = turned(self.angles[:, parent], self.hinge[:, k])
                velocity += places[parent] + _across(self.rates[:, parent], arm)
            places.append(velocity)
        return np.concatenate([np.stack(places, axis=1), self.rates[..., None]], axis=2).reshape(len(self.m), -1)

    # what dalembert gets

    @property
    def params(self) -> dict[str, np.ndarray]:
        count = len(self.m)
        names = ("m", "J", "hinge", "own", "ends", "torque", "stiffness", "rest", "damping")
        return {name: getattr(self, name).reshape(count, -1) for name in names if getattr(self, name).size}


def _turning(slope: np.ndarray, n: int) -> np.ndarray:
    """The largest of |rate| and sqrt |acceleration|."""
    return np.max(np.concatenate([np.abs(slope[:, :n]), np.sqrt(np.abs(slope[:, n:]))], axis=1), axis=1)


def model(structure: Structure, params: dict[str, np.ndarray]) -> da.Lagrangian:
    """The mechanism as a user would state it: three coordinates a body, two equations a pin."""
    n = structure.bodies

    def body(q, k):
        return (0.0, 0.0, 0.0) if k < 0 else (q[3 * k], q[3 * k + 1], q[3 * k + 2])

    def point(q, k, places, i):
        x, y, a = body(q, k)
        u, w = places[2 * i], places[2 * i + 1]
        return x + np.cos(a) * u - np.sin(a) * w, y + np.sin(a) * u + np.cos(a) * w

    def turn(q, k):
        return q[3 * k + 2] - body(q, structure.parents[k])[2]

    def L(q, v, m, J, stiffness, rest):
        total = 0.0
        for k in range(n):
            vx, vy, w = body(v, k)
            total += m[k] * (vx**2 + vy**2) / 2 + J[k] * w**2 / 2 - m[k] * GRAVITY * q[3 * k + 1]
            total -= stiffness[k] * (turn(q, k) - rest[k]) ** 2 / 2
        return total

    def difference(a, b):
        return [a[0] - b[0], a[1] - b[1]]

    def tree(q, hinge, own):
        parents = enumerate(structure.parents)
        return [row for k, p in parents for row in difference(point(q, k, own, k), point(q, p, hinge, k))]

    def tree_and_loops(q, hinge, own, ends):
        rows = tree(q, hinge, own)
        for k, (i, j) in enumerate(structure.loops):
            rows += difference(point(q, i, ends, 2 * k), point(q, j, ends, 2 * k + 1))
        return rows

    def force(v, torque, damping):
        moments = [0.0 * v[0]] * n
        for k, parent in enumerate(structure.parents):
            moment = torque[k] - damping[k] * turn(v, k)
            moments[k] = moments[k] + moment
            if parent >= 0:
                moments[parent] = moments[parent] - moment
        return np.array([entry for moment in moments for entry in (0.0 * v[0], 0.0 * v[0], moment)], like=v)

    holonomic = tree_and_loops if structure.loops else tree
    first = {name: value[0] for name, value in params.items()}
    return da.Lagrangian(L, dim=3 * n, holonomic=holonomic, force=force, params=first)


@dataclass
class Outcome:
    """What became of the runs of one structure."""

    right: int = 0
    wrong: int = 0
    unknown: int = 0
    """Runs for which the reference failed."""
    refused: int = 0
    followed: int = 0
    rescued: int = 0
    pivoted: int = 0
    """Numbers of steps, as in `run.stats`."""
    largest: float = 0.0
    """The largest error in terms of what was allowed."""
    examples: tuple[str, ...] = ()


def ensemble(system: da.Lagrangian, method: da.methods.OneStepMethod, some: Members, h: float) -> da.Ensemble:
    return da.simulate_many(
        system, method, q0=some.coordinates(some.angles), v0=some.velocities(), params=some.params, h=h, steps=STEPS,
        save_every=STEPS, progress=False,
    )  # fmt: skip


def study(structure: Structure, method: da.methods.OneStepMethod, count: int, seed: int, groups: int = 8) -> Outcome:
    """Run members of a structure in groups of similar rates, each with a step size of its own, and judge every one."""
    rng, order = np.random.default_rng(seed), METHODS[method]
    members = Members.random(structure, count, rng)
    fastest = members.fastest()
    system, result, examples = model(structure, members.params), Outcome(), []
    fractions = np.exp(rng.permutation(np.linspace(np.log(FINEST), np.log(COARSEST), groups)))
    for which, fraction in zip(np.array_split(np.argsort(fastest), groups), fractions, strict=True):
        some, rate = members.chosen(which), float(fastest[which].max())
        h = fraction / rate
        try:
            runs = ensemble(system, method, some, h)
        except da.InconsistentStart:
            allowed = some.starts(system)
            result.refused += int((~allowed).sum())
            which, some = which[allowed], some.chosen(allowed)
            runs = ensemble(system, method, some, h)
        wanted, doubt, largest = some.reference(STEPS * h, fastest[which])
        size = np.maximum(1.0, np.max(np.abs(wanted), axis=1))
        error = np.max(np.abs(runs.q[:, -1] - wanted), axis=1) / size
        allowed = LARGEST_ERROR * (h * largest) ** order + ROUND_OFF + 10 * doubt / size
        done, known = np.array([status == "done" for status in runs.status]), np.isfinite(wanted).all(axis=1)
        good = done & (error <= allowed)
        result.right += int(good.sum())
        result.refused += int((~done).sum())
        result.wrong += int((done & known & ~good).sum())
        result.unknown += int((done & ~known).sum())
        for name in ("followed", "rescued", "pivoted"):
            setattr(result, name, getattr(result, name) + int(runs.stats[f"{name}_steps"]))
        result.largest = max(result.largest, float(np.max((error / allowed)[done & known], initial=0.0)))
        examples += [
            f"wrong by {error[k]:.1e} with h w = {h * largest[k]:.1e}: member {which[k]}"
            for k in np.flatnonzero(done & known & ~good)
        ]
        examples += [f"h w = {h * largest[k]:.1e}: {runs.message[k]}" for k in np.flatnonzero(~done)]
    result.examples = tuple(examples)
    return result


NAMES = ("right", "refused", "wrong", "unknown", "followed", "rescued", "pivoted")


def recorded(path: Path | None) -> dict[int, dict]:
    """Rows of structures that are done, by their numbers."""
    if path is None or not path.exists():
        return {}
    return {row["number"]: row for row in map(json.loads, path.read_text().splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--structures", type=int, default=200)
    parser.add_argument("--members", type=int, default=512)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=Path, help="a file with one line for each structure that is done")
    chosen = parser.parse_args()
    rng, rows = np.random.default_rng(chosen.seed), recorded(chosen.rows)
    for k in range(chosen.structures):
        structure = next(s for s in iter(lambda: Structure.random(rng), None) if s.moves)
        if k in rows:
            continue
        method, began = list(METHODS)[k % len(METHODS)], time.process_time()
        found = study(structure, method, chosen.members, seed=1000 * chosen.seed + k)
        counts = {name: getattr(found, name) for name in NAMES}
        seconds = round(time.process_time() - began, 1)
        rows[k] = {"number": k, "method": str(method), **counts, "largest": found.largest, "seconds": seconds}
        note(f"{k:3d} {method} {structure.parents} {structure.loops}: {counts}, error {found.largest:.2g}, {seconds} s")
        for text in found.examples[:3]:
            note(f"      {text}")
        if chosen.rows:
            with chosen.rows.open("a") as file:
                file.write(json.dumps(rows[k] | {"examples": found.examples}) + "\n")
    totals: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for row in [*rows.values(), *({**row, "method": "all"} for row in rows.values())]:
        totals[row["method"]].update({"structures": 1, **{count: row[count] for count in NAMES}})
    names = ("structures", *NAMES)
    print(table(("method", *names), [[method, *(str(count[name]) for name in names)] for method, count in totals.items()]))


if __name__ == "__main__":
    main()
