"""The maps of a collision integrator on a system as machine code: kernels over one block of memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import casadi as ca
import numpy as np

from dalembert.compiler._elimination import (
    PivotOrder,
    SingularMatrix,
    eliminate,
    name_factors,
    substitute,
)
from dalembert.compiler._ir import Kernel, compile_kernels
from dalembert.compiler._jit import Code
from dalembert.compiler._orders import chosen_from
from dalembert.compiler._tape import entries_of
from dalembert.contact._collision import CollisionIntegrator, Maps
from dalembert.contact._event_memory import KERNEL_PLACES, KERNELS, MARKS, SCALARS, lay_out
from dalembert.contact._flow import Equations, Event, Flow, Point, Reset, base_flow, onto_the_wall
from dalembert.symbolic import as_column
from dalembert.symbolic._kept import Recent
from dalembert.symbolic._lock import one_at_a_time
from dalembert.systems import MechanicalSystem

NEWTON = ("guess", "residual", "matrix", "factor", "increment")
"""The kernels of Newton's iteration, of which the last two eliminate in a fixed order, if there is one."""
STRAIGHT_LINE_LIMIT = 1_000
"""Products up to which matrices are eliminated in straight-line code."""
SELDOM = 2_500
"""Operations from which on kernels are compiled quickly, if they are called in steps with events only: all but `look`.

Shorter ones take little of the time to compile, and are those of models whose runs have many impacts.
"""
SCALES = {"velocity": 0, "momentum": 1, "one": 2}


@dataclass(frozen=True)
class EventProgram:
    """Everything that the driver of impacts needs: the record and tables with which every run begins, and the kernels."""

    at: np.void
    tables: np.ndarray
    memory_size: int
    code: Code

    @property
    def counted(self) -> tuple[str, ...]:
        """What `run.stats` counts: impacts, and those of da.VCI that had no variational reset."""
        return ("impacts", *(["impacts_without_variational_reset"] if self.at["coupled"] else []))


_programs: dict[tuple[str, CollisionIntegrator], EventProgram] = Recent()


@one_at_a_time
def event_program(system: MechanicalSystem, method: CollisionIntegrator) -> EventProgram:
    """The kernels of a collision integrator; compiled once for equal models."""
    key = (system.fingerprint, method)
    if key not in _programs:
        _programs[key] = _compile(_Parts.of(system, method), method)
    return _programs[key]


