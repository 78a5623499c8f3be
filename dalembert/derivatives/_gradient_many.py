"""Gradients of an ensemble: one for each member."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dalembert._interrupts import interruptible
from dalembert._progress import ProgressLine, preparing
from dalembert._warnings import warn
from dalembert.derivatives._gradient import Losses, value_and_gradient
from dalembert.derivatives._wanted import Differentiated, initial_values, run_arguments, start_from, wanted
from dalembert.errors import DalembertError, InputError
from dalembert.parallel._executors import on_threads
from dalembert.runs._arguments import Policy
from dalembert.runs._drivers import check_differentiable
from dalembert.systems._states import States


@interruptible()
def gradient_many(
    loss: Callable | None,
    system: Any,
    method: Any,
    *,
    wrt: str | Sequence[str],
    at: Any = None,
    running: Callable | None = None,
    workers: int | None = None,
    on_failure: str = "raise",
    progress: bool | None = None,
    **arguments: Any,
) -> tuple[np.ndarray, Any]:
    """The values of a loss along many runs, the members, and its gradient along each: `da.gradient` for an ensemble.

    Any initial value and any parameter may have a leading axis, one row a member, as for `da.simulate_many` (`start` may be a
    list of states); controls are the same for all. Values and gradients have one row a member. Members share compiled
    programs and are computed by `workers` threads. If one fails, its number is said; with `on_failure="return"` its value and
    gradient are nan, the others are computed, and a warning names it and the reason; what is wrong for all is an error.

    Example:
        >>> import numpy as np, dalembert as da
        >>> spring = da.Hamiltonian(lambda q, p, k: p @ p / 2 + k * q @ q / 2, dim=1, params={"k": 4.0})
        >>> k = np.array([1.0, 4.0, 9.0])
        >>> values, slopes = da.gradient_many(lambda q: q[0], spring, da.Gauss(3), wrt=("k", "q0"), params={"k": k},
        ...                                   q0=[1.0], p0=[0.0], h=0.01, steps=100)
        >>> bool(np.allclose(slopes["k"], -np.sin(np.sqrt(k)) / (2 * np.sqrt(k)), atol=1e-11)), slopes["q0"].shape
        (True, (3, 1))

    """
    policy = Policy(progress=progress, on_failure=on_failure, workers=workers)
    with preparing(progress):
        members, losses = _members(system, method, wrt, arguments, (loss, at, running))
        first = members[0]
        values = np.full(len(members), np.nan)
        parts = {each.name: np.full((len(members), *first.shape(each)), np.nan) for each in first.wanted}

    stopped = threading.Event()

    failed: dict[int, DalembertError] = {}

    def one(member: int) -> tuple[float, dict[str, np.ndarray]] | None:
        if stopped.is_set():
            return None
        try:
            return value_and_gradient(members[member], losses, progress=False)
        except DalembertError as error:
            if policy.on_failure == "return":
                failed[member] = error
                return None
            raise type(error)(f"member {member}: {error}") from None

    threads = min(policy.workers or os.cpu_count() or 1, len(members))
    with ProgressLine(len(members), progress, "gradients") as line:
        results = on_threads(one, {k: k for k in range(len(members))}, threads, stopped.set)
        for done, (member, found) in enumerate(results):
            if found is not None:
                values[member] = found[0]
                for name, part in found[1].items():
                    parts[name][member] = part
            line.update(done + 1)
    if failed:
        _say(failed, len(members))
    return values, parts[wrt] if isinstance(wrt, str) else parts


def _say(failed: dict[int, DalembertError], members: int) -> None:
    """Warn of members that failed; what is wrong with the arguments of all of them is an error."""
    numbers = sorted(failed)
    first = failed[numbers[0]]
    if len(failed) == members and isinstance(first, InputError) and len({str(error) for error in failed.values()}) == 1:
        raise first
    shown = ", ".join(map(str, numbers[:10])) + (f" and {len(numbers) - 10} more" if len(numbers) > 10 else "")
    warn(f"no gradient for member {shown} of {members}: {first} (member {numbers[0]})")


def _members(
    system: Any, method: Any, wrt: str | Sequence[str], arguments: dict[str, Any], loss: tuple[Any, Any, Any]
) -> tuple[list[Differentiated], Losses]:
    """The runs of all members, and the loss that they share."""
    packed = run_arguments("gradient_many", system, method, arguments)
    spec = packed.many()
    check_differentiable(spec.method, "da.gradient_many")
    states, given = spec.start, initial_values(packed, wrt)
    assert isinstance(states, States)
    names, members = wanted(spec, wrt, given), []
    for k in range(len(states)):
        v0 = given.get("v0")
        own = {} if v0 is None else {"v0": v0[k] if np.ndim(v0) == 2 else v0}
        one = replace(spec, start=states[k])
        members.append(Differentiated(one, start_from(one, own), names))
    return members, Losses.of(members[0], *loss)
