"""What `simulate_many` returns: many runs of one system, and what is left of quantities that were only followed."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from dalembert.draw import Drawing
from dalembert.engine._records import ImpactReduction, MemberImpacts
from dalembert.errors import InputError
from dalembert.mechanisms._rigid import Part
from dalembert.methods import OneStepMethod
from dalembert.runs._tables import columns_of, dataset, frame
from dalembert.runs._trajectory import Trajectory
from dalembert.runs._variables import MemberReadings, Variables
from dalembert.systems import State, System
from dalembert.systems._states import States


def member_number(member: Any, members: int) -> int:
    """The number of a member, counted from the end if it is negative."""
    try:
        number = operator.index(member)
    except TypeError:
        raise TypeError(f"members are counted by integers, or slices of an ensemble; got {member!r}") from None
    if not -members <= number < members:
        raise IndexError(f"member {number} of {members}")
    return number % members


@dataclass(frozen=True, eq=False)
class Reduction:
    """What is left of a quantity along each member's run: arrays, one number a member, over all steps and the start."""

    first: np.ndarray
    last: np.ndarray
    min: np.ndarray
    max: np.ndarray
    mean: np.ndarray
    slope: np.ndarray
    """Of the least-squares line through the quantity against time."""

    @property
    def range(self) -> np.ndarray:
        """max - min."""
        return self.max - self.min


