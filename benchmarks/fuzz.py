"""Random models and random arguments: each case gives a right answer, is refused with a DalembertError, or is a finding.

python benchmarks/fuzz.py                                20,000 cases
python benchmarks/fuzz.py --cases 1000000 --log FILE     keeps the counts of every block, and goes on after a stop or a crash
python benchmarks/fuzz.py --first 1234 --cases 1         one block again
python benchmarks/fuzz.py --report FILE...               what logs have, as the table of docs/trust.md

A block is a random model (`fuzz_models.py`, `fuzz_families.py`), a method, h and a number of steps. Thousands of random sets of
coefficients and starts go through `da.simulate_many`; some also through the other doors, which must give the same bits:
`da.simulate`, a store that is resumed half-way, a sweep on disk. A run that ends with status 'done' must hold its constraints
to round-off; its error against the reduced equations must be below 1e-9, or fall by three when h is divided by four, twice in
succession or to less than 1e-6. The rest of a block are calls of the library and of the command that make no sense
(`fuzz_calls.py`). Ten blocks in succession share their model, which is compiled once.

With a log, a child computes, and notes before every case what it is about to do (`fuzz_record.py`). If it ends before its work
is done, with a signal, a traceback or nothing at all, that is a finding with these notes, and another child goes on.
"""

from __future__ import annotations

import argparse
import collections
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import fuzz_calls
import fuzz_record
import numpy as np
from fuzz_families import Family, random_family
from fuzz_models import Batch

import dalembert as da

ACCURATE, SMALL, FALLS, KEPT = 1e-9, 1e-6, 3.0, 1e-10
FINER = (1, 4, 16, 64, 256)
SHARED = 10
"""How many blocks have the same model."""
HANGS = 300
"""Seconds of computing after which a block counts as one that does not end."""
MOST_DEATHS = 50

Outcomes = collections.Counter[tuple[str, str]]
"""How many cases of a kind had an outcome."""


def serves(method: da.OneStepMethod, system: da.systems.System) -> bool:
    """Whether a method takes a system."""
    try:
        method.check(system)
    except da.UnsupportedSystem:
        return False
    return True


@lru_cache(maxsize=2)
def model_of(epoch: int) -> tuple[Family, da.OneStepMethod]:
    """The model and the method that some blocks share."""
    rng = np.random.default_rng([epoch, 1])
    family = random_family(rng)
    served = [method for method in family.methods if serves(method, family.system)]
    return family, served[rng.integers(len(served))]


