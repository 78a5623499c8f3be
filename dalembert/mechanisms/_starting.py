"""Starts of a mechanism: the assembled pose, moved to given angles and places, with given rates.

Positions are reached by following the constraints from the assembled pose in strides, so that a linkage keeps its branch. What
is not given changes as little as possible, in the metric of `_staying.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import InconsistentStart
from dalembert.mechanisms._rigid import Placement
from dalembert.mechanisms._staying import carriers, description
from dalembert.mechanisms._wheels import Wheel
from dalembert.mechanisms._wishes import Given, Wish, Wishing
from dalembert.systems import State, consistent

if TYPE_CHECKING:
    from dalembert.mechanisms._assembly import Mechanism

STRIDE = 0.15
"""How far an angle, in radians, is moved at a time."""
FARTHEST = 100.0
"""How far the assembled pose is moved, in radians or sizes of the mechanism."""
STANDSTILL, PATIENCE = 1e-4, 25
"""So many strides in which no coordinate changes by so much are enough to say that a value is not reached."""
LEAP = 0.4
"""The longest step on the way, in terms of the size of the mechanism or of a radian; longer ones leave a branch."""
SLOWEST = 1e-14
"""What is rounding in a velocity that ought to vanish, in sizes of the mechanism or radians per unit of time."""
RANK = 1e-9
"""Relative to the largest, the least singular value that counts, rows being of unit length in the metric."""


def start_of(m: Mechanism, given: Given, t0: float, params: Mapping[str, Any] | None, complete: bool) -> State:
    """The state with what was given, projected onto the constraints."""
    system = m.system()
    theta = system.parameters.vector(params)
    values = system.parameters.unflatten(theta)
    m.check(values)
    wishing = Wishing(m, theta)
    places, moves = wishing.places(given), wishing.moves(given)
    solver = _Starter(wishing, t0, theta, [wish.part for wish in (*places, *moves)])
    q = solver.position(places)
    if not complete:
        solver.refuse_too_few(q, places, moves)
    for part in m.parts:
        if isinstance(part, Wheel):
            part.refuse_if_not_found(Placement(q, None, t0, values))
    return consistent(system, q0=q, v0=solver.velocity(q, moves), t0=t0, params=params)


class _Starter:
    """The constraints of a mechanism beside what its start is to have."""

    def __init__(self, wishing: Wishing, t: float, theta: np.ndarray, given: Sequence[Any]) -> None:
        self.m, self.t, self.theta = wishing.m, t, theta
        self.system, self.n = self.m.system(), self.m.dim
        points = [body.centre for body in self.m.bodies] + [point for joint in self.m.joints for point in joint.points]
        self.extent = float(np.max(np.ptp(np.array(points), axis=0))) or 1.0
        lengths = {"x", "y", "z"}
        self.sizes = np.array([self.extent if label.rpartition(".")[2] in lengths else 1.0 for label in self.m.labels])
        """What a large change of a coordinate is: the size of the mechanism, or a radian."""
        staying = carriers(self.m, given, wishing.at)
        described = description(self.m, staying, wishing.at, self.extent)
        self._description, self._described = wishing.function(described), wishing.slope(described, 1)

    def _metric(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Q and `root`: where q changes by root @ y, the description of the pose changes by Q @ y, as long as y is."""
        Q, R = np.linalg.qr(self._slope(self._described, q))
        return Q, np.linalg.inv(R)

    def _numbers(self, function: ca.Function, q: np.ndarray) -> np.ndarray:
        return np.asarray(function(self.t, q, np.zeros(self.n)), dtype=float)

    # -- positions -------------------------------------------------------------------------------------------------------

    def position(self, wishes: Sequence[Wish]) -> np.ndarray:
        """The pose with the given angles, displacements and positions that is next to the assembled one."""
        q = self._onto(self.m.q0, [], [])
        if q is None:
            raise InconsistentStart(
                "the mechanism cannot be assembled near the pose in which it was stated: check positions and lengths"
            )
        if not wishes:
            return q
        sizes = [wish.distance(self._value(wish, q)) / self._unit(wish) for wish in wishes]
        size, farthest = max(sizes), wishes[int(np.argmax(sizes))]
        if size > FARTHEST:
            unit = "radians" if farthest.turns else "times the size of the mechanism"
            raise InconsistentStart(
                f"{farthest} is {size:.3g} {unit} away from the assembled pose: state a pose that is nearer"
            )
        reached = self._followed(q, wishes, size, shorter=False)
        if self._missed(reached, wishes) and any(wish.has_shorter_way(self._value(wish, q)) for wish in wishes):
            other = self._followed(q, wishes, size, shorter=True)
            reached = reached if self._missed(other, wishes) else other
        if self._missed(reached, wishes):
            raise self._unreachable(reached, wishes)
        return reached

    def _followed(self, q: np.ndarray, wishes: Sequence[Wish], size: float, shorter: bool) -> np.ndarray:
        """The pose that is reached in strides along the ways of all wishes, the longest of which has this size."""
        ways = [wish.way(self._value(wish, q), shorter) for wish in wishes]
        longest = min(1.0, STRIDE / size) if size else 1.0
        done, stride, waited = 0.0, longest, 0
        while done < 1 and stride > longest / 4096 and waited < PATIENCE:
            end = min(1.0, done + stride)
            aims = [way(end) for way in ways]
            reached = self._onto(q, wishes, aims, end == 1)
            if reached is None and stride == longest and not done:
                reached = self._out_of_singularity(q, wishes, aims)
            if reached is None:
                stride /= 2
            else:
                waited = waited + 1 if np.max(np.abs(reached - q) / self.sizes) < STANDSTILL else 0
                q, done, stride = reached, end, min(longest, 2 * stride)
        return q

    def _out_of_singularity(self, q: np.ndarray, wishes: Sequence[Wish], aims: Sequence[np.ndarray]) -> np.ndarray | None:
        """The first stride from a pose that is singular, as of an arm that is stretched out: nearby, and by steps cut short."""
        kick = 1e-3 * np.random.default_rng(1788).standard_normal(self.n) * self.sizes
        beside = [pose for sign in (1, -1) if (pose := self._onto(q + sign * kick, [], [])) is not None]
        found = [pose for start in beside if (pose := self._onto(start, wishes, aims, cut=True)) is not None]
        found = [pose for pose in found if not self._missed(pose, wishes, aims)]
        described = self._numbers(self._description, q)
        return min(found, key=lambda pose: np.linalg.norm(self._numbers(self._description, pose) - described), default=None)

    def _missed(self, q: np.ndarray, wishes: Sequence[Wish], aims: Sequence[np.ndarray] | None = None) -> bool:
        """Whether a pose has not all that was wished, or is off the aims on the way there."""
        aims = [wish.target for wish in wishes] if aims is None else aims
        off = [wish.miss(self._value(wish, q), aim) / self._unit(wish) for wish, aim in zip(wishes, aims, strict=True)]
        return bool(np.max(np.abs(np.concatenate(off))) > 1e-9 * self._largest(q))

    def _unreachable(self, q: np.ndarray, wishes: Sequence[Wish]) -> InconsistentStart:
        G = self._G(q)
        free, slopes = self._freedom(q, G), [self._slope(wish.slopes[0], q) for wish in wishes]
        taken = [free - self._freedom(q, np.concatenate([G, slope])) for slope in slopes]
        if self._freedom(q, np.concatenate([G, *slopes])) > free - sum(taken):
            return InconsistentStart(
                f"{_all(wishes)} cannot be chosen independently: the pose has {_degrees(free)} of freedom; give fewer"
            )
        return InconsistentStart(
            f"no pose of the mechanism has {_all(wishes)} as given ({', '.join(self._reached(wish, q) for wish in wishes)}): "
            "give values that it reaches"
        )

    def _reached(self, wish: Wish, q: np.ndarray) -> str:
        """How far a wish was fulfilled."""
        value = self._value(wish, q)
        if wish.kind == "rotation":
            return f"it came as near as {wish.distance(value):.4g} rad"
        value = np.where(np.abs(value) < 1e-12 * self._largest(q) * self._unit(wish), 0.0, value)  # what is only rounding
        return f"it went as far as {', '.join(f'{x:.4g}' for x in value)}"

    def _unit(self, wish: Wish) -> float:
        """One radian, or the size of the mechanism."""
        return 1.0 if wish.turns else self.extent

    def _value(self, wish: Wish, q: np.ndarray) -> np.ndarray:
        return self._numbers(wish.function, q)[:, 0]

    def _slope(self, function: ca.Function, q: np.ndarray) -> np.ndarray:
        """A derivative with respect to q or v, (rows, n)."""
        return self._numbers(function, q).reshape(-1, self.n)

    def _onto(
        self, q: np.ndarray, wishes: Sequence[Wish], aims: Sequence[np.ndarray], exactly: bool = True, cut: bool = False
    ) -> np.ndarray | None:
        """The pose on the constraints that differs least from q and comes closest to the wishes; None if it is not found.

        Gauss-Newton steps root @ y: back to the description of q, from there the least way onto the constraints, and along
        them what the wishes ask for.
        """
        previous, described = np.inf, self._numbers(self._description, q)[:, 0]
        for _ in range(40):
            g, (Q, root) = self.system.evaluate("g", self.t, q, theta=self.theta), self._metric(q)
            step = Q.T @ (described - self._numbers(self._description, q)[:, 0])
            G = self._G(q) @ root
            onto, along = _split(G, g + G @ step)
            step = step - onto
            if wishes:
                J = np.concatenate([self._slope(wish.slopes[0], q) for wish in wishes]) @ root
                misses = [wish.miss(self._value(wish, q), aim) for wish, aim in zip(wishes, aims, strict=True)]
                step = step - along @ np.linalg.lstsq(J @ along, np.concatenate(misses) + J @ step, rcond=1e-7)[0]
            size = float(np.max(np.abs(root @ step) / self.sizes, initial=0.0))
            largest = self._largest(q)
            if not np.isfinite(size) or (wishes and size > LEAP and not cut):
                return None
            q = q + root @ step * min(1.0, LEAP / 2 / max(size, LEAP / 2) if cut else 1.0)
            if size < (1e-15 if exactly else 1e-9) * largest or (size < 1e-10 * largest and size >= previous / 2):
                break
            previous = size
        g = np.abs(self.system.evaluate("g", self.t, q, theta=self.theta))
        return q if np.max(g / self._lengths(self._G(q)), initial=0.0) < 1e-10 * self._largest(q) else None

    def _largest(self, q: np.ndarray) -> float:
        """The largest coordinate in terms of the size of the mechanism, at least one: what rounding errors are relative to."""
        return max(1.0, float(np.max(np.abs(q) / self.sizes)))

    def _lengths(self, rows: np.ndarray) -> np.ndarray:
        """By how much rows change over the size of the mechanism, or over a radian."""
        lengths = np.linalg.norm(rows * self.sizes, axis=1)
        return np.where(lengths > 0, lengths, 1.0)

    def _G(self, q: np.ndarray) -> np.ndarray:
        return self.system.evaluate("G", self.t, q, theta=self.theta).reshape(-1, self.n)

    # -- velocities ------------------------------------------------------------------------------------------------------

    def _freedom(self, q: np.ndarray, rows: np.ndarray) -> int:
        """How many independent velocities some rows leave."""
        J = rows @ self._metric(q)[1]
        length = np.linalg.norm(J, axis=1)
        J = J[length > 0] / length[length > 0, None]
        if not len(J):
            return self.n
        values = np.linalg.svd(J, compute_uv=False)
        return self.n - int(np.sum(values > 1e-8 * values[0]))

    def _rates(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows J v = b of all constraints on velocities: G v = -g_t and k = 0."""
        zero = np.zeros(self.n)
        H_pp = self.system.evaluate("H_pp", self.t, q, zero, theta=self.theta)
        slope = self.system.evaluate("hidden_z", self.t, q, zero, theta=self.theta).reshape(-1, self.n)
        value = self.system.evaluate("hidden", self.t, q, zero, theta=self.theta)
        return np.linalg.solve(H_pp.T, slope.T).T, -value

    def velocity(self, q: np.ndarray, wishes: Sequence[Wish]) -> np.ndarray:
        """The velocity with the given rates in which all else changes as little as it can."""
        J, b = self._rates(q)
        rows = np.concatenate([J, *(self._slope(wish.slopes[1], q) for wish in wishes)])
        aims = np.concatenate([b, *(wish.target for wish in wishes)])
        if not len(rows):
            return np.zeros(self.n)
        _, root = self._metric(q)
        scaled = rows @ root
        length = np.linalg.norm(scaled, axis=1)
        length[length == 0] = 1.0
        v = root @ np.linalg.lstsq(scaled / length[:, None], aims / length, rcond=RANK)[0]
        lengths = self._lengths(rows)
        off, asked = np.abs(rows @ v - aims) / lengths, np.abs(aims) / lengths
        if np.max(off) > max(1e-9 * np.max(asked), SLOWEST):
            free = self._freedom(q, J)
            wanted = sum(len(wish.target) for wish in wishes)
            if not wishes:
                raise InconsistentStart("the prescribed motions contradict the joints at this time: check them")
            many = f"{wanted} values are too many for {_degrees(free)} of freedom"
            reason = many if wanted > free else "they contradict each other or the joints"
            raise InconsistentStart(f"no motion of the mechanism has {_all(wishes)} as given: {reason}")
        return v

    def refuse_too_few(self, q: np.ndarray, places: Sequence[Wish], moves: Sequence[Wish]) -> None:
        """Refuse a start that leaves something to the projection."""
        for what, rows, wishes, index in (("positions", self._G(q), places, 0), ("rates", self._rates(q)[0], moves, 1)):
            free = self._freedom(q, np.concatenate([rows, *(self._slope(wish.slopes[index], q) for wish in wishes)]))
            if free:
                raise InconsistentStart(
                    f"the start leaves {_degrees(free)} of freedom of the {what} open: give as many more, or let the "
                    "projection complete them with complete=True"
                )


def _split(J: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least solution y of J y = g, and a basis of what J leaves free; rows of J may be redundant."""
    length = np.linalg.norm(J, axis=1)
    kept = length > 0
    if not np.any(kept):
        return np.zeros(J.shape[1]), np.eye(J.shape[1])
    left, values, right = np.linalg.svd(J[kept] / length[kept, None])
    rank = int(np.sum(values > RANK * values[0]))
    return right[:rank].T @ ((left.T @ (g[kept] / length[kept]))[:rank] / values[:rank]), right[rank:].T


def _degrees(count: int) -> str:
    return f"{count} degree{'' if count == 1 else 's'}"


def _all(wishes: Sequence[Wish]) -> str:
    return " and ".join(dict.fromkeys(str(wish) for wish in wishes))
