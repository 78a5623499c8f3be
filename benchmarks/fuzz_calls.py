"""Calls of the library and the command that make no sense: each ends with a DalembertError of one line, or is accepted."""

from __future__ import annotations

import contextlib
import inspect
import io
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_families import IndexTwo, Nonlinear
from fuzz_models import Quartic
from fuzz_record import doing

import dalembert as da
from dalembert.cli import main as command

NASTY: list[Any] = [
    None, True, -1, 0, 1, 1.5, -0.0, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, 10**400, 1j, "", "a", "1.5",
    b"x", [], [1], [[1, 2], [3, 4]], [[]], {}, {"m": 1}, {"M": "a"}, (), object(), np.zeros(0), np.zeros((2, 2, 2)),
    np.array("a"), lambda q: q, np.float32(0.1), np.int8(3), [None], ["a", 1], [1, [2]], range(3), slice(None), Exception("x"),
]  # fmt: skip
FAMILIES = (Quartic(2), Quartic(3, 1), Quartic(4, 1, 1), Nonlinear(2, 1), IndexTwo(2, 1))
START = ("q0", "v0", "p0", "y0", "z0", "lam0", "psi0", "t0", "params")
MANY = (*START, "start", "h", "steps", "t1", "newton_tolerance", "progress")
CALLS: dict[Callable, tuple[str, ...]] = {
    da.simulate: (*MANY, "save_every", "on_failure", "save_to", "stage_multipliers", "controls", "rtol", "atol"),
    da.simulate_many: (*MANY, "save_every", "reduce", "workers", "simd", "executor", "stage_multipliers", "save_to"),
    da.poincare: (*MANY[:-2], "direction", "workers", "simd", "section"),
    da.consistent: START,
}
"""What is called, and the arguments that may be nonsense."""

DERIVATIVES: dict[Callable, tuple[str, ...]] = {
    da.gradient: ("loss", "wrt", "at", "running", *MANY),
    da.gradient_many: ("loss", "wrt", "at", "running", "workers", "on_failure", *MANY),
    da.hessian_product: ("loss", "wrt", "at", "running", "direction", *MANY),
    da.sensitivities: ("wrt", *MANY),
    da.fit: ("t", "data", "params", "h", "observe", "sigma", "bounds", "fixed", *START[:-1]),
}
"""The same of derivatives, whose kernels are compiled for each choice of `wrt`."""

METHODS = (
    da.LobattoIIIAB, da.Rattle, da.RadauIIA, da.Gauss, da.LobattoIIIC, da.GaussLobattoSPARK, da.LobattoSPARK, da.SRK,
    da.SymplecticEuler, da.ConstrainedEuler, da.Variational, da.LobattoGalerkin, da.UnderlyingODE, da.RungeKutta, da.CVA,
    da.VCI, da.MCVA, da.MoreauJean, da.NonsmoothRattle, da.adjoint, da.compose, da.GaussLobattoEMPRK, da.PartitionedRungeKutta,
    da.ReversibleSteps, da.SymplecticSteps, da.PiecewiseLinear, da.OptimalControl,
)  # fmt: skip
MODELS = (da.Hamiltonian, da.Lagrangian, da.ODAE, da.IndexTwoDAE, da.Mechanism, da.Spheres, da.load, da.resume)
PARTS = (
    "body", "rod", "revolute", "prismatic", "spherical", "distance", "spring", "wheel", "torsion", "motor", "start", "contact",
)  # fmt: skip
OPTIONS = ("--h", "--steps", "--t1", "--save-every", "--set", "--q0", "--p0", "--v0", "--method", "--stages", "--lam0", "--y0")
WORDS = (
    "", "-1", "0", "1e-3", "nan", "inf", "1e999", "a", "1,2", "1,0,0", "pi/0", "10**10**10", "m=1", "g=-1", "=", "Gauss(2)",
    "Rattle", "CVA(", "compose(Rattle, 4)", "__import__('os')", "1/50", "é", "-", "1e400", "9" * 500, "[1]", "--h",
    "LobattoIIIAB(stages=3)",
)  # fmt: skip


def outcome(call: Callable, *positional: Any, **named: Any) -> str:
    """'refused', 'accepted' or what is wrong."""
    said = f"{getattr(call, '__name__', call)} with {str((positional, named))[:300]}"
    doing(said)
    try:
        call(*positional, **named)
    except da.DalembertError as error:
        return "refused" if str(error).strip() and "\n" not in str(error) else f"a message {error!r}"
    except (Exception, SystemExit, GeneratorExit) as error:
        return f"{type(error).__name__} ({str(error)[:80]}) of {said}"
    return "accepted"


def nasty(rng: np.random.Generator) -> Any:
    return NASTY[rng.integers(len(NASTY))]


