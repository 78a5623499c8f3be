"""Starts of a mechanism: the assembled pose, moved to given angles and displacements, with given rates.

Positions are reached by following the constraints from the assembled pose in strides, so that a linkage keeps its branch. What
is not given changes as little as possible, in the metric of the masses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import InconsistentStart, InputError
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._rigid import Body, Part, Placement, number
from dalembert.mechanisms._vectors import triple
from dalembert.mechanisms._wheels import Wheel
from dalembert.symbolic import as_column, from_column
from dalembert.systems import State, consistent
from dalembert.systems._model import one_line

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
"""Relative to the largest, the least singular value that counts, rows being of unit length in the metric of the masses."""


@dataclass(frozen=True)
class Wish:
    """A value that a quantity is to have at the start."""

    part: Part
    kind: str
    function: ca.Function
    """Of t, q and v; linear in v where it is a rate."""
    target: np.ndarray

    def __str__(self) -> str:
        return f"the {self.kind} of {self.part.name!r}"


@dataclass(frozen=True)
class Given:
    """What a user gave for a start, by part."""

    angles: Mapping[Joint, Any]
    displacements: Mapping[Joint, Any]
    positions: Mapping[Body, Any]
    rates: Mapping[Joint, Any]
    speeds: Mapping[Joint, Any]
    velocities: Mapping[Body, Any]
    angular_velocities: Mapping[Body, Any]


def start_of(m: Mechanism, given: Given, t0: float, params: Mapping[str, Any] | None, complete: bool) -> State:
    """The state with what was given, projected onto the constraints."""
    system = m.system()
    theta = system.parameters.vector(params)
    values = system.parameters.unflatten(theta)
    m.check(values)
    solver = _Starter(m, t0, theta)
    places = [
        *solver.wishes(given.angles, Joint, "angle", Joint.angle_at),
        *solver.wishes(given.displacements, Joint, "displacement", Joint.displacement_at),
        *solver.wishes(given.positions, Body, "position", lambda body, at: at.of(body).centre, size=3),
    ]
    moves = [
        *solver.wishes(given.rates, Joint, "rate", Joint.rate_at),
        *solver.wishes(given.speeds, Joint, "speed", Joint.sliding_speed_at),
        *solver.wishes(given.velocities, Body, "velocity", lambda body, at: at.of(body).velocity, size=3),
        *solver.wishes(given.angular_velocities, Body, "angular velocity", lambda body, at: at.of(body).omega, size=3),
    ]
    q = solver.position(places)
    if not complete:
        solver.refuse_too_few(q, places, moves)
    for part in m.parts:
        if isinstance(part, Wheel):
            part.refuse_if_not_found(Placement(q, None, t0, values))
    v = solver.velocity(q, moves)
    p = np.linalg.solve(system.evaluate("H_pp", t0, q, np.zeros(m.dim), theta=theta), v)
    return consistent(system, q0=q, p0=p, t0=t0, params=params)


class _Starter:
    """The constraints of a mechanism beside what its start is to have."""

    def __init__(self, m: Mechanism, t: float, theta: np.ndarray) -> None:
        self.m, self.t, self.theta, self.system = m, t, theta, m.system()
        self.n = m.dim
        self._symbols = [ca.SX.sym("t"), ca.SX.sym("q", self.n), ca.SX.sym("v", self.n)]
        self._slopes: dict[tuple[int, int], ca.Function] = {}
        symbols = [from_column(symbol) for symbol in self._symbols]
        values = self.system.parameters.unflatten(theta)
        self.at = Placement(symbols[1], symbols[2], symbols[0][0], {**values, "t": symbols[0][0]})
        H_pp = self.system.evaluate("H_pp", t, m.q0, np.zeros(self.n), theta=theta)
        self.root = np.linalg.cholesky(H_pp)
        """Steps root @ y of unit length y are of unit size in the metric of the masses."""
        points = [body.centre for body in m.bodies] + [point for joint in m.joints for point in joint.points]
        self.extent = float(np.max(np.ptp(np.array(points), axis=0))) or 1.0
        lengths = {"x", "y", "z"}
        self.sizes = np.array([self.extent if label.rpartition(".")[2] in lengths else 1.0 for label in m.labels])
        """What a large change of a coordinate is: the size of the mechanism, or a radian."""

    def wishes(
        self, given: Mapping[Any, Any] | None, of: type, kind: str, quantity: Callable[[Any, Placement], Any], size: int = 1
    ) -> list[Wish]:
        """One wish for each entry of what was given."""
        found = []
        if given is not None and not isinstance(given, Mapping):
            raise InputError(f"the start takes {{part: {kind}}}, such as {{hinge: 1.2}}; got {one_line(given)}")
        for part, value in (given or {}).items():
            if not isinstance(part, (Joint, Body)) or not isinstance(part, of) or part.mechanism is not self.m:
                raise InputError(f"a start gives the {kind} of a {of.__name__.lower()} of this mechanism; got {one_line(part)}")
            what = f"the {kind} of {part.name!r}"
            target = np.array([number(what, value)]) if size == 1 else triple(what, value)
            entries = quantity(part, self.at)
            for k, entry in enumerate([entries] if size == 1 else entries):
                function = ca.Function("wish", self._symbols, [ca.densify(as_column([entry]))])
                found.append(Wish(part, kind, function, target[k : k + 1]))
        return found

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
        begin = [self._value(wish, q) for wish in wishes]
        ways = [wish.target - x for wish, x in zip(wishes, begin, strict=True)]
        turns = [wish.kind == "angle" and not wish.part.in_plane for wish in wishes]  # type: ignore[attr-defined]
        ways = [np.fmod(way, 2 * np.pi) if whole else way for way, whole in zip(ways, turns, strict=True)]  # no whole turns
        sizes = [float(np.max(np.abs(way))) / self._unit(wish) for wish, way in zip(wishes, ways, strict=True)]
        size, farthest = max(sizes), wishes[int(np.argmax(sizes))]
        if size > FARTHEST:
            unit = "radians" if farthest.kind == "angle" else "times the size of the mechanism"
            raise InconsistentStart(
                f"{farthest} is {size:.3g} {unit} away from the assembled pose: state a pose that is nearer"
            )
        longest = min(1.0, STRIDE / size) if size else 1.0
        done, stride, waited = 0.0, longest, 0
        while done < 1 and stride > longest / 4096 and waited < PATIENCE:
            end = min(1.0, done + stride)
            reached = self._onto(q, wishes, [x + end * way for x, way in zip(begin, ways, strict=True)], end == 1)
            if reached is None:
                stride /= 2
            else:
                waited = waited + 1 if np.max(np.abs(reached - q) / self.sizes) < STANDSTILL else 0
                q, done, stride = reached, end, min(longest, 2 * stride)
        units = np.array([self._unit(wish) for wish in wishes])
        missed = np.abs(np.concatenate(self._misses(q, wishes, [wish.target for wish in wishes]))) / units
        if np.max(missed) > 1e-9 * self._largest(q):
            raise self._unreachable(q, wishes)
        return q

    def _unreachable(self, q: np.ndarray, wishes: Sequence[Wish]) -> InconsistentStart:
        free = self._freedom(self._G(q))
        left = self._freedom(np.concatenate([self._G(q), *(self._slope(wish, q, 1) for wish in wishes)]))
        if left > free - len(wishes) and len({str(wish) for wish in wishes}) > 1:
            return InconsistentStart(
                f"{_all(wishes)} cannot be chosen independently: the pose has {_degrees(free)} of freedom; give fewer"
            )
        reached = np.array([self._value(wish, q)[0] / self._unit(wish) for wish in wishes])
        reached = np.where(np.abs(reached) < 1e-12 * self._largest(q), 0.0, reached)  # what is only rounding
        values = ", ".join(f"{x * self._unit(wish):.4g}" for x, wish in zip(reached, wishes, strict=True))
        return InconsistentStart(
            f"no pose of the mechanism has {_all(wishes)} as given (it went as far as {values}): give values that it reaches"
        )

    def _unit(self, wish: Wish) -> float:
        """One radian, or the size of the mechanism."""
        return 1.0 if wish.kind == "angle" else self.extent

    def _value(self, wish: Wish, q: np.ndarray) -> np.ndarray:
        return np.asarray(wish.function(self.t, q, np.zeros(self.n)), dtype=float)[:, 0]

    def _slope(self, wish: Wish, q: np.ndarray, index: int) -> np.ndarray:
        """The derivative of a wish with respect to q (1) or v (2)."""
        key = (id(wish), index)
        if key not in self._slopes:
            slope = ca.densify(ca.jacobian(wish.function(*self._symbols), self._symbols[index]))
            self._slopes[key] = ca.Function("slope", self._symbols, [slope])
        return np.asarray(self._slopes[key](self.t, q, np.zeros(self.n)), dtype=float)

    def _misses(self, q: np.ndarray, wishes: Sequence[Wish], aims: Sequence[np.ndarray]) -> list[np.ndarray]:
        """How far wishes are off; angles in space modulo whole turns."""
        result = []
        for wish, aim in zip(wishes, aims, strict=True):
            miss = self._value(wish, q) - aim
            if wish.kind == "angle" and not wish.part.in_plane:  # type: ignore[attr-defined]
                miss = (miss + np.pi) % (2 * np.pi) - np.pi
            result.append(miss)
        return result

    def _onto(
        self, q: np.ndarray, wishes: Sequence[Wish], aims: Sequence[np.ndarray], exactly: bool = True
    ) -> np.ndarray | None:
        """The pose next to q on the constraints that comes closest to the wishes; None if it is not found.

        Gauss-Newton steps in the metric of the masses: dy, with dq = root dy, of least size onto the constraints, and along
        them what the wishes ask for.
        """
        previous = np.inf
        for _ in range(40):
            g = self.system.evaluate("g", self.t, q, theta=self.theta)
            onto, along = _split(self._G(q) @ self.root, g)
            step = -onto
            if wishes:
                J = np.concatenate([self._slope(wish, q, 1) for wish in wishes]) @ self.root
                asked = np.concatenate(self._misses(q, wishes, aims)) + J @ step
                step = step - along @ np.linalg.lstsq(J @ along, asked, rcond=1e-7)[0]
            size = float(np.max(np.abs(self.root @ step) / self.sizes, initial=0.0))
            largest = self._largest(q)
            if not np.isfinite(size) or (wishes and size > LEAP):
                return None
            q = q + self.root @ step
            if size < (1e-15 if exactly else 1e-6) * largest or (size < 1e-10 * largest and size >= previous / 2):
                break
            previous = size
        g = np.abs(self.system.evaluate("g", self.t, q, theta=self.theta))
        tolerance = 1e-10 if exactly else 1e-6
        return q if np.max(g / self._lengths(self._G(q)), initial=0.0) < tolerance * self._largest(q) else None

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

    def _freedom(self, rows: np.ndarray) -> int:
        """How many independent velocities some rows leave."""
        J = rows @ self.root
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
        """The velocity of least energy with the given rates."""
        J, b = self._rates(q)
        rows = np.concatenate([J, *(self._slope(wish, q, 2) for wish in wishes)])
        aims = np.concatenate([b, *(wish.target for wish in wishes)])
        if not len(rows):
            return np.zeros(self.n)
        scaled = rows @ self.root
        length = np.linalg.norm(scaled, axis=1)
        length[length == 0] = 1.0
        v = self.root @ np.linalg.lstsq(scaled / length[:, None], aims / length, rcond=RANK)[0]
        lengths = self._lengths(rows)
        off, asked = np.abs(rows @ v - aims) / lengths, np.abs(aims) / lengths
        if np.max(off) > max(1e-9 * np.max(asked), SLOWEST):
            free = self._freedom(J)
            wanted = sum(len(wish.target) for wish in wishes)
            if not wishes:
                raise InconsistentStart("the prescribed motions contradict the joints at this time: check them")
            many = f"{wanted} values are too many for {_degrees(free)} of freedom"
            reason = many if wanted > free else "they contradict each other or the joints"
            raise InconsistentStart(f"no motion of the mechanism has {_all(wishes)} as given: {reason}")
        return v

    def refuse_too_few(self, q: np.ndarray, places: Sequence[Wish], moves: Sequence[Wish]) -> None:
        """Refuse a start that leaves something to the projection."""
        for what, rows, wishes, index in (("positions", self._G(q), places, 1), ("rates", self._rates(q)[0], moves, 2)):
            free = self._freedom(np.concatenate([rows, *(self._slope(wish, q, index) for wish in wishes)]))
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
