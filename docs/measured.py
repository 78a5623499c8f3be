"""The tables of docs/choosing.md: what every method was measured to do, on the models of the tests' own table of methods.

`python docs/measured.py` writes them between their markers, in some minutes; tests/docs measures them again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import dalembert as da

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "methods"))

import method_models as models
from measurements import kept, long_run, middle, orders, structure, verdict
from method_table import ROWS, Row, ladder

PAIR = 'da.tableaux.discontinuous_collocation(da.tableaux.radau_iia(2), [0, "1/2", 1])'

MORE_ROWS = (
    Row(da.RungeKutta(da.tableaux.radau_iia(2), projected=True), ladder(160, 640), ("double_pendulum",), ladder(80, 320)),
    # (where H_q is constant, as for the double pendulum, these two are the methods of Gauss and Lobatto nodes)
    Row(da.SPARK(eval(PAIR)), ladder(160, 640), ("magnetic_surface",), nonholonomic_steps=ladder(160, 640)),
    Row(da.EMPRK(eval(PAIR)), ladder(160, 640), ("magnetic_surface",), nonholonomic_steps=ladder(160, 640)),
    Row(
        da.DiscreteLagrangeDAlembert("midpoint", "midpoint"),
        (),
        (),
        nonholonomic_steps=ladder(80, 320),
        nonholonomic_models=("oscillator",),
    ),
)
SHOWN_OTHERWISE = tuple({type(row.method) for row in MORE_ROWS})
"""What the tests' table has with coefficients that make it another method of the page, or without a claimed order."""
ALL_ROWS = (
    *(row for row in ROWS if not (isinstance(row.method, SHOWN_OTHERWISE) or row.method.serves_unilateral)),
    *MORE_ROWS,
)
COLLISIONS = {
    "da.CVA()": da.CVA(),
    "da.CVA(da.Gauss(stages=2))": da.CVA(da.Gauss(stages=2)),
    "da.VCI()": da.VCI(),
    "da.MCVA()": da.MCVA(),
    "da.MCVAA()": da.MCVAA(),
    "da.MCVAC()": da.MCVAC(),
}


# -- names ---------------------------------------------------------------------------------------------------------------


def call(method: da.OneStepMethod) -> str:
    """A method as one would write it: what differs from its defaults."""
    if type(method).__name__ not in da.__all__:
        # compositions and adjoints write themselves
        return str(method).replace(str(da.SymplecticEuler()), "da.SymplecticEuler()")
    given = []
    for field in fields(method):
        value = getattr(method, field.name)
        named = field.name in ("stages", "coefficients")
        if field.init and (named or field.default is MISSING or value != field.default):
            positional = field.default is MISSING or field.name == "coefficients"
            given.append(_shown(value) if positional else f"{field.name}={_shown(value)}")
    if isinstance(method, da.Rattle):
        given = []
    return f"da.{type(method).__name__}({', '.join(given)})"


def _shown(value: object) -> str:
    if isinstance(value, da.tableaux.SparkTableau):
        return PAIR
    if isinstance(value, da.Tableau):
        return f"da.tableaux.{_families()[value.name]}({value.stages})"
    return f'"{value}"' if isinstance(value, str) else repr(value)


@cache
def _families() -> dict[str, str]:
    names = ("gauss", "radau_ia", "radau_iia", "lobatto_iiia", "lobatto_iiib", "lobatto_iiic")
    return {getattr(da.tableaux, name)(2).name: name for name in names}


# -- rows of the tables --------------------------------------------------------------------------------------------------


def holonomic(row: Row) -> list[str]:
    """A row of the table with holonomic constraints."""
    name = "double_pendulum" if "double_pendulum" in row.models else row.models[0]
    model = models.CONSTRAINED[name]()
    found = structure(row.method, model.system, middle(model, da.LobattoIIIAB(4), 40))
    return [
        *orders(row, model, row.method.order, row.steps_on(name), ("q", "p", "lam")),
        found["symplectic"],
        found["symmetric"],
        *kept(row.method, model, ("g", "g_dot")),
        *long_run(row.method, model),
        name.replace("_", " "),
    ]


def nonholonomic(row: Row) -> list[str]:
    """A row of the table with nonholonomic constraints; their flow is not symplectic, so that no method can be."""
    name = row.nonholonomic_models[0]
    model = models.NONHOLONOMIC[name]()
    start = middle(model, da.SRK("gauss", 3), 20)
    return [
        *orders(row, model, row.method.order, row.steps_on(name), ("q", "p", "psi")),
        verdict(lambda h: da.verify.reversibility_defect(model.system, row.method, h=h, **start), row.method.symmetric),
        *kept(row.method, model, ("k",)),
        *long_run(row.method, models.NONHOLONOMIC["oscillator"]()),  # (the sleigh runs away, which is no place to see a drift)
        name,
    ]


