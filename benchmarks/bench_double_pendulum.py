"""The double pendulum, 3 stages, h = 0.12, against hand-written C, in one run that alternates between them."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from common import HERE, Section, note, stepping_time, table

import dalembert as da

STEPS, H, ROUNDS, CHECKED_STEPS = 2_000_000, 0.12, 9, 200
PLAIN, SPECIALISED = "double_pendulum_plain.c", "double_pendulum_specialised.c"
SAME_GUESS = "-DCORRECTED"
SOURCES = ((PLAIN, ()), (PLAIN, (SAME_GUESS,)), (SPECIALISED, ()))
FLAGS = (("-O3", "-march=native"), ("-O3", "-march=native", "-ffast-math"))


def run() -> Section:
    with tempfile.TemporaryDirectory() as folder:
        programs = build(Path(folder))
        return measure(programs)


def compilers() -> list[str]:
    """$CC, or each of gcc and clang that is installed, or cc."""
    if os.environ.get("CC"):
        return [os.environ["CC"]]
    return [name for name in ("gcc", "clang") if shutil.which(name)] or [name for name in ("cc",) if shutil.which(name)]


def build(folder: Path) -> dict[str, Path]:
    """The executables by what they are called in the table; a source that a compiler refuses is left out, visibly."""
    programs = {}
    for compiler in compilers():
        for source, defined in SOURCES:
            for flags in FLAGS:
                name, target = f"{source}, {' '.join([compiler, *flags, *defined])}", folder / f"program{len(programs)}"
                command = [compiler, *flags, *defined, "-std=gnu11", str(HERE / source), "-o", str(target), "-lm"]
                if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                    programs[name] = target
                else:
                    note(f"left out, because it does not compile: {name}")
    return programs


def call(program: Path, steps: int) -> dict:
    return json.loads(subprocess.run([program, str(steps), str(H)], capture_output=True, text=True, check=True).stdout)


def simulate(steps: int) -> tuple[da.Trajectory, float, float]:
    """The run, and the CPU seconds of its step loop and of the whole call."""
    began = time.thread_time()
    with stepping_time() as stepping:
        result = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), h=H, steps=steps)
    return result, sum(stepping), time.thread_time() - began


def measure(programs: dict[str, Path]) -> Section:
    short, _, _ = simulate(CHECKED_STEPS)
    apart = {name: np.abs(np.subtract(call(path, CHECKED_STEPS)["q"], short.q[-1])).max() for name, path in programs.items()}
    times: dict[str, list[float]] = {name: [] for name in ("dalembert", *programs)}
    answers: dict[str, dict] = {}
    shares, totals = [], []
    for k in range(ROUNDS):
        note(f"round {k + 1} of {ROUNDS}, {STEPS:,} steps each")
        result, stepping, total = simulate(STEPS)
        times["dalembert"].append(1e6 * stepping / STEPS)
        shares.append(stepping / total)
        totals.append(total)
        for name, path in programs.items():
            answers[name] = call(path, STEPS)
            times[name].append(answers[name]["us_per_step"])
    answers["dalembert"] = {
        "iterations_per_step": result.stats["newton_iterations"] / STEPS,
        "energy_error": np.abs(result.energy - result.energy[0]).max(),
        "constraint": np.abs(result.residuals["g"]).max(),
        "hidden": np.abs(result.residuals["g_dot"]).max(),
    }

    medians = {name: statistics.median(values) for name, values in times.items()}
    rows = []
    for name, answer in sorted(answers.items(), key=lambda item: medians[item[0]]):
        rows.append(
            [
                f"**{name}**" if name == "dalembert" else name,
                f"{medians[name]:.3f}",
                f"{min(times[name]):.3f}",
                f"{medians['dalembert'] / medians[name]:.2f}",
                f"{answer['iterations_per_step']:.2f}",
                f"{answer['energy_error']:.2e}",
                f"{answer['constraint']:.0e}",
                f"{answer['hidden']:.0e}",
                f"{apart[name]:.0e}" if name in apart else "",
            ]
        )
    header = ("program", "us/step", "least", "dalembert takes", "iterations/step", "energy error", "g", "g_dot", "apart")
    verdict = _verdict(times)
    body = f"""
{STEPS:,} steps of the double pendulum, 3-stage Lobatto IIIA-IIIB, h = {H}, in a warm process, every state stored.
Microseconds a step are CPU time, medians of {ROUNDS} rounds that alternate between the programs, with the least beside them.
{verdict}

{table(header, rows)}

`{PLAIN}` is the same algorithm written by hand: the same Cartesian coordinates, unknowns, stopping rule, compensated
sums and stored states, with parameters at run time. Its first guess extrapolates the polynomials through the last step's
stages; with `{SAME_GUESS}` it is that of `da.simulate` (`compiler/_guess.py`). `{SPECIALISED}` shows what analysis of
this one problem buys: relative coordinates, unit masses and lengths, and an elimination that holds for nothing else.
"dalembert takes" is the ratio of the medians. "apart" is the largest difference of q to that of `da.simulate` after
{CHECKED_STEPS} steps.

In a warm call of {STEPS:,} steps, {100 * statistics.median(shares):.1f} % of the time is spent in compiled code; the call
takes {statistics.median(totals):.2f} s.
"""
    return Section("Double pendulum against hand-written C", body)


def _verdict(times: dict[str, list[float]]) -> str:
    """How long `da.simulate` takes beside the fastest builds of the plain program."""
    least = {name: min(values) for name, values in times.items()}
    found = []
    for guess, same in (("its own first guess", False), ("that of `da.simulate`", True)):
        builds = [value for name, value in least.items() if name.startswith(PLAIN) and (SAME_GUESS in name) == same]
        found += [f"{least['dalembert'] / min(builds):.2f} times as long with {guess}"] if builds else []
    if not found:
        return "**No C compiler was found, so nothing is compared with C here.**"
    return f"By the least times `da.simulate` takes, beside the fastest build of the plain C program, {', and '.join(found)}."


if __name__ == "__main__":
    print(run().body)
