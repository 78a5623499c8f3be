"""Processes that are killed while they write: whatever is left behind is resumed, and ends in the bits of an uninterrupted run.

python benchmarks/kills.py                  1,000 kills
python benchmarks/kills.py --kills 100 --seed 7

A child is forked after everything is compiled, computes in chunks so short that it writes nearly all the time, and is killed
by SIGKILL: at the n-th file operation inside the store (an open, rename, truncation or new directory, seen by an audit hook), n
random, or after a random time. The next child resumes, and is killed as well, one to four times; the last one is left alone.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr  # noqa: F401  (loaded before the fork)

import dalembert as da
from dalembert.runs import _reopen, _simulate_many, _stored_run, _sweep  # noqa: F401

OPERATIONS = ("open", "os.rename", "os.mkdir", "os.remove", "os.truncate", "os.rmdir")


@dataclass(frozen=True)
class Work:
    """Something that is written: how it begins, how it goes on, and with which model."""

    system: Any
    method: da.OneStepMethod
    given: dict[str, Any]
    longer: int | None = None
    """A number of steps that a finished run is made longer to."""

    def begin(self, path: Path) -> None:
        many = np.ndim(next(iter(self.given.values()))) == 2
        (da.simulate_many if many else da.simulate)(self.system, self.method, save_to=path, progress=False, **self.given)

    def go_on(self, path: Path) -> None:
        if not path.exists():
            self.begin(path)
        else:
            da.resume(path, self.system, self.method, progress=False)
        if self.longer is not None:
            da.resume(path, self.system, self.method, steps=self.longer, progress=False)

    def compile(self) -> None:
        """What children must not have to do."""
        many = np.ndim(next(iter(self.given.values()))) == 2
        for executor in (None, _Here()) if many else (None,):
            function = da.simulate_many if many else da.simulate
            function(
                self.system, self.method, progress=False, **self.given, **({} if executor is None else {"executor": executor})
            )


def _Here() -> Any:
    """An executor that makes parts as a store does, in this thread."""
    from concurrent.futures import Executor, Future

    class Here(Executor):
        def submit(self, function: Callable, /, *positional: Any, **named: Any) -> Future:
            future: Future = Future()
            future.set_result(function(*positional, **named))
            return future

    return Here()


def works() -> dict[str, Work]:
    """A run, one that is made longer, one with impacts and a contact, two by time stepping, a sweep, and one with impacts."""
    pendulum = da.Hamiltonian(
        lambda q, p, g: p @ p / 0.4 + 0.2 * g * q[1], dim=2, holonomic=lambda q: [q @ q - 1], params={"g": 9.81}
    )
    ball = da.Lagrangian(lambda q, v: 0.1 * v @ v - 0.2 * 9.81 * q[0], dim=1, unilateral=lambda q: q[0], restitution=0.7)
    angles = np.linspace(0.1, 2.5, 20)
    starts = np.stack([np.sin(angles), -np.cos(angles)], axis=1)
    swing = {"q0": [0.6, -0.8], "p0": [0.0, 0.0], "h": 0.01}
    fall = {"q0": [0.3], "v0": [0.0], "h": 0.01, "steps": 200}
    block = da.Lagrangian(
        lambda q, v: 0.1 * v @ v - 0.2 * 9.81 * q[1], dim=2, unilateral=lambda q: q[1], friction=0.3, restitution=0.5
    )
    discs = da.Spheres([0.01] * 2, masses=[0.2, 0.1], gravity=(0, -9.81), planes=[((0, 1), 0)], friction=0.4)
    pile = {"q0": [0, 0.01, 0, 0.005, 0.04, 0], "v0": [0.2, 0, 0, 0, 0, 0], "h": 1e-3, "steps": 200}
    return {
        "run": Work(pendulum, da.LobattoIIIAB(3), swing | {"steps": 400, "save_every": 3}),
        "longer": Work(pendulum, da.Rattle(), swing | {"steps": 150, "stage_multipliers": True}, longer=400),
        "impacts": Work(ball, da.CVA(), fall),
        "time stepping": Work(block, da.NonsmoothRattle(), {"q0": [0, 0.05], "v0": [1, 0], "h": 2e-3, "steps": 200}),
        "spheres": Work(discs, da.MoreauJean(), pile, longer=300),
        "sweep": Work(pendulum, da.Rattle(), {"q0": starts, "p0": [0.0, 0.0], "h": 0.01, "steps": 50}),
        "sweep with impacts": Work(ball, da.CVA(), fall | {"q0": 0.1 + 0.1 * np.arange(6.0)[:, None]}),
    }  # fmt: skip


def contents(path: Path) -> str:
    """A digest of all that a store holds."""
    run, digest = da.load(path), hashlib.sha256()
    digest.update(repr(run.status).encode())
    for name in ("t", "states", "stage_lam", "impacts", "contacts", "last", "steps_done"):
        values = getattr(run, name, None)
        parts = vars(values).values() if name in ("impacts", "contacts") and values is not None else [values]
        for part in parts:
            digest.update(b"" if part is None else np.ascontiguousarray(np.asarray(part)).tobytes())
    return digest.hexdigest()


def forked(task: Callable[[], Any], dies_at: int | None = None, dies_after: float | None = None) -> tuple[str, int]:
    """What a task says in a child, and the signal that ended it; it dies at its n-th file operation, or after so long."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            if dies_at is not None:
                _die_at(dies_at)
            said = str(task())
        except BaseException as error:  # the parent wants to know
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    if dies_after is not None:
        time.sleep(dies_after)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return said, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def _die_at(n: int) -> None:
    left = n

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in OPERATIONS and ".zarr" in str(arguments[0]):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def study(
    kills: int, seed: int, progress: bool = True, only: tuple[str, ...] = ()
) -> tuple[collections.Counter[str], list[str]]:
    """How many kills of each kind of work, and what went wrong."""
    rng, done, wrong = np.random.default_rng(seed), collections.Counter[str](), list[str]()
    _stored_run.CHUNK_NUMBERS = 40
    chosen = {name: work for name, work in works().items() if not only or name in only}
    for work in chosen.values():
        work.compile()
    with tempfile.TemporaryDirectory() as folder:
        whole, seconds = {}, {}
        for name, work in chosen.items():
            path, began = Path(folder) / f"{name}.zarr", time.perf_counter()
            said, _ = forked(lambda work=work, path=path: work.go_on(path))
            seconds[name] = time.perf_counter() - began
            whole[name] = forked(lambda path=path: contents(path))[0]
            if said != "None" or not re.fullmatch("[0-9a-f]{64}", whole[name]):
                raise SystemExit(f"{name}: {said}, {whole[name]}")
        while done.total() < kills:
            name = list(chosen)[rng.integers(len(chosen))]
            number, path = done.total(), Path(folder) / f"{done.total()} {name}.zarr"
            for _ in range(rng.integers(1, 5)):
                aimed = {"dies_at": int(rng.integers(1, 250))} if rng.integers(4) else {}
                aimed = aimed or {"dies_after": float(rng.uniform(0, seconds[name]))}
                said, ended = forked(lambda work=chosen[name], path=path: work.go_on(path), **aimed)
                done[name] += ended == signal.SIGKILL
                if ended not in (0, signal.SIGKILL) or (ended == 0 and said != "None"):
                    wrong.append(f"kill {number} ({name}): {said or ended}")
            said, _ = forked(lambda work=chosen[name], path=path: work.go_on(path))
            left = forked(lambda path=path: contents(path))[0]
            if said != "None" or left != whole[name]:
                wrong.append(f"kill {number} ({name}, seed {seed}): {said}, {left[:80]} instead of {whole[name]}")
            if progress and number // 50 != done.total() // 50:
                print(f"{done.total()} kills, {len(wrong)} wrong", flush=True)
    return done, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    done, wrong = study(given.kills, given.seed)
    print(*wrong, sep="\n")
    print(f"{done.total()} kills, {len(wrong)} wrong: " + ", ".join(f"{count} {name}" for name, count in done.items()))


if __name__ == "__main__":
    main()
