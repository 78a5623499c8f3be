"""What a simulation returns: states, and everything that follows from them, as arrays with time first."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dalembert.contact._contact_forces import ContactForces, contact_forces, multipliers_in_contact
from dalembert.contact._determined import unique_impulses
from dalembert.engine._records import Contacts, Impacts, SphereContacts, SteppedContacts, from_columns
from dalembert.engine._spec import Controls
from dalembert.errors import DalembertError, InputError
from dalembert.mechanisms._reading import read
from dalembert.mechanisms._rigid import Part
from dalembert.methods import OneStepMethod
from dalembert.runs._inside import Inside, interpolated
from dalembert.runs._model_identity import check_model
from dalembert.runs._observed import Observed
from dalembert.runs._run_file import CHOSEN, STAGE, read_run, write_run
from dalembert.runs._tables import columns_of, dataset, frame
from dalembert.storage._groups import StoredArray, read_rows
from dalembert.storage._run_store import Header, RunStore
from dalembert.systems import MechanicalSystem, State, System
from dalembert.systems._consistent import unpack

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dalembert.draw import Animation, Drawing


@dataclass(frozen=True, eq=False)
class Trajectory(Observed):
    """States along a run.

    `t` and the state, `q` and `p` (`y` and `z` for an ODAE), are stored; `v`, `lam`, `psi`, `energy` and `residuals` are
    computed from them when first asked for. `status` is "done", "failed" or "interrupted", and `message` says why. `stats`
    counts Newton iterations, factorisations, `followed_steps`, whose solution was in doubt and followed from small h, those of
    them that had another solution than was found at first, or none (`rescued_steps`), `pivoted_steps` that were solved by dense
    elimination because the pivot order chosen at the start failed, `renewals` of the combinations of redundant constraints,
    `rejected_steps` that `da.ControlledSteps` made again, and seconds.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), steps=100)
        >>> run.q.shape, run.status, bool(abs(run.energy - run.energy[0]).max() < 1e-4)
        ((101, 4), 'done', True)

    """

    t: np.ndarray
    states: np.ndarray
    """All variables, (time, n)."""
    blocks: tuple[tuple[str, int], ...]
    """The names and sizes of the parts of a state."""
    h: float
    method: str
    parameters: dict[str, np.ndarray]
    status: str = "done"
    message: str = ""
    stats: dict[str, float] = field(default_factory=dict)
    fingerprint: str = ""
    system: System | None = field(default=None, repr=False)
    start: State | None = field(default=None, repr=False)
    solver: OneStepMethod | None = field(default=None, repr=False)
    stage_lam: np.ndarray | None = field(default=None, repr=False)
    """The method's own multiplier Lambda_s of each stored step, if `simulate` was asked for it; nan in the first row."""
    stage_psi: np.ndarray | None = field(default=None, repr=False)
    """The same for psi."""
    step_sizes: np.ndarray | None = field(default=None, repr=False)
    """The step size at each stored state, for runs by a method that varies it, such as `da.ReversibleSteps`."""
    impacts: Impacts | None = field(default=None, repr=False)
    """Impacts on unilateral constraints, for runs by a collision integrator."""
    contacts: Contacts | None = field(default=None, repr=False)
    """Where impacts accumulated and a wall was touched for a while."""
    drawing: Drawing | None = field(default=None, repr=False)
    """How the mechanism is drawn, where a `Problem` says so."""
    kept_names: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """The names of a run that was loaded without its model; see `names`."""
    controls: Controls | None = field(default=None, repr=False)
    """Parameters that changed along the run; what is computed from a state takes those of the step that begins there."""
    error: float | None = None
    """The estimated largest error of the positions, relative to their size, of a run that was asked for with `rtol=`."""
    choice: str = field(default="", repr=False)
    """Why its method and its step size were chosen."""
    _observed: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"<Trajectory of {len(self.t)} states, t = {self.t[0]:g} to {self.t[-1]:g}, {self.method}, {self.status}>"

    def __len__(self) -> int:
        return len(self.t)

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """What the coordinates ("y") and the rows of constraints ("g", "k", "phi") of a mechanism are called.

        Example:
            >>> import dalembert as da
            >>> run = da.simulate(da.problems.slider_crank(), da.Rattle(), steps=2)
            >>> run.names["y"][2], run.names["g"][0]
            ('crank.theta', 'revolute 1, row 1')

        """
        return self.kept_names if self.system is None else self.system.names

    @property
    def contact_forces(self) -> ContactForces:
        """The forces of sustained contacts at every stored state: arrays `normal` and `friction`, (time, wall).

        Example:
            >>> import dalembert as da
            >>> block = da.Lagrangian(lambda q, v: v @ v - 2 * 9.81 * q[1], dim=2, unilateral=lambda q: q[1], friction=0.5)
            >>> run = da.simulate(block, da.CVA(), q0=[0, 0], v0=[1, 0], h=0.01, t1=0.5)
            >>> forces = run.contact_forces
            >>> forces.normal[0].round(9).tolist(), forces.friction[0].round(9).tolist()
            ([19.62], [-9.81])

        """
        if self.contacts is None or not isinstance(self.system, MechanicalSystem):
            raise DalembertError("contact forces belong to runs with walls, by a collision integrator, and need the model")
        if type(self.contacts) is not Contacts:
            raise DalembertError(
                "time stepping has impulses over whole steps, no forces at states: read run.contacts.normal and "
                "run.contacts.friction, and divide by end - begin for mean forces"
            )
        return contact_forces(self.system, self.contacts, np.asarray(self.t), np.asarray(self.states), self._theta, self.h)

    @property
    def contacts_unique(self) -> np.ndarray:
        """Whether the motion determines the forces, or impulses, of each row of `run.contacts`, as not those of a table's feet.

        Others would move the system alike. `run.contact_forces` are those of least norm then, and impulses of time stepping
        some that are admissible; their sums count. Stored states tell: of a contact of `da.CVA` between two of them nothing is
        known, so that it is False, too.

        Example:
            >>> import dalembert as da
            >>> feet = {"unilateral": lambda q: [q[0] + x * q[1] for x in (-1, 0, 1)], "restitution": 0.0}
            >>> stool = da.Lagrangian(lambda q, v: v @ v / 2 - 3 * q[0], dim=2, **feet)
            >>> run = da.simulate(stool, da.CVA(), q0=[0, 0], v0=[0, 0], h=0.01, steps=2)
            >>> bool(run.contacts_unique.any()), run.contact_forces.normal[-1].round(9).tolist()
            (False, [1.0, 1.0, 1.0])

        """
        if self.contacts is None or not isinstance(self.system, MechanicalSystem) or isinstance(self.contacts, SphereContacts):
            raise DalembertError(
                "whether forces of contacts are unique is known of runs with stated walls, and needs the model"
            )
        t, states = np.asarray(self.t), np.asarray(self.states)
        if isinstance(self.contacts, SteppedContacts):
            return unique_impulses(self.system, self.contacts, t, states, self._theta, self.h)
        unique, rows = self.contact_forces.unique, zip(self.contacts.which, self.contacts.begin, self.contacts.end, strict=True)
        found = [unique[(t >= begin) & (t <= end), which] for which, begin, end in rows]
        return np.array([len(during) > 0 and during.all() for during in found], dtype=bool)

    def _multipliers(self) -> np.ndarray:
        """What holds constraints where walls are touched, too; time stepping does not say it where contacts acted: nan."""
        free, t = super()._multipliers(), np.asarray(self.t)
        if not free.shape[1] or self.contacts is None or not len(self.contacts):
            return free
        if type(self.contacts) is Contacts and isinstance(self.system, MechanicalSystem):
            return multipliers_in_contact(self.system, self.contacts, t, np.asarray(self.states), self._theta, free)
        for begin, end in zip(self.contacts.begin, self.contacts.end, strict=True):
            free[(t > begin) & (t <= end)] = np.nan
        return free

    def with_states(self, t: np.ndarray, states: np.ndarray) -> Trajectory:
        """The same model at other times and states."""
        return Trajectory(t, states, self.blocks, self.h, self.method, self.parameters, system=self.system)

    def of(self, part: Part | str) -> Any:
        """What a part of a `da.Mechanism`, or the part of a name, does along the run, as arrays with time first.

        Bodies have `position`, `velocity`, `rotation`, `angular_velocity` and `point(at)`, joints `angle`, `rate`,
        `displacement`, `speed`, `force` and `torque`, wheels `contact_point`, `force`, `normal` and `friction`, springs
        `length`, motors, gears and stops `effort`, stops and contacts `gap`, `impacts` and `contacts`.

        Example:
            >>> import numpy as np, dalembert as da
            >>> m = da.Mechanism(gravity=(0, -9.81), coordinates="planar")
            >>> rod = m.rod("rod", (0, 0), (0.4, 0), mass=0.3)
            >>> hinge = m.revolute(m.ground, rod, at=(0, 0))
            >>> run = da.simulate(m, da.LobattoIIIAB(3), h=0.01, steps=20)
            >>> run.of(rod).position.shape, bool(run.of("revolute 1").angle[-1] < 0)
            ((21, 3), True)
            >>> round(float(run.of(hinge).force[0, 1]), 3)  # released at rest, a quarter of the weight is carried
            0.736

        """
        return read(part, self)

    # -- between the states ------------------------------------------------------------------------------------------

    def at(self, t: Any, *, side: Literal["left", "right"] = "right") -> Inside:
        """The method's collocation polynomials at any times within the run (dense output), for runs with `save_every=1`.

        Each step that contains one of the times is solved again. Where polynomials jump, at the ends of steps, `side` chooses
        the step before or the one after.

        Example:
            >>> import numpy as np, dalembert as da
            >>> run = da.simulate(da.problems.pendulum(), da.GaussLobattoSPARK(stages=3), h=0.1, steps=100)
            >>> inside = run.at(np.linspace(1.0, 2.0, 50))
            >>> inside.q.shape, bool(abs((inside.q**2).sum(axis=1) - 1).max() < 1e-4)
            ((50, 2), True)

        """
        if self.controls is not None:
            raise InputError("a run with controls has no dense output: interpolate run.t and the stored states")
        return interpolated(self, t, side)

    # -- keeping ---------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything to a compressed .npz file that holds numbers and text only; `da.load` reads it back.

        The file appears whole or not at all: it is written beside its place and moved there.
        """
        return write_run(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Trajectory:
        """Read a run that `run.save` or `simulate(..., save_to=)` wrote. Nothing in it is executed; the model is not in it."""
        return StoredTrajectory.open(path) if os.path.isdir(path) else Trajectory(**read_run(path))

    def to_xarray(self) -> Any:
        """The run as an xarray.Dataset with named dimensions (needs the package xarray)."""
        attributes = {"method": self.method, "h": self.h, "status": self.status}
        return dataset(columns_of(self, self.has_energy), {"time": self.t}, self.names, attributes)

    def to_dataframe(self) -> Any:
        """The run as a pandas.DataFrame: a row a time, columns by quantity and name (needs the package pandas).

        Example:
            >>> import dalembert as da
            >>> run = da.simulate(da.problems.double_pendulum(), da.Rattle(), steps=10)
            >>> table = run.to_dataframe()
            >>> list(table["q"].columns), table["energy"].shape
            (['x1', 'z1', 'x2', 'z2'], (11,))

        """
        return frame(columns_of(self, self.has_energy), {"time": self.t}, self.names)

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Figure:
        """One page on the run, written to `path` as .png, .pdf or .svg; the options are those of `da.plot.overview`."""
        from dalembert.plot import overview

        return overview(self, path, **options)

    def animate(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Animation:
        """A film of the mechanism, written to `path` as .html, .gif or .mp4; the options are those of `da.draw.animate`."""
        from dalembert.draw import animate

        return animate(self, path, **options)


def start_of(header: Header, system: System) -> State:
    """The state in which a run on disk began."""
    arrays = (np.array(values, dtype=float) for values in (header.start, header.theta, header.multipliers))
    packed, theta, multipliers = arrays
    return unpack(system, header.t0, packed, theta, multipliers)


class StoredTrajectory(Trajectory):
    """A trajectory whose states stay on disk.

    It has all that a `Trajectory` has. `states` is read in the parts that are asked for, `q`, `p`, `v`, `lam`, `energy` and
    `residuals` chunk by chunk; each is as long as the run once it is there, so for a run that is too long for that go through
    `chunks()`.

    Example:
        >>> import os, tempfile, dalembert as da
        >>> path = os.path.join(tempfile.mkdtemp(), "run.zarr")
        >>> run = da.simulate(da.problems.pendulum(), da.Rattle(), h=0.01, steps=10_000, save_every=10, save_to=path)
        >>> run.states[500:600].shape, bool(max(abs(part.residuals["g"]).max() for part in run.chunks()) < 1e-14)
        ((100, 4), True)

    """

    def __init__(
        self,
        store: RunStore,
        system: System | None = None,
        start: State | None = None,
        solver: OneStepMethod | None = None,
        drawing: Drawing | None = None,
    ) -> None:
        header, progress = store.header, store.progress
        status, message = progress.status, progress.message
        if status == "running":
            status = "interrupted"
            message = f"{progress.steps} of {header.steps} steps are stored; da.resume goes on from there"
        stage: dict[str, Any] = dict.fromkeys(STAGE)
        for name, size in header.stage:
            stage[name] = self._stored(store, name) if size else np.zeros((progress.rows, 0))
        parameters = {name: np.array(value, dtype=float) for name, value in header.parameters.items()}
        vars(self).update(  # a frozen dataclass, of which `t`, `impacts` and `contacts` are read when they are asked for
            {name: getattr(header, name) for name in ("blocks", "h", "method", "fingerprint", *CHOSEN)},
            store=store,
            states=self._stored(store, "states"),
            parameters=parameters,
            status=status,
            message=message,
            stats={"steps": progress.steps, **progress.stats},
            system=system,
            start=start,
            solver=solver,
            drawing=drawing,
            kept_names={name: tuple(labels) for name, labels in header.names.items()},
            _observed={},
            **stage,
        )

    store: RunStore

    @staticmethod
    def _stored(store: RunStore, name: str) -> StoredArray:
        return StoredArray(store.array(name), store.progress.rows, store.header.chunk)

    @functools.cached_property
    def t(self) -> np.ndarray:  # type: ignore[override]
        """The times, (time,)."""
        return self._times(0, len(self))

    def _times(self, first: int, last: int) -> np.ndarray:
        header = self.store.header
        if header.clock:
            return read_rows(self.store.array("t"), slice(first, last))
        return header.t0 + header.step_of(np.arange(first, last), self.store.progress.steps) * header.h

    @functools.cached_property
    def step_sizes(self) -> np.ndarray | None:
        """The step size at each stored state, for runs by a method that varies it.

        None in runs by `SymplecticSteps` that were loaded: they follow from its density, which is not in the store.
        """
        if "rate" in self.store.header.clock:
            return 1 / read_rows(self.store.array("clock"), slice(0, len(self)))[:, 1]
        if not self.store.header.clock or self.system is None or self.start is None or self.solver is None:
            return None
        parts, chunk = [np.zeros(0)], self.store.header.chunk
        for k in range(0, len(self), chunk):
            rows = slice(k, min(len(self), k + chunk))
            states = np.hstack([self.states[rows], read_rows(self.store.array("clock"), rows)])
            parts.append(self.solver.step_sizes(self.system, states, self.start.theta, self.h))
        return np.concatenate(parts)

    @functools.cached_property
    def impacts(self) -> Impacts | None:
        """The impacts of a run by a collision integrator."""
        return self._events("impact")

    @functools.cached_property
    def contacts(self) -> Contacts | None:
        """Where impacts accumulated and a wall was touched for a while."""
        return self._events("contact")

    def _events(self, kind: str, first: int = 0, last: int | None = None) -> Any:
        kinds = self.store.header.recorded.kinds
        if kind not in kinds:
            return None
        last = self.store.progress.events.get(kind, 0) if last is None else last

        def column(name: str) -> np.ndarray:
            if not self.store.has(name):
                raise KeyError(name)
            return read_rows(self.store.array(name), slice(first, last))

        return from_columns(kinds[kind], kind, column)

    def __len__(self) -> int:
        return self.store.progress.rows

    def __repr__(self) -> str:
        if not len(self):
            return f"<StoredTrajectory of 0 states in {self.store.path}, {self.method}, {self.status}>"
        first, last = self._times(0, 1)[0], self._times(len(self) - 1, len(self))[0]
        return (
            f"<StoredTrajectory of {len(self)} states in {self.store.path}, t = {first:g} to {last:g}, {self.method}, "
            f"{self.status}>"
        )

    def chunks(self) -> Iterator[Trajectory]:
        """The run in parts that fit into memory, one after the other, each a `Trajectory`.

        A part has the impacts until the next one begins, and the contacts that begin before that.
        """
        chunk, when, count = self.store.header.chunk, {}, self.store.progress.events
        for kind in self.store.header.recorded.kinds:
            name = {"impact": "impact_t", "contact": "contact_begin"}[kind]
            when[kind] = read_rows(self.store.array(name), slice(count.get(kind, 0)))
        for first in range(0, len(self), chunk):
            rows = slice(first, min(len(self), first + chunk))
            begin = self._times(first, first + 1)[0] if first else -np.inf
            ends = (begin, self._times(rows.stop, rows.stop + 1)[0] if rows.stop < len(self) else np.inf)
            events = {f"{kind}s": self._events(kind, *np.searchsorted(t, ends, side="right")) for kind, t in when.items()}
            yield Trajectory(
                t=self._times(rows.start, rows.stop),
                states=self.states[rows],
                stage_lam=None if self.stage_lam is None else self.stage_lam[rows],
                stage_psi=None if self.stage_psi is None else self.stage_psi[rows],
                step_sizes=None if self.step_sizes is None else self.step_sizes[rows],
                **{name: getattr(self, name) for name in ("blocks", "h", "method", "parameters", "status", "message")},
                **{name: getattr(self, name) for name in ("stats", "fingerprint", "system", "start", "solver", "drawing")},
                **events,
            )

    def _map(self, name: str, rows: slice) -> np.ndarray:
        first, last, _ = rows.indices(len(self))
        chunk = self.store.header.chunk
        parts = [super(StoredTrajectory, self)._map(name, slice(k, min(last, k + chunk))) for k in range(first, last, chunk)]
        return np.concatenate(parts) if parts else super()._map(name, rows)

    @staticmethod
    def open(path: str | os.PathLike[str], system: System | None = None, drawing: Drawing | None = None) -> StoredTrajectory:
        """Read a run that `save_to=` wrote, finished or not; with its model, also what follows from the states."""
        store = RunStore.open(path)
        if system is None:
            return StoredTrajectory(store)
        check_model(store.path, vars(store.header), system)
        return StoredTrajectory(store, system, start_of(store.header, system), drawing=drawing)
