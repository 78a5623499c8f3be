"""Steps of collision integrators beside those of a smooth one: the cart-pendulum above its floor, an impact every 50 steps."""

from __future__ import annotations

import numpy as np
from common import Section, load_drivers, table

import dalembert as da

H, STEPS, SMOOTH_STEPS, TURNS = 0.01, 5_000, 2_000, 100
START = {"q0": [0.3, 0.0], "v0": [0.0, 1.0]}
METHODS = (da.CVA(), da.VCI(), da.CVA("SVA"), da.MCVA(), da.MCVAA(), da.MCVAC())


def cart_pendulum() -> da.Lagrangian:
    """(35) of Pekarek and Murphey (2014) with its floor."""
    return da.Lagrangian(
        lambda q, v: 0.6 * v[0] ** 2 + 0.4 * np.sin(q[1]) * v[0] * v[1] + 0.4 * v[1] ** 2 - 12 * q[0] + 4 * np.cos(q[1]),
        dim=2,
        unilateral=lambda q: q[0],
    )


def run() -> Section:
    load_drivers()
    system = cart_pendulum()
    # without its floor the cart falls for ever, and faster: a short run is what compares
    smooth = {name: (system.smooth, da.Variational(name), SMOOTH_STEPS) for name in ("SVC", "SVA")}
    cases = [*smooth.values(), *((system, method, STEPS) for method in METHODS)]
    least, impacts = [np.inf] * len(cases), [0] * len(cases)
    for _ in range(TURNS):  # short runs in turn, so that other work on the machine disturbs all alike
        for k, (model, method, steps) in enumerate(cases):
            last = da.simulate(model, method, h=H, steps=steps, save_every=1000, progress=False, **START)
            least[k] = min(least[k], 1e6 * last.stats["wall_seconds"] / steps)
            impacts[k] = 0 if last.impacts is None else len(last.impacts)
    base = dict(zip(smooth, least, strict=False))
    rows = []
    for (_, method, steps), us, count in zip(cases, least, impacts, strict=True):
        event = ["", ""] if not count else [f"{steps / count:.0f}", f"{(us - base[method.base]) * steps / count:.1f}"]
        rows.append([str(method).removeprefix("da."), f"{us:.2f}", f"{us / base['SVC']:.2f}", *event])
    header = ("method", "us/step", "relative to SVC", "steps an impact", "us an impact")
    body = f"""
The vertical cart-pendulum above its floor, h = {H}, {STEPS:,} steps; the fastest of {TURNS} runs, kernels compiled. What an
impact costs is the time beyond the steps of the base method. The variational integrators run without the floor, and for
{SMOOTH_STEPS:,} steps only: the cart falls faster and faster, and SVA needs more iterations then, so that it may look slower
than with impacts.

{table(header, rows)}
"""
    return Section("Impacts", body)


if __name__ == "__main__":
    print(run().body)