@dataclass(frozen=True, eq=False)
class Ensemble(Variables):
    """Many runs of one system: the arrays of a trajectory, the member as first axis.

    `t` has one entry a stored step; `q`, `p`, `v`, `lam`, `psi`, `energy` and every array of `residuals` are (member, time,
    ...), nan after the end of a member that failed. `runs[i]` is member i as a `Trajectory`, `runs[2:5]` a list of them.
    `status` and `message` say how each one ended ("done", "failed", "interrupted"), `reduced` holds what `reduce=` asked for.
    Of methods for contact, `impacts` and `contacts` are those of all members, with an array `member` beside the columns of
    `run.impacts` and `run.contacts`.

    Example:
        >>> import numpy as np, dalembert as da
        >>> runs = da.simulate_many(da.problems.double_pendulum(), da.LobattoIIIAB(3), params={"g": np.linspace(1, 2, 10)},
        ...                         h=0.1, steps=200, save_every=10)
        >>> len(runs), runs.q.shape, runs.energy.shape, runs[3].q.shape, set(runs.status)
        (10, (10, 21, 4), (10, 21), (21, 4), {'done'})

    """

    t: np.ndarray
    states: np.ndarray
    """All variables, (member, time, n)."""
    blocks: tuple[tuple[str, int], ...]
    h: float
    method: str
    parameters: dict[str, np.ndarray]
    """Every parameter, (member, ...)."""
    status: tuple[str, ...]
    message: tuple[str, ...]
    steps_done: np.ndarray
    """How many steps each member made."""
    last: np.ndarray
    """The last state of every member, (member, n), whether its step was stored or not."""
    reduced: dict[str, Reduction | ImpactReduction]
    stats: dict[str, float]
    system: System | None = field(repr=False)
    solver: OneStepMethod | None = field(repr=False)
    starts: States | None = field(repr=False)
    save_every: int = field(repr=False)
    stage_multipliers: np.ndarray | None = field(repr=False)
    """(lam, psi) next to the end of each stored step, (member, time, m), if they were asked for."""
    _counts: dict[str, np.ndarray] = field(repr=False)
    _events: Callable[[str], Any] = field(repr=False)
    """Gives the events of all members, "impact" or "contact"; None if they are not stored."""
    drawing: Drawing | None = field(default=None, repr=False)
    """How the mechanism is drawn, where a `Problem` says so."""
    clock: np.ndarray | None = field(default=None, repr=False)
    """What `clock_names` name, (member, time, name), where step sizes vary; then `t` is (member, time), too."""
    clock_names: tuple[str, ...] = field(default=(), repr=False)
    """t and 1/h, as a rule."""
    error: np.ndarray | None = field(default=None, repr=False)
    """The estimated largest error of the positions of each member, relative to their size, where `rtol=` asked for it."""
    choice: str = field(default="", repr=False)
    """Why a method and a step size were chosen, where `rtol=` asked for it."""

    def __repr__(self) -> str:
        done = sum(status == "done" for status in self.status)
        first, last = np.min(self.t[..., 0]), np.nanmax(self.t)
        return f"<Ensemble of {len(self)} runs, t = {first:g} to {last:g}, {self.method}, {done} done>"

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[Trajectory]:
        return (self[member] for member in range(len(self)))

    @overload
    def __getitem__(self, member: int) -> Trajectory: ...

    @overload
    def __getitem__(self, member: slice) -> list[Trajectory]: ...

    def __getitem__(self, member: int | slice) -> Trajectory | list[Trajectory]:
        if isinstance(member, slice):
            return [self[k] for k in range(*member.indices(len(self)))]
        member = member_number(member, len(self))
        return self._trajectory(member, None if self.starts is None else self.starts[member])

    def _trajectory(self, member: int, start: State | None) -> Trajectory:
        done, n = int(self.steps_done[member]), sum(size for _, size in self.blocks)
        saved = done // self.save_every + 1
        numbers, rows = np.arange(saved) * self.save_every, self.states[member, :saved]
        stage = None if self.stage_multipliers is None else self.stage_multipliers[member, :saved]
        clock, carried = (None, n) if self.clock is None else (self.clock[member, :saved], n + self.clock.shape[2])
        if done % self.save_every:
            numbers, rows = np.append(numbers, done), np.vstack([rows, self.last[member, :n]])
            clock = None if clock is None else np.vstack([clock, self.last[member, n:carried]])
            stage = None if stage is None else np.vstack([stage, self.last[member, carried:]])
        parts: Sequence[np.ndarray | None] = (None, None)
        if stage is not None and self.system is not None:
            parts = np.split(stage, [self.system.n_holonomic], axis=1)
        return Trajectory(
            t=self.t[0] + numbers * self.h if clock is None else clock[:, 0],
            step_sizes=None if clock is None else self._step_sizes(rows, clock, start),
            states=rows,
            blocks=self.blocks,
            h=self.h,
            method=self.method,
            parameters={name: values[member] for name, values in self.parameters.items()},
            status=self.status[member],
            message=self.message[member],
            stats={name: int(values[member]) for name, values in self._counts.items()},
            fingerprint="" if self.system is None else self.system.fingerprint,
            system=self.system,
            start=start,
            solver=self.solver,
            drawing=self.drawing,
            stage_lam=parts[0],
            stage_psi=parts[1],
            impacts=None if self.impacts is None else self.impacts[member],
            contacts=None if self.contacts is None else self.contacts[member],
            error=None if self.error is None or np.isnan(self.error[member]) else float(self.error[member]),
            choice=self.choice,
        )

    def _step_sizes(self, rows: np.ndarray, clock: np.ndarray, start: State | None) -> np.ndarray | None:
        """Those that belong to stored rows; None where they follow from a model that is not there."""
        if self.system is not None and self.solver is not None and start is not None:
            return self.solver.step_sizes(self.system, np.hstack([rows, clock]), start.theta, self.h)
        return 1 / clock[:, 1] if self.clock_names[1] == "rate" else None

    @functools.cached_property
    def impacts(self) -> MemberImpacts | None:
        """Impacts of all members on unilateral constraints, for runs by a collision integrator that were not reduced."""
        return self._events("impact")

    @functools.cached_property
    def contacts(self) -> Any:
        """Sustained contacts of all members, or what contacts did in their runs by time stepping."""
        return self._events("contact")

    def of(self, part: Part | str) -> Any:
        """What a part of a `da.Mechanism`, or the part of a name, does in all members: arrays (member, time, ...).

        Quantities are those of `run.of`; those of a member that failed are nan after its end.

        Example:
            >>> import dalembert as da
            >>> runs = da.simulate_many(da.problems.slider_crank(), da.Rattle(), params={"g": [0.0, 9.81]}, steps=20)
            >>> runs.of("crank").position.shape, runs.of("revolute 1").angle.shape
            ((2, 21, 3), (2, 21))

        """
        return MemberReadings([run.of(part) for run in self._each()], self._padded)

    def to_xarray(self) -> Any:
        """All runs as an xarray.Dataset, parameters among its variables (needs the package xarray)."""
        self._refuse_own_times("to_xarray")
        attributes = {"method": self.method, "h": self.h}
        found = dataset(columns_of(self, self._has_energy), self._axes, self._names, attributes)
        found["status"] = ("member", list(self.status))
        for name, values in self.parameters.items():
            found[f"parameter_{name}"] = (("member", *(f"{name}_{k}" for k in range(values.ndim - 1))), values)
        return found

    def to_dataframe(self) -> Any:
        """All runs as a pandas.DataFrame: a row a member and time, columns by quantity and name (needs the package pandas).

        Example:
            >>> import dalembert as da
            >>> runs = da.simulate_many(da.problems.pendulum(), da.Rattle(), params={"g": [1.0, 2.0]}, steps=20)
            >>> table = runs.to_dataframe()
            >>> list(table.index.names), table.shape[0], bool(table.loc[1]["q"]["z"].iloc[0] == runs.q[1, 0, 1])
            (['member', 'time'], 42, True)

        """
        self._refuse_own_times("to_dataframe")
        return frame(columns_of(self, self._has_energy), self._axes, self._names)

    def _refuse_own_times(self, what: str) -> None:
        if self.clock is not None:
            raise InputError(f"members whose steps vary have times of their own: take runs[i].{what}()")

    @property
    def _axes(self) -> dict[str, np.ndarray]:
        return {"member": np.arange(len(self)), "time": self.t}

    @property
    def _names(self) -> dict[str, tuple[str, ...]]:
        return {} if self.system is None else self.system.names

    @property
    def _has_energy(self) -> bool:
        return self.system is not None and "H" in self.system.function_names

    def _observe(self, name: str) -> np.ndarray:
        return self._padded([run._observe(name) for run in self._each()])

    def _each(self) -> Iterator[Trajectory]:
        """The members, without their starts, which take a millisecond each, where nothing depends on them."""
        needed = self.system is not None and not self.system.linear_in_multipliers
        return iter(self) if needed else (self._trajectory(member, None) for member in range(len(self)))

    def _padded(self, values: list[np.ndarray]) -> np.ndarray:
        """One array of the stored steps of all members, nan where a member has none."""
        result = np.full((len(self), self.t.shape[-1], *values[0].shape[1:]), np.nan)
        for member, rows in enumerate(values):
            stored = self.steps_done[member] // self.save_every + 1
            result[member, :stored] = rows[:stored]
        return result
