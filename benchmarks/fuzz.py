"""Random models and random arguments: each case gives a right answer, is refused with a DalembertError, or is a finding.

python benchmarks/fuzz.py                                10,000 cases, a few minutes
python benchmarks/fuzz.py --cases 1000000 --log FILE     keeps the counts of every hundred cases, to go on later
python benchmarks/fuzz.py --first 1234 --cases 1         one case again

Models are valid by construction: a quartic potential, a mass matrix whose eigenvalues lie over four decades, quadrics through a
random point as holonomic constraints, velocities across linear fields as nonholonomic ones, linear damping. Coefficients are
parameters, so that models of one shape share their machine code. The reference solves the same equations, reduced to
accelerations by hand, by SciPy's DOP853. A run that ends with status 'done' must hold its constraints to round-off where the
method claims them, and its error must fall as h does. The other half of the cases are calls with arguments that make no sense.
"""

from __future__ import annotations

import argparse
import collections
import json
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

import dalembert as da

SHAPES = [(1, 0, 0), (2, 0, 0), (2, 1, 0), (3, 1, 0), (3, 2, 0), (3, 0, 1), (4, 1, 1), (5, 2, 1)]
"""Numbers of coordinates, holonomic and nonholonomic constraints."""

METHODS = {
    da.Rattle(): "holonomic",
    da.LobattoIIIAB(3): "holonomic",
    da.RadauIIA(2, projected=True): "holonomic",
    da.GaussLobattoSPARK(2): "all",
    da.LobattoSPARK(3): "all",
    da.Gauss(2): "none",
    da.Variational("midpoint"): "none",
}
"""Which constraints they serve."""