def many(family: Family, method: da.OneStepMethod, batch: Batch, h: float, steps: int, **options: Any) -> dict[str, np.ndarray]:
    """Last states of all members, the largest residuals, and which were refused: with the others, alone, or in their steps."""
    given: dict[str, Any] = {**family.initial(batch), "params": batch.numbers, "t0": batch.t0, "h": h, "steps": steps}
    try:
        runs = da.simulate_many(family.system, method, workers=1, progress=False, **given, **options)
    except da.DalembertError:
        if len(batch) == 1:
            return {"last": np.full_like(batch.start, np.nan), "kept": np.zeros(1), "refused": np.ones(1, dtype=bool)}
        halves = [batch.take(slice(None, len(batch) // 2)), batch.take(slice(len(batch) // 2, None))]
        found = [many(family, method, half, h, steps, **options) for half in halves]
        return {name: np.concatenate([one[name] for one in found]) for name in found[0]}
    refused = np.array([status == "failed" for status in runs.status])
    states = np.asarray(runs.states)
    kept = family.residuals(batch, runs.t, states)
    return {"last": states[:, -1], "kept": np.where(refused, 0.0, kept), "refused": refused}


def numerical(rng: np.random.Generator, family: Family, method: da.OneStepMethod, members: int) -> tuple[Outcomes, list[str]]:
    """Random coefficients and starts of one model."""
    batch, counts, findings = family.draw(rng, members), Outcomes(), []
    h, steps = float(family.unit * 10 ** rng.uniform(-3, -0.5)), int(rng.integers(1, 13))
    truth = family.truth(batch, h * steps)
    known = np.isfinite(truth).all(axis=1)
    counts["model", "not judged"] += int(np.sum(~known))
    left, before, fell = np.flatnonzero(known), np.full(members, np.nan), np.zeros(members, dtype=bool)
    size = np.abs(batch.start) + np.abs(truth)
    blocks = np.split(np.arange(size.shape[1]), len(family.names))
    simd = (None, False)[rng.integers(2)]
    for finer in FINER:
        fuzz_record.doing(f"{len(left)} members of {family} by {method}, h = {h / finer!r}, {steps * finer} steps, simd={simd}")
        found = many(family, method, batch.take(left), h / finer, steps * finer, simd=simd)
        wrong = ~found["refused"] & ~(found["kept"] < KEPT)
        error = np.max(
            [np.abs(found["last"] - truth[left])[:, b].max(axis=1) / (1e-9 + size[left][:, b].max(axis=1)) for b in blocks],
            axis=0,
        )
        falls = error < before[left] / FALLS
        right = ~found["refused"] & ~wrong & ((error < ACCURATE) | falls & (fell[left] | (error < SMALL)))
        counts["model", "refused"] += int(found["refused"].sum())
        counts["model", "right"] += int(right.sum())
        findings += [
            f"member {left[k]}: residual {found['kept'][k]:.3g} of {method}, h / {finer}" for k in np.flatnonzero(wrong)
        ]
        going = ~(found["refused"] | right | wrong)
        before[left], fell[left], left = error, falls, left[going]
        if not len(left):
            break
    findings += [f"member {k}: errors do not fall below {before[k]:.3g} of {method}, h = {h:.3g}, {steps} steps" for k in left]
    some, what = doors(rng, family, method, batch, h, steps)
    return counts + some, findings + what


def doors(
    rng: np.random.Generator, family: Family, method: da.OneStepMethod, batch: Batch, h: float, steps: int
) -> tuple[Outcomes, list[str]]:
    """Three members through doors that must give what `simulate_many(simd=False)` gives, bit for bit."""
    counts, findings = Outcomes(), []
    three = batch.take(rng.choice(len(batch), 3, replace=False))
    shared: dict[str, Any] = {"t0": batch.t0, "h": h, "progress": False}
    given: dict[str, Any] = {**family.initial(three), "params": three.numbers, "simd": False, "workers": 1, **shared}
    one = {name: values[0] for name, values in family.initial(three).items()}
    one |= {"params": {name: values[0] for name, values in three.numbers.items()}, **shared}
    fuzz_record.doing(f"three members of {family} by {method} through all doors, h = {h!r}, {steps} steps")
    with tempfile.TemporaryDirectory() as folder:
        try:
            runs = da.simulate_many(family.system, method, steps=steps, **given)
        except da.DalembertError:
            counts["door", "refused"] += 4
            return counts, findings
        try:  # what one door takes, no other may refuse
            single = da.simulate(family.system, method, steps=steps, on_failure="return", **one)
            sweep = da.simulate_many(family.system, method, steps=steps, save_to=f"{folder}/sweep.zarr", **given)
            read = da.load(f"{folder}/sweep.zarr")
            whole = da.simulate(family.system, method, steps=steps, save_to=f"{folder}/whole.zarr", on_failure="return", **one)
            first = max(1, steps // 2) if whole.status == "done" else steps
            da.simulate(family.system, method, steps=first, save_to=f"{folder}/half.zarr", on_failure="return", **one)
            resumed = da.resume(f"{folder}/half.zarr", family.system, method, steps=steps, progress=False, on_failure="return")
        except da.DalembertError as error:
            return counts, [f"a door refuses what simulate_many takes, of {method}, h = {h:.3g}, {steps} steps: {error}"]
        a, last = np.asarray(runs.states), np.asarray(whole.states)[-1]
        same = {
            "simulate": np.array_equal(a[0][: len(single.states)], single.states, equal_nan=True),
            "sweep": np.array_equal(np.asarray(sweep.states), np.asarray(read.states), equal_nan=True)
            and close(a, sweep.states),
            "store": whole.status != "done" or close(a[0][-1], last),
            "resume": np.array_equal(np.asarray(whole.states), np.asarray(resumed.states), equal_nan=True),
        }
    for name, equal in same.items():
        counts["door", "right"] += int(equal)
        findings += [] if equal else [f"{name} differs from simulate_many of {method}, h = {h:.3g}, {steps} steps"]
    return counts, findings


def close(first: Any, second: Any) -> bool:
    """Equal but for pivot orders, which a store chooses as a new process does."""
    first, second = np.asarray(first), np.asarray(second)
    return bool(np.allclose(first, second, rtol=1e-8, atol=1e-8 * np.nanmax(np.abs(first), initial=0.0), equal_nan=True))


def nonsense(rng: np.random.Generator, members: int) -> tuple[Outcomes, list[str]]:
    """Calls that make no sense, a few for every ten random models."""
    counts, findings = Outcomes(), []
    shares = {
        fuzz_calls.a_run: 40,
        fuzz_calls.a_derivative: 400,
        fuzz_calls.a_construction: 10,
        fuzz_calls.a_command: 400,
        fuzz_calls.a_store: 2000,
    }
    for call, share in shares.items():
        for _ in range(max(1, members // share)):
            said = call(rng)
            name = call.__name__.replace("_", " ")
            if said in ("refused", "accepted"):
                counts[name, said] += 1
            else:
                findings.append(said)
    return counts, findings


def block(number: int, members: int) -> tuple[Outcomes, list[str]]:
    """The cases of one block, which its number determines."""
    rng, (family, method) = np.random.default_rng([number, 2]), model_of(number // SHARED)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        counts, findings = numerical(rng, family, method, max(min(20, members), int(members * family.share)))
        more, others = nonsense(rng, members)
    counts, findings = counts + more, findings + others
    counts["all", "finding"] += len(findings)
    return counts, findings


def study(first: int, cases: int, members: int = 4000, log: Path | None = None) -> tuple[Outcomes, dict[int, list[str]]]:
    """The outcomes of many cases, and the findings by the numbers of their blocks."""
    counts, findings = Outcomes(), dict[int, list[str]]()
    if log is not None and log.exists():
        counts, findings, first, _ = read(log)
    while counts.total() < cases:
        if log is not None:
            _note(log, {"began": first})
            fuzz_record.begin(log, first, HANGS)
        began = time.process_time()
        some, found = block(first, members)
        counts, findings = counts + some, findings | ({first: found} if found else {})
        if log is not None:
            used = {"seconds": time.process_time() - began, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
            rows = [[*kind, count] for kind, count in some.items()]
            _note(log, {"block": first, "commit": commit(), "counts": rows, "findings": found, **used})
        first += 1
    fuzz_record.end()
    return counts, findings


def supervised(given: argparse.Namespace) -> None:
    """Let children run the study until one of them comes to its end; what ended the others is noted."""
    command = [sys.executable, __file__, "--child", *sys.argv[1:]]
    for _ in range(MOST_DEATHS):
        code = subprocess.run(command, check=False).returncode
        if code == 0:
            return
        _note(given.log, {"died": fuzz_record.last_words(given.log, code)})
    raise SystemExit(f"{MOST_DEATHS} processes died: see {given.log}")


@cache
def commit() -> str:
    """Of the code that runs."""
    told = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True)
    return told.stdout.strip() or da.__version__


def _note(log: Path, row: dict[str, Any]) -> None:
    with log.open("a") as file:
        file.write(json.dumps(row) + "\n")


def read(log: Path) -> tuple[Outcomes, dict[int, list[str]], int, float]:
    """What a log has: outcomes, findings, the next block, seconds. A block that began and did not end, crashed or hung."""
    counts, findings, seconds, begun, following = Outcomes(), dict[int, list[str]](), 0.0, None, 0
    for line in log.read_text().splitlines():
        row = json.loads(line)
        if "died" in row:
            if begun is not None:
                findings[begun] = [row["died"]]
                counts["all", "finding"] += 1
            begun = None
        elif "began" in row:
            if begun is not None:
                findings[begun] = ["the process ended in this block"]
                counts["all", "finding"] += 1
            begun, following = row["began"], row["began"] + 1
        else:
            begun = None
            counts.update({(kind, outcome): count for kind, outcome, count in row["counts"]})
            findings |= {row["block"]: row["findings"]} if row["findings"] else {}
            seconds += row["seconds"]
    return counts, findings, following, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first block, which is its seed")
    parser.add_argument("--members", type=int, default=4000, help="random models in a block")
    parser.add_argument("--log", type=Path, help="a file of counts, with which a study that was stopped goes on")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--report", type=Path, nargs="+", help="show what logs have, and run nothing")
    given = parser.parse_args()
    if given.report:
        counts, findings, seconds = Outcomes(), dict[int, list[str]](), 0.0
        for log in given.report:
            some, found, _, used = read(log)
            counts, findings, seconds = counts + some, findings | found, seconds + used
        print(
            f"{counts.total()} cases in {seconds / 3600:.2f} hours of one core, {1e3 * seconds / counts.total():.2f} ms a case"
        )
    elif given.log is not None and not given.child:
        supervised(given)
        counts, findings, _, _ = read(given.log)
    else:
        counts, findings = study(given.first, given.cases, given.members, given.log)
    for number, texts in findings.items():
        for text in texts:
            print(f"block {number}: {text}")
    for (kind, outcome), count in sorted(counts.items()):
        print(f"{count:9d} {kind}: {outcome}")


if __name__ == "__main__":
    main()
