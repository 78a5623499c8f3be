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
from common import HERE, Section, note, table

import dalembert as da

STEPS, H, ROUNDS, CHECKED_STEPS = 2_000_000, 0.12, 9, 200
PLAIN, SPECIALISED = "double_pendulum_plain.c", "double_pendulum_specialised.c"
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
        for source in (PLAIN, SPECIALISED):
            for flags in FLAGS:
                name, target = f"{source}, {compiler} {' '.join(flags)}", folder / f"program{len(programs)}"
                command = [compiler, *flags, "-std=gnu11", str(HERE / source), "-o", str(target), "-lm"]
                if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                    programs[name] = target
                else:
                    note(f"left out, because it does not compile: {name}")
    return programs


def call(program: Path, steps: int) -> dict:
    return json.loads(subprocess.run([program, str(steps), str(H)], capture_output=True, text=True, check=True).stdout)


def simulate(steps: int) -> tuple[da.Trajectory, float]:
    began = time.perf_counter()
    result = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), h=H, steps=steps)
    return result, time.perf_counter() - began


def measure(programs: dict[str, Path]) -> Section:
    short, _ = simulate(CHECKED_STEPS)
    apart = {name: np.abs(np.subtract(call(path, CHECKED_STEPS)["q"], short.q[-1])).max() for name, path in programs.items()}
    times: dict[str, list[float]] = {name: [] for name in ("dalembert", *programs)}
    answers: dict[str, dict] = {}
    shares, totals = [], []
    for k in range(ROUNDS):
        note(f"round {k + 1} of {ROUNDS}, {STEPS:,} steps each")
        result, total = simulate(STEPS)
        times["dalembert"].append(1e6 * result.stats["wall_seconds"] / STEPS)
        shares.append(result.stats["wall_seconds"] / total)
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
    plain = {name: median for name, median in medians.items() if name.startswith(PLAIN)}
    if plain:
        best = min(plain, key=plain.get)
        verdict = (
            f"`da.simulate` takes {medians['dalembert'] / plain[best]:.2f} times as long as the fastest build of the plain C "
            f"program ({best.removeprefix(PLAIN + ', ')})."
        )
    else:
        verdict = "**No C compiler was found, so nothing is compared with C here.**"
    body = f"""
{STEPS:,} steps of the double pendulum, 3-stage Lobatto IIIA-IIIB, h = {H}, in a warm process, every state stored.
Microseconds a step are medians of {ROUNDS} rounds that alternate between the programs, with the least beside them.
{verdict}

{table(header, rows)}

`{PLAIN}` is the same algorithm written by hand: the same Cartesian coordinates, unknowns, predictor, stopping
rule, compensated sums and stored states, with parameters at run time. `{SPECIALISED}` shows what analysis of
this one problem buys: relative coordinates, unit masses and lengths, and an elimination that holds for nothing else.
"dalembert takes" is the ratio of the medians. "apart" is the largest difference of q to that of `da.simulate` after
{CHECKED_STEPS} steps.

In a warm call of {STEPS:,} steps, {100 * statistics.median(shares):.1f} % of the time is spent in compiled code; the call
takes {statistics.median(totals):.2f} s.
"""
    return Section("Double pendulum against hand-written C", body)


if __name__ == "__main__":
    print(run().body)
