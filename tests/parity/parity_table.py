"""What `da.simulate` can do, through every door: one row a feature, one column a door.

The doors, and what must come out of them:
    simulate       the reference
    simulate_many  as a member of an ensemble, without vectors: the same bits
    vectors        the same with simd=True: equal to round-off
    poincare       where t = t0 + (k + 1/2) h is crossed: the state that k steps and half a step lead to
    store          save_to=, in chunks that start afresh: equal to round-off
    resume         a store that was stopped half-way and resumed: the bits of `store`
    sweep          simulate_many(save_to=), loaded: the bits of `threads`
    threads, processes, dask    executors: equal to each other bit for bit, and to `simulate` to round-off
    command        dalembert run FILE.py:name --save: the bits of `simulate`
Whatever a door does not do is an entry of `Feature.differs`: a part of the sentence with which it refuses, or NO_ARGUMENT
where it has no such argument. docs/parity.md shows this table (`python tests/parity/parity_table.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dalembert import PiecewiseLinear

NO_ARGUMENT = "has no such argument"
NOTHING = "nothing to compare"
SIMULATE, MANY, VECTORS, POINCARE, STORE, RESUME = "simulate", "simulate_many", "vectors", "poincare", "store", "resume"
SWEEP, THREADS, PROCESSES, DASK, COMMAND = "sweep", "threads", "processes", "dask", "command"
DOORS = (SIMULATE, MANY, VECTORS, POINCARE, STORE, RESUME, SWEEP, THREADS, PROCESSES, DASK, COMMAND)
ENSEMBLES = (MANY, VECTORS, SWEEP, THREADS, PROCESSES, DASK)
STORES = (STORE, RESUME)


def each(doors: tuple[str, ...], what: str) -> dict[str, str]:
    """The same difference at several doors."""
    return dict.fromkeys(doors, what)


@dataclass(frozen=True)
class Feature:
    """A model of `parity_models.py`, a method as the command names it, and arguments of `simulate`."""

    name: str
    model: str
    method: str
    given: dict[str, Any]
    differs: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


SWING = {"q0": [0.6, -0.8], "p0": [0.08, 0.06], "h": 0.05, "steps": 6}
WALLS = {"q0": [0.0, 0.05], "v0": [1.0, -1.0], "h": 0.02, "steps": 12}
STEPPING = {VECTORS: "leave simd= out", POINCARE: "makes whole steps only"}

FEATURES = (
    Feature("holonomic constraints", "pendulum", "LobattoIIIAB(stages=3)", SWING),
    Feature("other parameters", "pendulum", "LobattoIIIAB(stages=3)", SWING | {"params": {"g": 1.62}}),
    Feature("a start time", "driven", "LobattoIIIAB(stages=2)",
            {"q0": [1.2, 0.0], "v0": [0.1, 0.4], "t0": 2.0, "h": 0.05, "steps": 6}),
    Feature("time backwards", "pendulum", "LobattoIIIAB(stages=3)", SWING | {"h": -0.05},
            {POINCARE: "take h > 0"}),
    Feature("a final time", "pendulum", "LobattoIIIAB(stages=3)",
            {"q0": [0.6, -0.8], "p0": [0.08, 0.06], "h": 0.05, "t1": 0.3}),
    Feature("some states stored", "pendulum", "LobattoIIIAB(stages=3)", SWING | {"save_every": 4},
            {POINCARE: NO_ARGUMENT}),
    Feature("a Newton tolerance", "pendulum", "LobattoIIIAB(stages=3)", SWING | {"newton_tolerance": 1e-6},
            {POINCARE: NO_ARGUMENT}),
    Feature("stage multipliers", "pendulum", "LobattoIIIAB(stages=3)", SWING | {"stage_multipliers": True},
            {POINCARE: NO_ARGUMENT}),
    Feature("controls", "pendulum", "LobattoIIIAB(stages=3)", SWING | {"controls": {"g": [9.0, 5.0, 1.0, 2.0, 3.0, 4.0]}},
            each((*ENSEMBLES, POINCARE, COMMAND), NO_ARGUMENT) | each(STORES, "a stored run does not keep controls")),
    Feature("controls that change linearly", "pendulum", "LobattoIIIAB(stages=3)",
            SWING | {"controls": {"g": PiecewiseLinear([9.0, 5.0, 1.0, 2.0, 3.0, 4.0, 5.0])}},
            each((*ENSEMBLES, POINCARE, COMMAND), NO_ARGUMENT) | each(STORES, "a stored run does not keep controls")),
    Feature("a composition", "pendulum", "compose(Rattle, 4)", SWING),
    Feature("a method with a state of its own", "pendulum", "Shake()", SWING,
            {POINCARE: "belongs to its step size"}),
    Feature("steps that vary", "pendulum", "ReversibleSteps(LobattoIIIAB(stages=3), least=1.0)", SWING),
    Feature("steps by their error", "pendulum", "ControlledSteps(RadauIIA(stages=3, projected=True), rtol=1e-4)", SWING,
            {VECTORS: "leave simd= out"}),
    Feature("nonholonomic constraints", "sleigh", "GaussLobattoSPARK(stages=2)",
            {"q0": [0.0, 0.0, 0.3], "v0": [0.9553364891256060, 0.2955202066613396, 2.0], "h": 0.05, "steps": 6}),
    Feature("multipliers that enter nonlinearly", "curved", "GaussLobattoSPARK(stages=2)",
            {"y0": [0.6, 0.8], "z0": [0.8, -0.6], "h": 0.05, "steps": 6}),
    Feature("index 2", "growth", "RadauIIA(stages=3)", {"y0": [1.0, 1.0], "z0": [1.0], "h": 0.05, "steps": 6}),
    Feature("a mechanism with redundant constraints", "door", "LobattoIIIAB(stages=2)",
            {"h": 0.005, "steps": 6, "params": {"load": 0.3}}),
    Feature("impacts, sliding and rest", "ball", "CVA()", WALLS, {VECTORS: "leave simd= out"}),
    Feature("time stepping", "ball", "MoreauJean()", WALLS, STEPPING),
    Feature("time stepping that keeps positions", "ladder", "NonsmoothRattle()",
            {"q0": [0.3, 0.41, 1.0], "v0": [0.0, 0.0, 0.0], "h": 0.01, "steps": 12, "params": {"mu": 0.2}}, STEPPING),
    Feature("many spheres", "disks", "MoreauJean()",
            {"q0": [0.0, 0.1, 0.0, 0.05, 0.32, 0.0], "v0": [0.0] * 6, "h": 0.005, "steps": 12}, STEPPING),
    Feature("a tolerance", "pendulum", "LobattoIIIAB(stages=3)",
            {"q0": [0.6, -0.8], "p0": [0.08, 0.06], "t1": 0.3, "rtol": 1e-6, "atol": 1e-9},
            {POINCARE: NO_ARGUMENT}),
    Feature("a run that fails", "pendulum", "LobattoIIIAB(stages=2)", SWING | {"h": 40.0},
            {POINCARE: NOTHING}),
)  # fmt: skip

ELSEWHERE = {
    "system": "every row has one",
    "method": "every row has one",
    "start": "q0 to psi0 in one object",
    "lam0": "a guess from which multipliers are sought",
    "psi0": "a guess from which multipliers are sought",
    "save_to": "a door of its own",
    "progress": "changes no number",
    "on_failure": "says how a failure is told, as in the row of a run that fails",
}
"""Arguments of `da.simulate` that no row gives, and why."""

HEADINGS = {
    MANY: "`simulate_many`", VECTORS: "`simd=True`", POINCARE: "`poincare`", STORE: "`save_to=`", RESUME: "`resume`",
    SWEEP: "sweep on disk", THREADS: "threads", PROCESSES: "processes", DASK: "Dask", COMMAND: "`dalembert run`",
}  # fmt: skip
PAGE = Path(__file__).parents[2] / "docs" / "parity.md"

HEAD = """# The same run by every way