def equations_hash(system: MechanicalSystem, method: CollisionIntegrator) -> str:
    """A hash of what happens at events: the same for versions that compute the same.

    However they arrange their matrices, guess, and bound rounding errors.
    """
    parts = _Parts.of(system, method)
    digest = hashlib.sha256(f"{method.collision_tolerance!r} ".encode())
    for kernel in parts.kernels:
        expressions = [expression for expression, slot in kernel.outputs if np.any(slot != parts.at["forces"])]
        for symbol, _ in kernel.known:
            expressions = [ca.substitute(expression, symbol, 0) for expression in expressions]
        name, _, part = kernel.name.rpartition("_")
        if part in ("factor", "increment"):
            continue
        if part == "matrix":
            equations = parts.problems[name]
            expressions = [ca.vec(ca.densify(ca.jacobian(equations.model, equations.x)).T)]
        digest.update(ca.Function(kernel.name, [symbol for symbol, _ in kernel.inputs], expressions).serialize().encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class _Parts:
    """The systems of equations of a collision integrator, and all that is computed."""

    at: np.void
    size: int
    """Of the memory that is laid out."""
    problems: dict[str, Equations]
    kernels: list[Kernel]
    coupled: bool

    @classmethod
    def of(cls, system: MechanicalSystem, method: CollisionIntegrator) -> Self:
        at = Point.of(system)
        maps = method.maps(system, at)
        s = ca.SX.sym("s")
        full = base_flow(system, method.full, at).equations.guess
        problems = {
            "flow": maps.partial.equations,
            "wall": onto_the_wall(system, maps.partial, at, s),
        }
        if maps.reset is not None:
            problems["reset"] = maps.reset.equations
        if maps.after_impact is not None:
            problems |= {
                "flow_after": maps.after_impact.equations,
                "wall_after": onto_the_wall(system, maps.after_impact, at, s),
            }
        n_x = max(equations.x.shape[0] for equations in problems.values())
        n_blocks = max(len(equations.scales) for equations in problems.values())
        sizes = system.dim, system.n_guards, system.n_unilateral, system.parameters.size
        places, size = lay_out(*sizes, n_x, full.shape[0], n_blocks)
        slot = {name: int(places[name]) for name in (*SCALARS, *KERNEL_PLACES)}
        inputs = [(at.t, slot["t"]), (at.dt, slot["dt"]), (at.h, slot["h"]), (at.theta, slot["theta"]), (at.q, slot["state"]),
                  (at.p, slot["state"] + system.dim), (at.hit, slot["hit"]), (at.ahead, slot["ahead"]), (s, slot["s"]),
                  (at.energy, slot["energy_before"])]  # fmt: skip
        if system.n_guards > system.n_unilateral:
            inputs.append((at.slope, slot["slope"]))
        kernels = _observations(system, at, maps, slot, inputs)
        guessed = [(at.bending, 1.0)]
        kernels.append(Kernel("full_guess", inputs, [(ca.substitute(full, at.dt, at.h), slot["x"])], known=guessed))
        kernels += _ends(system, at, maps, slot, inputs)
        for name, equations in problems.items():
            kernels.append(Kernel(f"{name}_guess", inputs, [(equations.guess, slot["x"])], known=guessed))
            kernels += _newton_kernels(name, equations, slot, inputs)
        return cls(places, size, problems, kernels, maps.after_impact is not None)


def _compile(parts: _Parts, method: CollisionIntegrator) -> EventProgram:
    seldom = {kernel.name for kernel in parts.kernels} - {"look"}
    code, used = compile_kernels(parts.kernels, parts.size, quick=seldom, quick_from=SELDOM)
    at, tables = parts.at, []  # type: tuple[np.void, list[int]]
    for name, equations in parts.problems.items():
        addresses = [code.addresses.get(f"{name}_{part}", 0) for part in NEWTON]
        at[name] = (equations.x.shape[0], *addresses, len(equations.scales), len(tables))
        tables += [number for scale, size in equations.scales for number in (size, SCALES[scale])]
    for name in MARKS:
        at[name] = len(tables)
        tables += [0] * int(at["m"])
    for name in KERNELS:
        at[f"call_{name}"] = code.addresses.get(name, 0)
    at["coupled"], at["full_is_partial"] = parts.coupled, method.full_is_partial
    return EventProgram(at, np.array(tables, dtype=np.int64), parts.size + used, code)


def _observations(system: MechanicalSystem, at: Point, maps: Maps, slot: Mapping[str, int], inputs: list) -> list[Kernel]:
    """phi and phi_dot; how rounding blurs phi, how strongly a kick acts on phi_dot, and H; the motion's tangent."""
    phi_q, phi_t = (system.function(name)(at.t, at.q, at.theta) for name in ("phi_q", "phi_t"))
    phi, rate, slack = (
        system.function(name)(at.t, at.q, at.p, at.theta) for name in ("guards", "guard_rate", "guard_rounding")
    )
    rate = rate if maps.velocity is None else phi_t + phi_q @ maps.velocity
    mobility = phi_q @ system.function("H_pp")(at.t, at.q, at.p, at.theta)
    strength = ca.sum2(mobility * phi_q)
    H = system.function("H")(at.t, at.q, at.p, at.theta)
    motion = system.motion(at.t, at.q, at.p, at.theta)
    none = [ca.SX.zeros(size, 1) for size in (system.n_holonomic, system.n_nonholonomic)]
    given = system.function("z_dot")(at.t, at.q, at.p, *none, at.theta)
    forces = ca.fabs(given) + ca.fabs(motion[system.dim :] - given)  # where they balance, their rounding errors do not
    return [
        Kernel("look", inputs, [(phi, slot["phi"]), (rate, slot["rate"])]),
        Kernel("measure", inputs, [(slack, slot["slack"]), (strength, slot["strength"]), (H, slot["energy"])]),
        Kernel("tangent", inputs, [(motion, slot["tangent"]), (forces, slot["forces"])]),
    ]


def _ends(system: MechanicalSystem, at: Point, maps: Maps, slot: Mapping[str, int], inputs: list) -> list[Kernel]:
    """What follows from the solution of a system of equations: the increment of a flow, the momentum after an impact."""

    def end(name: str, flow: Flow) -> Kernel:
        return Kernel(name, [*inputs, (flow.equations.x, slot["x"])], [(flow.increment, slot["delta"])])

    kernels = [end("end", maps.partial)]
    if maps.reset is None:
        return kernels
    event = Event(system, at)
    speed, fraction = as_column(event.approach_speeds @ event.hit), as_column(event.impulse_fraction)

    def outcome(name: str, impact: Reset) -> Kernel:
        after, impulse = at.p + fraction * impact.kick, fraction * impact.impulse  # p+ = p- + (1 + e)/2 kick
        results = [(after, slot["after"]), (impulse, slot["impulse"]), (fraction, slot["fraction"]), (speed, slot["speed"])]
        return Kernel(name, [*inputs, (impact.equations.x, slot["x"])], results)

    kernels.append(outcome("outcome", maps.reset))
    if maps.after_impact is not None and maps.after_impact.reset is not None:
        energy = [(maps.energy, slot["energy_before"])]
        kernels += [end("end_after", maps.after_impact), outcome("outcome_after", maps.after_impact.reset)]
        kernels.append(Kernel("energy", [*inputs, (maps.partial.equations.x, slot["x"])], energy))
    return kernels


def _newton_kernels(name: str, equations: Equations, slot: Mapping[str, int], inputs: list) -> list[Kernel]:
    own = [*inputs, (equations.x, slot["x"])]
    n = equations.x.shape[0]
    rows = ca.vertsplit(equations.model, [0, n - 1, n]) if n else [equations.model]
    matrix = ca.vertcat(*(ca.jacobian(part, equations.x) for part in rows))  # the last row may be full: by reverse derivatives
    i, j = (np.array(indices, dtype=int) for indices in matrix.sparsity().get_triplet())
    entries = (entries_of(matrix), slot["matrix"] + n * i + j)
    return [
        Kernel(f"{name}_residual", own, [(equations.residual, slot["residual"])]),
        Kernel(f"{name}_matrix", own, [entries]),  # the others are zero
        *_in_fixed_order(name, equations, matrix, slot, own),
    ]


def _in_fixed_order(name: str, equations: Equations, matrix: ca.SX, slot: Mapping[str, int], inputs: list) -> list[Kernel]:
    """LU in straight-line code, which is several times faster than a choice of pivots, and the increments that it gives."""
    few = matrix.nnz() <= STRAIGHT_LINE_LIMIT
    order = _pivot_order(matrix, equations, [symbol for symbol, _ in inputs]) if few else None
    if order is None or order.products > STRAIGHT_LINE_LIMIT:
        return []
    factors = eliminate(matrix, order)
    growth = sum((ca.fabs(factor) for row in factors[1] for factor in row.values()), start=ca.SX(0))
    reciprocals, lower, upper, stored = name_factors(*factors)
    names, values = (ca.vertcat(ca.SX(0, 1), *(pair[k] for pair in stored)) for k in (0, 1))
    increment = substitute(reciprocals, lower, upper, order, equations.residual)
    at_once = ca.substitute(increment, names, values)
    factor = [(values, slot["matrix"]), (growth, slot["growth"]), (at_once, slot["residual"])]
    return [
        Kernel(f"{name}_factor", inputs, factor),  # with an increment, which shares its subexpressions
        Kernel(f"{name}_increment", [*inputs, (names, slot["matrix"])], [(increment, slot["residual"])]),
    ]


def _pivot_order(matrix: ca.SX, equations: Equations, symbols: list[ca.SX]) -> PivotOrder | None:
    """An order for all points and lengths of steps, from points at random with unknowns of the sizes of `SCALES`."""
    random, entries = np.random.default_rng(1788), ca.Function("entries", symbols, [ca.vertcat(*matrix.nonzeros())])
    samples = []
    for length in (1e-1, 1e-2, 1e-3) * 3:
        sizes = {"velocity": 1.0, "momentum": length, "one": 1.0}
        x = np.concatenate([np.zeros(0), *(sizes[scale] * random.standard_normal(size) for scale, size in equations.scales)])
        known = [0.0, length, length, np.ones(symbols[3].shape[0])]  # t, dt, h and the parameters
        point = [random.standard_normal(symbol.shape[0]) for symbol in symbols[len(known) : -1]]
        samples.append(np.asarray(entries(*known, *point, x), dtype=float).ravel())
    try:
        return chosen_from(matrix, samples)
    except SingularMatrix:
        return None