def a_run(rng: np.random.Generator) -> str:
    """A call with one to three arguments that make no sense."""
    family = FAMILIES[rng.integers(len(FAMILIES))]
    call = list(CALLS)[rng.integers(len(CALLS))]
    batch = family.draw(rng, 1)
    given: dict[str, Any] = {name: values[0] for name, values in family.initial(batch).items()}
    given |= {"params": {name: values[0] for name, values in batch.numbers.items()}, "t0": batch.t0}
    if call is not da.consistent:
        given |= {"h": 0.01, "steps": 3, "method": family.methods[0] if rng.integers(4) else nasty(rng)}
    if call is da.poincare:
        given["section"] = lambda t: t - 0.005
    given |= {CALLS[call][rng.integers(len(CALLS[call]))]: nasty(rng) for _ in range(rng.integers(1, 4))}
    if isinstance(given.get("save_to"), (str, bytes)):
        del given["save_to"]  # a name like any other
    return outcome(call, family.system if rng.integers(8) else nasty(rng), **given)


def a_derivative(rng: np.random.Generator) -> str:
    """A derivative or a fit with one or two arguments that make no sense; only one model, which is compiled once."""
    family, call = FAMILIES[1], list(DERIVATIVES)[rng.integers(len(DERIVATIVES))]
    batch = family.draw(rng, 2 if call is da.gradient_many else 1)
    member: Any = slice(None) if call is da.gradient_many else 0
    start = {name: values[member] for name, values in family.initial(batch).items()}
    numbers = {name: values[member] for name, values in batch.numbers.items()}
    given: dict[str, Any] = {"system": family.system, "method": da.LobattoIIIAB(2), "t0": batch.t0, "h": 0.01, **start}
    if call is da.fit:
        params = {"d": numbers.pop("d")}
        given |= {"t": [batch.t0 + 0.01, batch.t0 + 0.02], "data": np.zeros((2, 3)), "params": params, "fixed": numbers}
    else:
        given |= {"steps": 3, "params": numbers, "wrt": "q0", "progress": False}
    if "loss" in DERIVATIVES[call]:
        given["loss"] = lambda q: q @ q
    if call is da.hessian_product:
        given["direction"] = np.ones(3)
    names = ("system", "method", *DERIVATIVES[call])
    return outcome(call, **given | {names[rng.integers(len(names))]: nasty(rng) for _ in range(rng.integers(1, 3))})


@cache
def _parameters(call: Callable) -> tuple[list[str], list[str]]:
    """The names of the arguments that must be given, and of those that may be."""
    known = [p for p in inspect.signature(call).parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    needed = [p.name for p in known if p.default is p.empty]
    return needed, [p.name for p in known if p.default is not p.empty]


def a_construction(rng: np.random.Generator) -> str:
    """A method, a model, a tableau, a problem or a part of a mechanism, made of nonsense."""
    kind = rng.integers(5)
    if kind == 0:
        call: Callable = METHODS[rng.integers(len(METHODS))]
    elif kind == 1:
        call = MODELS[rng.integers(len(MODELS))]
    elif kind == 2:
        call = getattr(da.tableaux, _tableaux()[rng.integers(len(_tableaux()))])
    elif kind == 3:
        call = getattr(da.problems, _problems()[rng.integers(len(_problems()))])
    else:
        call = getattr(da.Mechanism(coordinates=("planar", "quaternion")[rng.integers(2)]), PARTS[rng.integers(len(PARTS))])
    needed, optional = _parameters(call) if kind != 4 else _parameters.__wrapped__(call)
    chosen = [name for name in optional if rng.integers(4) == 0]
    return outcome(call, **{name: nasty(rng) for name in [*needed, *chosen]})


@cache
def _tableaux() -> list[str]:
    return [name for name in dir(da.tableaux) if inspect.isfunction(getattr(da.tableaux, name)) and not name.startswith("_")]


@cache
def _problems() -> list[str]:
    """Those of which a random argument makes no large model."""
    return [
        "pendulum",
        "double_pendulum",
        "simple_pendulum",
        "bouncing_ball",
        "spherical_pendulum",
        "four_bar",
        "heavy_top",
        "skate",
    ]


def a_command(rng: np.random.Generator) -> str:
    """A command line with options that make no sense."""
    words = ["run", ("pendulum", "bouncing_ball", "nothing", "a.py:b")[min(3, rng.integers(8) // 2)], "--steps", "3"]
    for _ in range(rng.integers(1, 4)):
        words += [OPTIONS[rng.integers(len(OPTIONS))], WORDS[rng.integers(len(WORDS))]]
    if rng.integers(4) == 0:
        words[0] = ("list", "resume", "info", "run", "nonsense")[rng.integers(5)]
    said = io.StringIO()
    doing(f"the command {words}")
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code: Any = command(words)
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        return f"{type(error).__name__} ({str(error)[:80]}) of the command {words}"
    if code not in (0, 1, 2) or "Traceback" in said.getvalue():
        return f"exit code {code} of the command {words}"
    return "accepted" if code == 0 else "refused"


def a_store(rng: np.random.Generator) -> str:
    """A name that cannot be a store."""
    with tempfile.TemporaryDirectory() as folder:
        name = (folder, f"{folder}/no/such.zarr", f"{folder}/{'x' * 300}", "", "\0", f"{folder}/é\n.zarr")[rng.integers(6)]
        if rng.integers(2):
            return outcome(da.load, name)
        return outcome(
            da.simulate, da.problems.pendulum(), da.Rattle(), h=0.01, steps=2, save_to=Path(name) if rng.integers(2) else name
        )