Whatever `da.simulate` can do, ensembles, stores, executors and the command can do as well, with the same result, or they
refuse it by name. The table below is the one that `tests/parity` runs through: every entry is a test of a small model. "Same"
means:

- `simulate_many` with `simd=False` and the command give the bits of `da.simulate`; vectors (`simd=True`) agree to round-off.
- A store, and the parts of a sweep, start afresh at every chunk and choose pivots as a new process does, so that they agree
  with `da.simulate` to round-off, or to the Newton tolerance where one is given. A resumed store has the bits of one that was
  never stopped; sweeps on disk, processes and Dask have the bits of threads.
- With `da.ControlledSteps` round-off counts more, because the error from which a step size follows is a small difference, and
  now and then decides whether a step is kept: from the second chunk of a store on (two million numbers) rows may be states at
  other times than those of `da.simulate`. They are as exact; compare both at equal times.
- A crossing that `da.poincare` finds in the middle of a step is the state that steps to its beginning and half a step lead to;
  where step sizes vary, half a step of the method that was given.

"""


def page() -> str:
    """The text of docs/parity.md."""
    doors = DOORS[1:]
    notes: dict[str, int] = {}
    rows = ["| | " + " | ".join(HEADINGS[door] for door in doors) + " |", "|---" * (len(doors) + 1) + "|"]
    for feature in FEATURES:
        entries = []
        for door in doors:
            why = feature.differs.get(door)
            word = "same" if why is None else "no"
            entries.append(word if why is None else f"{word} ({notes.setdefault(why, len(notes) + 1)})")
        rows.append(f"| {feature.name} (`{feature.method}`) | " + " | ".join(entries) + " |")
    said = {NO_ARGUMENT: "There is no such argument.", NOTHING: "There is nothing to compare."}
    listed = [
        f"{number}. {said.get(why) or f'Refused, in a sentence with the words “{why}”.'}" for why, number in notes.items()
    ]
    return HEAD + "\n".join(rows) + "\n\n" + "\n".join(listed) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