@dataclass(frozen=True)
class Model:
    """The coefficients of one model, and a start on its constraints."""

    numbers: dict[str, np.ndarray]
    q: np.ndarray
    v: np.ndarray

    @staticmethod
    def random(rng: np.random.Generator, n: int, holonomic: int, nonholonomic: int) -> Model:
        axes, _ = np.linalg.qr(rng.normal(size=(n, n)))
        M = axes @ np.diag(10 ** rng.uniform(-2, 2, n)) @ axes.T
        stiffness = rng.normal(size=(n, n))
        numbers = {
            "M": (M + M.T) / 2,
            "K": stiffness + stiffness.T,
            "c": rng.normal(size=n),
            "d": np.array(rng.uniform(0, 0.5)),
        }
        q = rng.normal(size=n)
        if holonomic:
            B = rng.normal(size=(holonomic, n, n)) * rng.choice([0.0, 0.3, 1.0])
            numbers |= {"a": rng.normal(size=(holonomic, n)), "B": B + np.swapaxes(B, 1, 2)}
            numbers["level"] = numbers["a"] @ q + np.einsum("kij,i,j->k", numbers["B"], q, q) / 2
        if nonholonomic:
            numbers |= {"b": rng.normal(size=(nonholonomic, n)), "C": 0.5 * rng.normal(size=(nonholonomic, n, n))}
        model = Model(numbers, q, q)
        rows, v = model.rows(q), rng.normal(size=n)
        v = v - np.linalg.pinv(rows) @ (rows @ v)
        return Model(numbers, q, v)

    def rows(self, q: np.ndarray) -> np.ndarray:
        """The matrix that velocities are orthogonal to."""
        found = [np.zeros((0, len(q)))]
        if "a" in self.numbers:
            found.append(self.numbers["a"] + self.numbers["B"] @ q)
        if "b" in self.numbers:
            found.append(self.numbers["b"] + self.numbers["C"] @ q)
        return np.concatenate(found)

    def acceleration(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """From M a + rows^T lam = f and (rows v)' = 0."""
        o = self.numbers
        f = -o["K"] @ q - q**3 - o["c"] - o["d"] * v
        rows = self.rows(q)
        turning = [np.einsum("kij,i,j->k", o[name], v, v) for name in ("B", "C") if name in o]
        m = len(rows)
        matrix = np.block([[o["M"], rows.T], [rows, np.zeros((m, m))]])
        return np.linalg.solve(matrix, np.concatenate([f, *(-x for x in turning)]))[: len(q)]

    def reference(self, t: float) -> np.ndarray:
        """The positions at a time."""
        n = len(self.q)

        def rate(_: float, y: np.ndarray) -> np.ndarray:
            return np.concatenate([y[n:], self.acceleration(y[:n], y[n:])])

        found = solve_ivp(rate, (0, t), [*self.q, *self.v], method="DOP853", rtol=1e-12, atol=1e-13)
        return found.y[:n, -1] if found.success else np.full(n, np.nan)


@cache
def system(n: int, holonomic: int, nonholonomic: int) -> da.Lagrangian:
    """The model of a shape, with its coefficients as parameters."""
    drawn = Model.random(np.random.default_rng(0), n, holonomic, nonholonomic).numbers
    constraints: dict[str, object] = {}
    if holonomic:
        constraints["holonomic"] = lambda q, a, B, level: [
            a[k] @ q + q @ B[k] @ q / 2 - level[k] for k in range(holonomic)
        ]  # fmt: skip
    if nonholonomic:
        constraints["nonholonomic"] = lambda q, v, b, C: [(b[k] + C[k] @ q) @ v for k in range(nonholonomic)]
    return da.Lagrangian(
        lambda q, v, M, K, c: v @ M @ v / 2 - q @ K @ q / 2 - (q**2) @ (q**2) / 4 - c @ q,
        dim=n, params=drawn, force=lambda v, d: -d * v, **constraints,
    )  # fmt: skip


def numerical(rng: np.random.Generator) -> str:
    """A run of a random model by a random method: 'right', 'refused' or what is wrong."""
    shape = SHAPES[rng.integers(len(SHAPES))]
    served = {"holonomic": not shape[2], "all": True, "none": not any(shape[1:])}
    methods = [method for method, serves in METHODS.items() if served[serves]]
    method, model = methods[rng.integers(len(methods))], Model.random(rng, *shape)
    h, steps = 10 ** rng.uniform(-3.5, -0.7), int(rng.integers(1, 13))
    truth, error = model.reference(h * steps), np.inf
    if not np.isfinite(truth).all():
        return "refused"
    size = np.abs(model.q).max() + np.abs(truth).max()
    for finer in (1, 4, 16, 64):
        run = through_a_door(rng, shape, method, model, h / finer, steps * finer)
        if run is None:
            return "refused"
        kept = [np.abs(run.residuals[name]).max(initial=0.0) for name in run.residuals]
        if max(kept, default=0.0) > 1e-10 * (1 + size**2) * (1 + np.abs(run.v).max()):
            return f"residuals {kept} of {method}"
        before, error = error, np.abs(run.q[-1] - truth).max() / size
        if error < 1e-9 or (finer > 1 and error < before / 3):
            return "right"
    return f"errors {before:.3g} and {error:.3g} of {method} with h = {h:.3g} / 16 and / 64"


def through_a_door(rng, shape, method, model, h, steps):
    """One run, by `simulate`, as the member of an ensemble, from a store, or resumed; None if it is refused."""
    given = {"params": model.numbers, "h": h}
    try:
        start = da.consistent(system(*shape), q0=model.q, v0=model.v, params=model.numbers)
        door = rng.integers(20)
        if door == 0:
            runs = da.simulate_many(system(*shape), method, start=[start, start], h=h, steps=steps)
            return runs[1]
        if door == 1:
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder) / "run.zarr"
                da.simulate(system(*shape), method, start=start, steps=max(1, steps // 2), save_to=place, **given)
                run = da.resume(place, system(*shape), method, steps=steps)
                return next(iter(run.chunks()))
        return da.simulate(system(*shape), method, start=start, steps=steps, **given)
    except da.DalembertError:
        return None


NASTY = [
    None, True, -1, 0, 1, 1.5, -0.0, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, 10**400, 1j, "", "a", "1.5",
    b"x", [], [1], [[1, 2], [3, 4]], [[]], {}, {"m": 1}, {"M": "a"}, (), object(), np.zeros(0), np.zeros((2, 2, 2)),
    np.array("a"), lambda q: q, np.float32(0.1), np.int8(3), [None], ["a", 1], [1, [2]], range(3), slice(None), Exception("x"),
]  # fmt: skip
ARGUMENTS = (
    "q0", "v0", "p0", "start", "h", "steps", "t0", "t1", "params", "save_every", "newton_tolerance", "on_failure", "progress",
    "save_to", "lam0", "psi0", "y0", "z0", "stage_multipliers",
)  # fmt: skip


def nonsense(rng: np.random.Generator) -> str:
    """A call with one to three arguments that make no sense: 'refused', 'accepted' or what is wrong."""
    shape = SHAPES[rng.integers(len(SHAPES))]
    model = Model.random(rng, *shape)
    call = (da.simulate, da.simulate_many, da.consistent)[rng.integers(3)]
    arguments = {"q0": model.q, "v0": model.v, "params": model.numbers}
    if call is not da.consistent:
        arguments |= {"h": 0.01, "steps": 3}
    known = (
        ARGUMENTS if call is da.simulate else ARGUMENTS[:11] if call is da.simulate_many else ("q0", "v0", "p0", "t0", "params")
    )
    changed = {known[rng.integers(len(known))]: NASTY[rng.integers(len(NASTY))] for _ in range(rng.integers(1, 4))}
    if isinstance(changed.get("save_to"), (str, bytes)):
        del changed["save_to"]  # a name like any other
    method = da.GaussLobattoSPARK(2) if rng.integers(4) else NASTY[rng.integers(len(NASTY))]
    first = system(*shape) if rng.integers(8) else NASTY[rng.integers(len(NASTY))]
    try:
        call(first, **({} if call is da.consistent else {"method": method}), **arguments | changed)
    except da.DalembertError as error:
        return "refused" if str(error).strip() and "\n" not in str(error) else f"a message {error!r}"
    except Exception as error:
        return f"{type(error).__name__} ({str(error)[:80]}) of {call.__name__} with {str(changed)[:200]}"
    return "accepted"


def case(number: int) -> str:
    """One case, which its number determines."""
    rng = np.random.default_rng(number)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return numerical(rng) if number % 2 else nonsense(rng)


def study(first: int, cases: int, log: Path | None = None) -> tuple[collections.Counter[str], dict[int, str]]:
    """The outcomes of many cases, and the findings by their numbers."""
    counts: collections.Counter[str] = collections.Counter()
    findings: dict[int, str] = {}
    if log is not None and log.exists():
        for line in log.read_text().splitlines():
            row = json.loads(line)
            first, cases = row["next"], cases - sum(row["counts"].values())
            counts.update(row["counts"])
            findings |= {int(number): text for number, text in row["findings"].items()}
    while cases > 0:
        block = range(first, first + min(100, cases))
        outcomes = {number: case(number) for number in block}
        found = {number: text for number, text in outcomes.items() if text not in ("right", "refused", "accepted")}
        row = collections.Counter("finding" if number in found else outcome for number, outcome in outcomes.items())
        counts, findings, first, cases = counts + row, findings | found, block.stop, cases - len(block)
        if log is not None:
            with log.open("a") as file:
                file.write(json.dumps({"next": first, "counts": row, "findings": found}) + "\n")
    return counts, findings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case, which is its seed")
    parser.add_argument("--log", type=Path, help="a file of counts, with which a run that was stopped goes on")
    given = parser.parse_args()
    counts, findings = study(given.first, given.cases, given.log)
    for number, text in findings.items():
        print(f"case {number}: {text}")
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
