"""`Mechanism`: bodies, joints, springs, motors and wheels, stated in one assembled pose, which make up a system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanisms._building import by_parameters
from dalembert.mechanisms._connections import check_connected
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._links import Marker
from dalembert.mechanisms._reading import Snapshot
from dalembert.mechanisms._rigid import Body, Loads, Part, Placement
from dalembert.mechanisms._starting import start_of
from dalembert.mechanisms._values import valued
from dalembert.mechanisms._vectors import constant
from dalembert.mechanisms._wishes import Given
from dalembert.mechanisms._with_wheels import WithWheels
from dalembert.symbolic import from_column
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import Hamiltonian, State
from dalembert.systems._initial_values import finite_number
from dalembert.systems._model import naming

CONSTANT = 1e-9
"""How far from zero a row that does not depend on the state may be."""


@dataclass(frozen=True, eq=False)
class Assembled:
    """The system of a mechanism, and which part stated which of its rows."""

    system: Hamiltonian
    holonomic: tuple[tuple[Part, tuple[int, ...]], ...]
    """Each part with the numbers of its rows among g, those that are zero whatever the state being left out."""
    nonholonomic: tuple[tuple[Part, tuple[int, ...]], ...]
    unilateral: tuple[tuple[Part, tuple[int, ...]], ...]

    def rows_of(self, part: Part, kind: str = "holonomic") -> tuple[int, ...]:
        """The numbers of the rows that a part stated."""
        return next((rows for owner, rows in getattr(self, kind) if owner is part), ())


class Mechanism(WithWheels):
    """Bodies and joints, stated in one assembled pose in space coordinates; `da.simulate` takes it like a system.

    `gravity` is an acceleration; `coordinates` are those of bodies that do not name their own: "quaternion" (x, y, z and a
    unit quaternion), "matrix" (x, y, z and the columns of the rotation matrix) or "planar" (x, y, theta).
    Masses, moments of inertia, stiffnesses, lengths and so on are numbers, names of parameters in `params`, or functions of
    them; parameters can be changed from run to run without compiling anew.

    Example:
        >>> import numpy as np, dalembert as da
        >>> m = da.Mechanism(gravity=(0, -9.81), coordinates="planar", params={"mass": 0.3})
        >>> rod = m.rod("rod", (0, 0), (0.4, 0), mass="mass", width=0.01)
        >>> hinge = m.revolute(m.ground, rod, at=(0, 0))
        >>> run = da.simulate(m, da.LobattoIIIAB(3), start=m.start(rates={hinge: 2.0}), h=0.01, steps=200)
        >>> m.system()
        <Hamiltonian of 3 coordinates, 2 holonomic constraints, params mass>
        >>> bool(np.ptp(run.energy) < 1e-7)
        True

    """

    def __init__(
        self, *, gravity: Any = (0.0, 0.0, 0.0), coordinates: str = "quaternion", params: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(gravity, coordinates, params)
        self._assembled: Assembled | None = None

    def __repr__(self) -> str:
        return f"<Mechanism of {len(self.bodies)} bodies and {len(self.joints)} joints, {self.dim} coordinates>"

    @property
    def dim(self) -> int:
        """The number of coordinates q."""
        return sum(body.size for body in self.bodies)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the coordinates, such as crank.theta."""
        return tuple(f"{body.name}.{label}" for body in self.bodies for label in body.coordinates.labels)  # type: ignore[union-attr]

    @property
    def q0(self) -> np.ndarray:
        """The coordinates of the assembled pose."""
        return np.concatenate([np.zeros(0), *(body.start for body in self.bodies)])

    @one_at_a_time
    def system(self) -> Hamiltonian:
        """The system that the mechanism is, as da.Hamiltonian; what is added afterwards makes another one."""
        return self.assembled.system

    @property
    def assembled(self) -> Assembled:
        """The system, and which part stated which of its rows."""
        self._assembled = self._assembled or self._assemble()
        return self._assembled

    def _changed(self) -> None:
        self._assembled = None

    @one_at_a_time
    def start(
        self,
        *,
        angles: Mapping[Joint | str, Any] | None = None,
        displacements: Mapping[Joint | str, Any] | None = None,
        positions: Mapping[Body | Marker | str, Any] | None = None,
        rotations: Mapping[Body | Marker | str, Any] | None = None,
        rates: Mapping[Joint | str, Any] | None = None,
        speeds: Mapping[Joint | str, Any] | None = None,
        velocities: Mapping[Body | Marker | str, Any] | None = None,
        angular_velocities: Mapping[Body | Marker | str, Any] | None = None,
        complete: bool = True,
        t0: float = 0.0,
        params: Mapping[str, Any] | None = None,
    ) -> State:
        """A state of the mechanism for da.simulate(m, method, start=...); without arguments the assembled pose at rest.

        The pose is given by `angles` and `displacements` of joints, `positions` and `rotations` of bodies and frames (as
        run.of(body) has them; in the plane a rotation is an angle), motion by `rates` and `speeds` of joints, `velocities` and
        `angular_velocities` of bodies; joints and bodies are objects or names. The mechanism is moved there from the
        assembled pose along its constraints. What is left open is refused with `complete=False`; else joints keep their
        angles and displacements, and bodies that no joint carries their place, as far as the constraints allow.

        Example:
            >>> import numpy as np, dalembert as da
            >>> m = da.Mechanism(coordinates="planar")
            >>> hinge = m.revolute(m.ground, m.rod("rod", (0, 0), (2, 0), mass=1.0), at=(0, 0))
            >>> start = m.start(angles={hinge: np.pi / 2}, rates={hinge: 3.0})
            >>> bool(np.allclose(start.q, [0, 1, np.pi / 2])), bool(np.allclose(start.v, [-3, 0, 3]))
            (True, True)

        """
        given: tuple[Any, ...] = (angles, displacements, positions, rotations, rates, speeds, velocities, angular_velocities)
        moved = Given(*({} if part is None else part for part in given))
        return start_of(self, moved, finite_number("t0", t0), params, complete)

    def at(self, state: State) -> Snapshot:
        """A state, to be read by the names of parts like a run.

        Example:
            >>> import dalembert as da
            >>> m = da.Mechanism(coordinates="planar")
            >>> rod = m.rod("rod", (0, 0), (2, 0), mass=1.0)
            >>> hinge = m.revolute(m.ground, rod, at=(0, 0))
            >>> m.at(m.start(rates={hinge: 3.0})).of(rod).velocity.round(12)
            array([[0., 3., 0.]])

        """
        system = self.system()
        return Snapshot(state, system.parameters.unflatten(state.theta), system)

    # -- from parts to functions ---------------------------------------------------------------------------------------

    def _assemble(self) -> Assembled:
        if not self.bodies:
            raise ModelError("a mechanism without bodies does not move: add one with m.body(...), m.rod(...) or m.point(...)")
        check_connected(self.ground, self.bodies, [*self.parts, *self.loads])
        found = {kind: self._stated(kind) for kind in ("rows", "rates", "gaps")}
        functions: dict[str, Any] = {
            keyword: self._function(names, kind, [(part, rows) for part, rows, _ in found[kind]]) if found[kind] else None
            for keyword, kind, names in (
                ("holonomic", "rows", "t q"),
                ("nonholonomic", "rates", "t q v"),
                ("unilateral", "gaps", "t q"),
            )
        }
        if found["gaps"]:
            owners: list[tuple[Any, tuple[int, ...]]] = [(part, rows) for part, rows, _ in found["gaps"]]
            laws = [(f"the restitution of {part.name!r}", part.restitution, len(rows)) for part, rows in owners]
            functions["restitution"] = [by_parameters(what, law) for what, law, count in laws for _ in range(count)]
            functions |= self._rubbing(owners)
        force = self._with_arguments("t q v", self._force) if self.loads else None
        energy = self._with_arguments("t q p", self._energy)
        system = Hamiltonian(energy, self.dim, force=force, params=self.params or None, **functions)
        system.parameters.check = self.check
        system.coordinate_names = self.labels
        system.part_named = self.part
        system.row_names = {
            name: tuple(_row_name(part, k, len(rows)) for part, _, rows in found[kind] for k in range(len(rows)))
            for name, kind in (("g", "rows"), ("k", "rates"), ("phi", "gaps"))
        }
        return Assembled(system, *(tuple((part, rows) for part, _, rows in found[kind]) for kind in ("rows", "rates", "gaps")))

    def _rubbing(self, owners: Sequence[tuple[Any, tuple[int, ...]]]) -> dict[str, Any]:
        """Coefficients of friction and sliding velocities of all gaps, if some contact rubs; stops do not."""
        touching = [part for part, _ in owners if hasattr(part, "slides")]
        if all(part.friction == 0 for part in touching):
            return {}
        spins = any(part.patch != 0 for part in touching)
        components = 1 if all(part.planar for part in touching) else 3 if spins else 2

        def friction(params: Mapping[str, Any], t: Any, q: Any) -> list[Any]:
            at = self._placement(q, None, t, params)
            return [part.coefficient(at) if part in touching else 0.0 for part, rows in owners for _ in rows]

        def slip(params: Mapping[str, Any], t: Any, q: Any, v: Any) -> list[Any]:
            at = self._placement(q, v, t, params)
            values = ((part.slides(at) if part in touching else [], rows) for part, rows in owners)
            return [x for value, rows in values for _ in rows for x in [*value, 0.0, 0.0, 0.0][:components]]

        return {"friction": self._with_arguments("t q", friction), "slip": self._with_arguments("t q v", slip)}

    def _placement(self, q: Any, v: Any, t: Any, params: Mapping[str, Any]) -> Placement:
        return Placement(q, v, t, {**params, "t": t} if "t" not in params else params)

    def _with_arguments(self, names: str, function: Callable) -> Callable:
        """A function whose signature names its arguments and all parameters, as systems want their model functions."""

        def model(**arguments: Any) -> Any:
            state = {name: arguments.pop(name) for name in names.split()}
            return function(params=arguments, **state)

        return naming([*names.split(), *self.params], model)

    def _function(self, names: str, kind: str, stated: Sequence[tuple[Part, Sequence[int]]]) -> Callable:
        """The rows of one kind of all parts, in their order."""

        def rows(params: Mapping[str, Any], t: Any, q: Any, v: Any = None) -> list[Any]:
            at = self._placement(q, v, t, params)
            values = ((getattr(self._stating(part), kind)(at), kept) for part, kept in stated)
            return [value[k] for value, kept in values for k in kept]

        return self._with_arguments(names, rows)

    @staticmethod
    def _stating(part: Part) -> Any:
        return _OwnRows(part) if isinstance(part, Body) else part

    def _stated(self, kind: str) -> list[tuple[Part, tuple[int, ...], tuple[int, ...]]]:
        """The parts with rows of one kind, which of these depend on the state, and their numbers in the system."""
        t, q, v = (from_column(ca.SX.sym(name, size)) for name, size in (("t", 1), ("q", self.dim), ("v", self.dim)))
        symbols = {name: from_column(ca.SX.sym(name, np.size(x)), np.shape(x) or (1,)) for name, x in self.params.items()}
        params = {name: x if np.shape(self.params[name]) else x[0] for name, x in symbols.items()}
        at, found, count = self._placement(q, v, t[0], params), [], 0
        for part in self._with_rows(kind):
            constants = [constant(row) for row in getattr(self._stating(part), kind)(at)]
            if any(c is not None and abs(c) > CONSTANT for c in constants):
                raise ModelError(
                    f"{part.name!r} can never hold: it asks planar bodies to leave their plane, or the ground to move; "
                    "check its axis and its points"
                )
            kept = tuple(k for k, c in enumerate(constants) if c is None)
            if kept:
                found.append((part, kept, tuple(range(count, count + len(kept)))))
                count += len(kept)
        return found

    def _with_rows(self, kind: str) -> Iterable[Part]:
        owners: list[Part] = [*self.bodies, *self.parts] if kind == "rows" else list(self.parts)
        return [part for part in owners if hasattr(self._stating(part), kind)]

    def _energy(self, params: Mapping[str, Any], t: Any, q: Any, p: Any) -> Any:
        at = self._placement(q, None, t, params)
        gravity, total = self._gravity(at.params), 0.0
        for body in self.bodies:
            assert body.coordinates is not None
            mass = at.value(f"the mass of {body.name!r}", body.mass)
            J = [at.value(f"the inertia of {body.name!r}", moment) for moment in body.inertia]
            x = at.of(body).centre
            weight = sum(g * x[i] for i, g in enumerate(gravity) if not (isinstance(g, float) and g == 0))
            total = total + body.coordinates.kinetic(q[body.slice], p[body.slice], mass, J) - mass * weight
        for load in self.loads:
            total = total + load.potential(at)
        return total

    def _gravity(self, params: Mapping[str, Any]) -> list[Any]:
        value = valued("gravity", self.gravity, params)
        entries = [valued("gravity", entry, params) for entry in value]
        return [*entries, 0.0] if len(entries) == 2 else entries

    def _force(self, params: Mapping[str, Any], t: Any, q: Any, v: Any) -> Any:
        at = self._placement(q, v, t, params)
        loads = Loads(at)
        for load in self.loads:
            load.exert(at, loads)
        return np.array(loads.generalised(self.dim), like=q)


class _OwnRows:
    """The rows of a body's coordinates, in the form of those of a joint."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.name = body.name

    def rows(self, at: Placement) -> list[Any]:
        assert self.body.coordinates is not None
        return self.body.coordinates.constraints(at.q[self.body.slice])


def _row_name(part: Part, k: int, count: int) -> str:
    return part.name if count == 1 else f"{part.name}, row {k + 1}"