def unconstrained(row: Row) -> list[str]:
    """A row of the table without constraints."""
    model = models.UNCONSTRAINED[row.unconstrained_model]()
    found = structure(row.method, model.system, model.start)
    return [
        *orders(row, model, row.method.order_unconstrained, row.unconstrained_steps, ("q", "p")),
        found["symplectic"],
        found["symmetric"],
        *long_run(row.method, model),
        row.unconstrained_model.replace("_", " "),
    ]


@cache
def _cart_pendulum() -> tuple[Any, dict[str, list[float]], np.ndarray]:
    """The cart-pendulum above its floor, its start, and its state at t = 4 by CVA of order 8."""
    system = da.Lagrangian(
        lambda q, v: 0.6 * v[0] ** 2 + 0.4 * np.sin(q[1]) * v[0] * v[1] + 0.4 * v[1] ** 2 - 12 * q[0] + 4 * np.cos(q[1]),
        dim=2,
        unilateral=lambda q: q[0],
    )
    start = {"q0": [3.2, 0.0], "v0": [0.0, 2.924]}
    exact = da.simulate(system, da.CVA(da.Gauss(stages=4)), h=0.005, t1=4.0, **start)
    assert len(exact.impacts) == 3
    return system, start, exact.states[-1]


def impacts(method: da.OneStepMethod) -> list[str]:
    """A row of the table with impacts."""
    system, start, exact = _cart_pendulum()
    counts = (400, 800, 1600, 3200)
    ends = [da.simulate(system, method, h=4.0 / n, steps=n, **start).states[-1] for n in counts]
    errors = [np.abs(end - exact).max() for end in ends]
    order = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    defects = [da.verify.symplecticity_defect(system, method, h=h, q0=[2 * h, 0.4], v0=[-4.0, 1.0]) for h in (0.1, 0.05)]
    run = da.simulate(system, method, h=0.032, steps=20_000, save_every=10, q0=[4.5, 0.0], v0=[0.0, 2.69])
    energy = np.abs(run.energy - run.energy[0]).max()
    symplectic = "yes" if max(defects) < 1e-12 else f"to order {np.log2(defects[0] / defects[1]):.1f}"
    return [f"{order:.2f}", symplectic, f"{energy:.1e}", str(len(run.impacts))]


TABLES: dict[str, tuple[str, Callable[[Row], list[str]], tuple[Row, ...]]] = {
    "holonomic": (
        "order of q | p | lam | symplectic | symmetric | keeps g | keeps g_dot | energy error | drift | iterations | "
        "operations | measured on",
        holonomic,
        tuple(row for row in ALL_ROWS if row.models),
    ),
    "nonholonomic": (
        "order of q | p | psi | symmetric | keeps k | energy error | drift | iterations | operations | measured on",
        nonholonomic,
        tuple(row for row in ALL_ROWS if row.nonholonomic_steps),
    ),
    "unconstrained": (
        "order of q | p | symplectic | symmetric | energy error | drift | iterations | operations | measured on",
        unconstrained,
        tuple(row for row in ALL_ROWS if row.unconstrained_steps),
    ),
}
IMPACT_HEADER = "order | an impact step is symplectic | energy error | impacts"


# -- what is served ------------------------------------------------------------------------------------------------------


def _samples() -> dict[str, Any]:
    p = da.problems
    forced = da.Lagrangian(lambda q, v: (v @ v - q @ q) / 2, dim=1, force=lambda v: -v)
    forced_pendulum = da.Lagrangian(
        lambda q, v: v @ v / 2 - q[1], dim=2, holonomic=lambda q: [np.hypot(q[0], q[1]) - 1], force=lambda v: -v
    )
    return {
        "no constraints, M(q)": p.double_pendulum_in_angles().system,
        "no constraints, damping": forced,
        "holonomic, H = T(p) + U(q)": p.double_pendulum().system,
        "holonomic, any H": p.charged_particle_on_sphere().system,
        "holonomic, damping": forced_pendulum,
        "holonomic, depends on t": p.pendulum_of_varying_length().system,
        "nonholonomic, constant M": p.contact_oscillator().system,
        "nonholonomic, M(q)": p.chaplygin_sleigh().system,
        "nonlinear in v": p.appell_hamel().system,
        "both kinds": p.skate().system,
        "nonlinear in lam": p.nonlinear_multiplier().system,
        "index 2": p.index_two_growth().system,
        "impacts": _cart_pendulum()[0],
        "impacts, damping": da.Lagrangian(lambda q, v: v @ v / 2, dim=1, force=lambda v: -v, unilateral=lambda q: q[0]),
        "impacts, holonomic": da.Lagrangian(
            lambda q, v: v @ v / 2 - q[1], dim=2, holonomic=lambda q: [np.hypot(q[0], q[1]) - 1], unilateral=lambda q: q[0]
        ),
    }


