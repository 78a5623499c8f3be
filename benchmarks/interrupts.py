"""Ctrl-C at random moments: how long it takes until Python has the word again, and with what.

python benchmarks/interrupts.py                    40 interrupts of each task
python benchmarks/interrupts.py --each 10 --only "a fit" "a gradient"

A child is forked, begins a task with a model that no cache knows (those marked 'warm' with one that is compiled already), and
gets SIGINT after a random part of the time that the whole task takes. It must end within a second: with a run that was computed
so far, with `KeyboardInterrupt`, or with a DalembertError, and never with anything else. The task 'import' runs in a new
interpreter.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dalembert as da

IMPORT = """
import signal, time
import dalembert as da
da.simulate, da.simulate_many, da.poincare, da.gradient
signal.signal(signal.SIGINT, signal.SIG_IGN)
print(time.time())
"""
ALLOWED = ("returned", "KeyboardInterrupt", "DalembertError")


def pendulum(c: float) -> da.Hamiltonian:
    return da.Hamiltonian(lambda q, p: p @ p / 2 + c * q[1], dim=2, holonomic=lambda q: [q @ q - 1])


def chain(c: float, links: int) -> da.Hamiltonian:
    def rods(q: Any) -> list[Any]:
        points = [np.zeros(2), *(q[2 * k : 2 * k + 2] for k in range(links))]
        return [(b - a) @ (b - a) - 1 for a, b in itertools.pairwise(points)]

    return da.Hamiltonian(lambda q, p: p @ p / 2 + c * q[1::2].sum(), dim=2 * links, holonomic=rods)


def hanging(links: int) -> dict[str, Any]:
    """Positions and momenta of a chain at rest along the first axis."""
    return {"q0": [x for k in range(links) for x in (k + 1.0, 0.0)], "p0": [0.0] * (2 * links)}


def ball(c: float) -> da.Lagrangian:
    return da.Lagrangian(
        lambda q, v: v @ v / 2 - 9.81 * c * q[1],
        dim=2,
        unilateral=lambda q: q[1] - 0.1 * np.sin(q[0]),
        restitution=0.9,
        friction=0.2,
    )


def pendulum_of(c: float) -> da.Hamiltonian:
    return da.Hamiltonian(lambda q, p, g: p @ p / 2 + c * g * q[1], dim=2, holonomic=lambda q: [q @ q - 1], params={"g": 9.81})


def pushed(c: float) -> da.Lagrangian:
    return da.Lagrangian(
        lambda q, v: c * v @ v / 2 - 9.81 * c * q[1], dim=2, holonomic=lambda q: [q @ q - 1], force=lambda u: [u, 0.0],
        params={"u": 0.0},
    )  # fmt: skip


def pile(c: float) -> da.Spheres:
    return da.Spheres([0.01] * 40, masses=[0.2 * c] * 40, gravity=(0, -9.81), planes=[((0, 1), 0.0)], friction=0.5)


def resting(bodies: int) -> dict[str, Any]:
    """Discs above each other, in four columns."""
    q = [[0.0202 * (k % 4), 0.01 + 0.0201 * (k // 4), 0.0] for k in range(bodies)]
    return {"q0": np.ravel(q), "v0": np.zeros(3 * bodies)}


def linkage(c: float, rods: int = 4) -> Any:
    m = da.Mechanism(gravity=(0, 0, -9.81))
    bodies, here = [m.ground], np.zeros(3)
    for k in range(rods):
        there = here + np.array([0.1 * c, 0.05 * k, 0.02])
        bodies.append(m.rod(f"rod {k}", here, there, mass=0.2))
        m.spherical(bodies[-2], bodies[-1], at=here)
        here = there
    return m


def to_store(c: float) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return da.simulate(pendulum(c), da.Rattle(), q0=[1, 0], p0=[0, 0], h=0.01, steps=3_000_000, save_to=f"{folder}/r.zarr")


SWING: dict[str, Any] = {"q0": [1.0, 0.0], "p0": [0.0, 0.0], "h": 0.01}
TASKS: dict[str, Callable[[float], Any]] = {
    "compiling a pendulum": lambda c: da.simulate(pendulum(c), da.LobattoIIIAB(3), **SWING, steps=10),
    "compiling a chain": lambda c: da.simulate(chain(c, 24), da.LobattoIIIAB(2), **hanging(24), h=1e-3, steps=10),
    "compiling a linkage in space": lambda c: da.simulate(linkage(c), da.LobattoIIIAB(3), h=1e-3, steps=10),
    "steps": lambda c: da.simulate(pendulum(c), da.Rattle(), **SWING, steps=3_000_000),
    "an ensemble": lambda c: da.simulate_many(
        pendulum(c), da.Rattle(), **SWING | {"q0": [SWING["q0"]] * 64}, steps=40_000, save_every=1000
    ),
    "a store": to_store,
    "crossings": lambda c: da.poincare(pendulum(c), da.Rattle(), **SWING, steps=500_000, section=lambda q: q[0]),
    "impacts and friction": lambda c: da.simulate(ball(c), da.CVA(), q0=[0, 1], v0=[1, 0], h=1e-3, steps=5_000),
    "time stepping": lambda c: da.simulate(ball(c), da.MoreauJean(), q0=[0, 1], v0=[1, 0], h=1e-4, steps=100_000),
    "many spheres": lambda c: da.simulate(pile(c), da.MoreauJean(), **resting(40), h=1e-3, steps=4_000),
    "an ensemble with friction": lambda c: da.simulate_many(
        ball(c), da.CVA(), q0=[[0, 1 + 0.1 * k] for k in range(8)], v0=[1, 0], h=1e-3, steps=3_000
    ),
    "an ensemble by time stepping": lambda c: da.simulate_many(
        ball(c), da.NonsmoothRattle(), q0=[[0, 1 + 0.1 * k] for k in range(8)], v0=[1, 0], h=1e-3, steps=6_000
    ),
    "sensitivities through impacts": lambda c: da.sensitivities(
        ball(c), da.CVA(), wrt=("v0",), q0=[0, 1], v0=[1, 0], h=1e-3, steps=2_000
    ),
    "a fit": lambda c: da.fit(
        pendulum_of(c), da.LobattoIIIAB(3), t=np.arange(1, 200) * 0.01, data=np.ones((199, 2)), params={"g": 5.0}, **SWING
    ),
    "an optimal control": lambda c: da.OptimalControl(
        pushed(c), da.Rattle(), controls="u", cost=lambda u: u**2, h=0.02, steps=100
    ).solve(q0=[0.0, -1.0], p0=[0.0, 0.0]),
    "building a mechanism": lambda c: linkage(c, 12).system(),
    "a gradient": lambda c: da.gradient(lambda q: q[0], pendulum(c), da.LobattoIIIAB(2), wrt=("p0",), **SWING, steps=100_000),
    "the start of a linkage": lambda c: linkage(c).start(),
}  # fmt: skip


WARM = {
    "impacts and friction", "time stepping", "many spheres", "an ensemble with friction", "an ensemble by time stepping",
    "sensitivities through impacts", "a gradient", "a fit", "an optimal control",
}  # fmt: skip
"""Tasks in which steps and Python are interrupted, not compiling."""


class Calls:
    """Counts calls of Python functions, and writes a marker into a pipe at one of them."""

    def __init__(self, marked: int, pipe: int) -> None:
        self.marked, self.pipe, self.count = marked, pipe, 0

    def __call__(self, _frame: Any, event: str, _what: Any) -> None:
        self.count += event == "call"
        if event == "call" and self.count == self.marked:
            os.write(self.pipe, b" ")


def marked(task: Callable[[float], Any], c: float, call: int) -> tuple[str, int]:
    """How a task ended in a child that got Ctrl-C at a call of a Python function, 0 for none, and how many it made."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        said, calls = "returned", Calls(call, write)
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.setprofile(calls)
            task(c)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        except da.DalembertError:
            said = "DalembertError"
        except BaseException as error:
            said = type(error).__name__
        sys.setprofile(None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.write(write, json.dumps([said, calls.count]).encode())
        os._exit(0)
    os.close(write)
    first = os.read(read, 1)
    if first == b" ":
        os.kill(child, signal.SIGINT)
    with os.fdopen(read) as pipe:
        text = first.decode() + pipe.read()
    _, status = os.waitpid(child, 0)
    said, count = json.loads(text) if text.strip() else (f"the process died ({status})", 0)
    return said, count


def kinds(each: int, only: tuple[str, ...], seed: int = 0) -> dict[str, list[str]]:
    """How tasks ended that got Ctrl-C at random ones of their calls of Python functions: no clock decides when."""
    rng, found = np.random.default_rng(seed), {}
    for name in only:
        if name in WARM:
            TASKS[name](1.0)
        whole = marked(TASKS[name], 1.0, 0)[1]
        drawn = rng.uniform(0.5, 1.5, each)
        chosen = rng.integers(1, whole, each, endpoint=True)
        found[name] = [
            marked(TASKS[name], 1.0 if name in WARM else c, int(call))[0] for c, call in zip(drawn, chosen, strict=True)
        ]
    return found


def forked(task: Callable[[float], Any], c: float, wait: float | None) -> tuple[str, float, float]:
    """How a task ended in a child that got Ctrl-C after `wait` seconds, how long after, and how busy it was then."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        said = "returned"
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.write(write, b" ")  # before, Python drops what comes: it is still busy with the fork
            task(c)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        except da.DalembertError:
            said = "DalembertError"
        except BaseException as error:
            said = type(error).__name__
        os.write(write, json.dumps([said, time.time(), time.thread_time()]).encode())
        os._exit(0)
    os.close(write)
    os.read(read, 1)
    sent, used = time.time(), 0.0
    if wait is not None:
        time.sleep(wait)
        sent, used = time.time(), _thread_time(child)
        os.kill(child, signal.SIGINT)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    said, ended, total = json.loads(text) if text else (f"the process died ({status})", time.time(), 0.0)
    return said, ended - sent, total - used


def _thread_time(process: int) -> float:
    """The seconds that the main thread of a process has computed."""
    fields = Path(f"/proc/{process}/task/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def imported(wait: float | None) -> tuple[str, float, float]:
    """The same for the import of the library in a new interpreter."""
    process = subprocess.Popen([sys.executable, "-c", IMPORT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    sent = time.time()
    if wait is not None:
        time.sleep(wait)
        sent = time.time()
        process.send_signal(signal.SIGINT)
    done, complaint = process.communicate()
    last = complaint.strip().splitlines()[-1:] or [""]
    said = "KeyboardInterrupt" if "KeyboardInterrupt" in complaint and process.returncode in (-2, 1, 130) else last[0]
    if process.returncode == -signal.SIGINT and not complaint:
        said = "KeyboardInterrupt"  # before Python could say so
    if process.returncode == 0:  # it was done before the signal, or has dropped it
        return "returned" if wait is None else "dropped", float(done) - sent, np.nan
    return said or f"exit code {process.returncode}", time.time() - sent, np.nan


def study(each: int, only: tuple[str, ...] = (), seed: int = 0) -> dict[str, dict[str, Any]]:
    """For each task: how it ended, how often, and the longest and the median time after the signal."""
    rng, found = np.random.default_rng(seed), {}
    names = [name for name in ("import", *TASKS) if not only or name in only]
    pendulum_run = da.simulate(pendulum(0.5), da.Rattle(), **SWING, steps=10)  # loads the compiled drivers
    assert pendulum_run.status == "done"
    for name in names:

        def once(wait: float | None, name: str = name) -> tuple[str, float, float]:
            c = 1.0 if name in WARM else float(rng.uniform(0.5, 1.5))
            return imported(wait) if name == "import" else forked(TASKS[name], c, wait)

        if name in WARM:
            TASKS[name](1.0)
        whole = once(None)[1]
        ends = [once(float(rng.uniform(0, whole))) for _ in range(each)]
        ends = [end for end in ends if end[1] > 0]  # the others were done before the signal
        times, busy = np.array([seconds for _, seconds, _ in ends]), np.array([computed for _, _, computed in ends])
        counts = dict(collections.Counter(said for said, _, _ in ends))
        found[name] = {
            "whole": whole,
            "ends": counts,
            "median": float(np.median(times)),
            "longest": float(times.max(initial=0.0)),
        }
        foreign = found[name]["foreign"] = {said: count for said, count in counts.items() if said not in ALLOWED}
        found[name]["busy"] = float(busy.max(initial=0.0))
        took = "median {median:.3f} s, longest {longest:.3f} s ({busy:.2f} s of CPU)".format(**found[name])
        marked = name + " (warm)" * (name in WARM)
        print(f"{marked:36} {whole:6.2f} s whole; after Ctrl-C {took}; {counts}; foreign: {foreign or 'none'}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=40)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    study(given.each, tuple(given.only), given.seed)


if __name__ == "__main__":
    main()