def public_methods() -> dict[str, type[da.OneStepMethod]]:
    """The classes of methods, as `dalembert list methods` shows them."""
    from dalembert.cli._methods import methods

    return methods()


def served() -> Iterator[list[str]]:
    """One row a class of methods: which systems it accepts, in one of its variants at least."""
    samples = _samples()
    yield ["method", *samples]
    for name in sorted(public_methods(), key=str.lower):
        variants = [method for method in _variants() if type(method).__name__ == name]
        if not variants:
            raise SystemExit(f"docs: da.{name} is in no row of the tables: give it one")
        cells = (any(_accepts(method, system) for method in variants) for system in samples.values())
        yield [f"`da.{name}`", *("yes" if cell else "-" for cell in cells)]


def _variants() -> list[da.OneStepMethod]:
    plain = (da.RungeKutta(da.tableaux.radau_iia(2)), da.SRK("gauss", 2), da.MoreauJean(), da.NonsmoothRattle())
    bases = (da.GaussLobattoSPARK(2), da.Gauss(2), da.compose(da.SymplecticEuler(), 2))
    varying = [da.ReversibleSteps(base, density=lambda t: 1 + t**2) for base in bases]
    varying += [da.ControlledSteps(base) for base in (da.RadauIIA(2), da.RadauIIA(2, projected=True), da.GaussLobattoSPARK(2))]
    symplectic = (da.SymplecticSteps(da.LobattoIIIAB(2), least=1.0), da.SymplecticSteps(da.Gauss(2), least=1.0))
    return [*(row.method for row in ALL_ROWS), *COLLISIONS.values(), *plain, *varying, *symplectic]


def _accepts(method: da.OneStepMethod, system: Any) -> bool:
    try:
        method.check(system)
    except da.UnsupportedSystem:
        return False
    return True


# -- the page ------------------------------------------------------------------------------------------------------------


def tables() -> dict[str, str]:
    """All tables as Markdown, by the names of their markers."""
    written = {"served": _markdown(list(served()))}
    for name, (header, measure, rows) in TABLES.items():
        lines = [["method", *header.split(" | ")]]
        for row in rows:
            lines.append([f"`{call(row.method)}`", *measure(row)])
            print(name, *lines[-1], file=sys.stderr, flush=True)
        written[name] = _markdown(lines)
    lines = [["method", *IMPACT_HEADER.split(" | ")]]
    lines += [[f"`{name}`", *impacts(method)] for name, method in COLLISIONS.items()]
    written["impacts"] = _markdown(lines)
    return written


LATEX = {"g_dot": r"\dot g", "lam": r"\lambda", "psi": r"\psi"}


def _heading(text: str) -> str:
    """The heading of a column, its symbols typeset."""
    symbols = r"\b(H = T\(p\) \+ U\(q\)|M\(q\)|g_dot|lam|psi|[HMgkpqtv])(?=[, ]|$)"
    return re.sub(symbols, lambda match: f"${LATEX.get(match[0], match[0])}$", text)


def _markdown(lines: list[list[str]]) -> str:
    lines[0] = [_heading(cell) for cell in lines[0]]
    head, *rows = (f"| {' | '.join(cells)} |" for cells in lines)
    return "\n".join([head, "|" + "---|" * len(lines[0]), *rows])


def write(page: Path) -> Path:
    """Put the tables between their markers."""
    written = tables()
    text = page.read_text(encoding="utf-8")
    for name, table in written.items():
        pattern = rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)"
        text, found = re.subn(pattern, lambda match, table=table: f"{match[1]}\n{table}\n\n{match[2]}", text, flags=re.DOTALL)
        if found != 1:
            raise SystemExit(f"docs: {page.name} has no place for the table {name!r}")
    page.write_text(text, encoding="utf-8")
    return page


if __name__ == "__main__":
    print(write(Path(__file__).resolve().parent / "choosing.md"))
