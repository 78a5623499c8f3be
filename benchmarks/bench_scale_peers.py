"""Large mechanisms beside what a user would pick instead: OpenMM and Exudyn for points, MuJoCo and Exudyn for bodies, heyoka
and SciPy for gravity.

    pip install exudyn mujoco openmm heyoka
    python benchmarks/bench_scale_peers.py

All programs run for the same time, in one process, in turn; the least CPU time of three counts. The error is the largest
distance of a point, or of a body's centre, in the end from a run of LobattoIIIAB(3) with a quarter of the step.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from bench_scale import BODY, GRAVITY, MODELS, ROD, Model, net_points, ring_points
from common import Section, load_drivers, measure_apart, note, table

import dalembert as da

CASES = {
    ("net", 30): 100, ("tree", 100): 500, ("tree", 1000): 100, ("bodies", 200): 100, ("ring", 1000): 200, ("gravity", 100): 200,
}  # fmt: skip
"""The models of `bench_scale.py`, and how many steps they make."""
ROUNDS, FINER = 3, 4

Run = Callable[[], tuple[float, np.ndarray]]
"""CPU seconds of a run, and where the points are in the end."""
Prepare = Callable[[str, int, Model, int], tuple[Run, int]]
"""From the kind of a model, its size, the model and how many steps it makes to a run and its steps, 0 where they vary."""


def centres(kind: str, q: np.ndarray) -> np.ndarray:
    return q.reshape(-1, 12 if kind == "bodies" else 3)[:, : 2 if kind == "tree" else 3]


def dalembert(method: da.OneStepMethod, parts: int = 1) -> Prepare:
    """The same steps, or parts of them."""

    def prepare(kind: str, size: int, model: Model, steps: int) -> tuple[Run, int]:
        (system, initial, h), count = model, parts * steps

        def run() -> tuple[float, np.ndarray]:
            began = time.process_time()
            result = da.simulate(system, method, h=h / parts, steps=count, save_every=count, progress=False, **initial)
            return time.process_time() - began, centres(kind, result.q[-1])

        return run, count

    return prepare


def openmm(kind: str, size: int, model: Model, steps: int) -> tuple[Run, int]:
    import openmm as mm

    points, (plain, initial, h) = {"net": net_points, "ring": ring_points}[kind](size), model
    system = mm.System()
    for k in range(len(points.rest)):
        system.addParticle(1e12 if k in points.held else points.mass)
    for (i, j), length in zip(points.pairs.tolist(), points.lengths, strict=True):
        if not {i, j} <= set(points.held):
            system.addConstraint(i, j, length)
    if kind == "net":
        force = mm.CustomExternalForce(f"{points.mass * GRAVITY}*z")
        for k in set(range(len(points.rest))) - set(points.held):
            force.addParticle(k, [])
    else:
        force = mm.CustomCompoundBondForce(3, "5*((x1-2*x2+x3)^2+(y1-2*y2+y3)^2+(z1-2*z2+z3)^2)")
        for k in range(size):
            force.addBond([(k - 1) % size, k, (k + 1) % size], [])
    system.addForce(force)
    integrator = mm.VerletIntegrator(h)
    integrator.setConstraintTolerance(1e-12)
    context = mm.Context(system, integrator, mm.Platform.getPlatformByName("CPU"), {"Threads": "1"})
    before = da.simulate(plain, da.Rattle(), h=-h / 2, steps=1, **initial).v[-1]  # its velocities are half a step behind

    def run() -> tuple[float, np.ndarray]:
        context.setPositions(points.rest)
        context.setVelocities(before.reshape(-1, 3))
        began = time.process_time()
        integrator.step(steps)
        found = context.getState(getPositions=True).getPositions(asNumpy=True)._value
        return time.process_time() - began, np.array(found)

    return run, steps


def exudyn(kind: str, size: int, model: Model, steps: int) -> tuple[Run, int]:
    import exudyn as exu

    def run() -> tuple[float, np.ndarray]:
        container = exu.SystemContainer()
        mbs = container.AddSystem()
        bodies = EXUDYN[kind](mbs, size, model)
        mbs.Assemble()
        settings: Any = exu.SimulationSettings()
        integration = settings.timeIntegration
        integration.numberOfSteps, integration.endTime, integration.verboseMode = steps, steps * model[2], 0
        settings.solutionSettings.writeSolutionToFile = False
        integration.newton.useModifiedNewton = True
        integration.newton.relativeTolerance, integration.newton.absoluteTolerance = 1e-10, 1e-12
        integration.generalizedAlpha.spectralRadius = 1
        integration.generalizedAlpha.useIndex2Constraints = integration.generalizedAlpha.useNewmark = True
        settings.linearSolverType = exu.LinearSolverType.EigenSparse
        began = time.process_time()
        mbs.SolveDynamic(settings)
        spent, place = time.process_time() - began, exu.OutputVariableType.Position
        found = np.array([mbs.GetObjectOutputBody(body, place, [0.0, 0.0, 0.0]) for body in bodies])
        return spent, found[:, : 2 if kind == "tree" else 3]

    return run, steps


def _exudyn_net(mbs: Any, size: int, model: Model) -> list[Any]:
    points = net_points(size)
    bodies = [
        mbs.CreateGround(referencePosition=x)
        if k in points.held
        else mbs.CreateMassPoint(referencePosition=x, mass=points.mass, gravity=[0.0, 0.0, -GRAVITY])
        for k, x in enumerate(points.rest.tolist())
    ]
    for (i, j), length in zip(points.pairs.tolist(), points.lengths, strict=True):
        mbs.CreateDistanceConstraint(itemNumbers=[bodies[i], bodies[j]], distance=length)
    return bodies


def _exudyn_tree(mbs: Any, size: int, model: Model) -> list[Any]:
    import exudyn.utilities as eu

    (m, length), ground = ROD, mbs.CreateGround()
    bodies: list[Any] = []

    def marker(body: Any, y: float) -> Any:
        return mbs.AddMarker(eu.MarkerBodyPosition(bodyNumber=body, localPosition=[0.0, y, 0.0]))

    for k, coordinates in enumerate(model[1]["q0"].reshape(-1, 3).tolist()):
        node = mbs.AddNode(eu.NodeRigidBody2D(referenceCoordinates=coordinates))
        bodies.append(mbs.AddObject(eu.RigidBody2D(physicsMass=m, physicsInertia=m * length**2 / 12, nodeNumber=node)))
        at = mbs.AddMarker(eu.MarkerNodePosition(nodeNumber=node))
        mbs.AddLoad(eu.Force(markerNumber=at, loadVector=[0.0, -m * GRAVITY, 0.0]))
        above = marker(bodies[(k - 1) // 2], -length / 2) if k else marker(ground, 0.0)
        mbs.AddObject(eu.RevoluteJoint2D(markerNumbers=[above, marker(bodies[k], length / 2)]))
    return bodies


def _exudyn_bodies(mbs: Any, size: int, model: Model) -> list[Any]:
    import exudyn.utilities as eu

    m, length, integrals = BODY
    bodies, last = [], mbs.CreateGround()
    for centre, *axes in model[1]["q0"].reshape(-1, 4, 3):
        body = mbs.CreateRigidBody(
            inertia=eu.RigidBodyInertia(mass=m, inertiaTensor=np.diag(integrals.sum() - integrals)),
            referencePosition=centre.tolist(), referenceRotationMatrix=np.stack(axes, axis=1), gravity=[0.0, 0.0, -GRAVITY],
        )  # fmt: skip
        mbs.CreateSphericalJoint(itemNumbers=[last, body], position=(centre - length / 2 * axes[2]).tolist())
        bodies.append(body)
        last = body
    return bodies


EXUDYN: dict[str, Callable[[Any, int, Model], list[Any]]] = {
    "net": _exudyn_net, "tree": _exudyn_tree, "bodies": _exudyn_bodies,
}  # fmt: skip


def mujoco(kind: str, size: int, model: Model, steps: int) -> tuple[Run, int]:
    import mujoco as mj

    spec = mj.MjSpec()
    spec.option.timestep, spec.option.integrator = model[2], mj.mjtIntegrator.mjINT_RK4
    spec.option.gravity = [0.0, -GRAVITY, 0.0] if kind == "tree" else [0.0, 0.0, -GRAVITY]
    bodies: list[Any] = []
    m, length, integrals = BODY
    for k, row in enumerate(model[1]["q0"].reshape(size, -1)):  # bodies in the pose of the start, axes those of space
        parent = (k - 1) // 2 if kind == "tree" else k - 1
        centre = np.array([*row[:2], 0.0]) if kind == "tree" else row[:3]
        if kind == "tree":
            m, length = ROD
            up, J = length / 2 * np.array([-np.sin(row[2]), np.cos(row[2]), 0.0]), np.diag([1e-3, 1e-3, m * length**2 / 12])
        else:
            R = row[3:].reshape(3, 3).T
            up, J = -length / 2 * R[:, 2], R @ np.diag(integrals.sum() - integrals) @ R.T
        above = bodies[parent] if parent >= 0 else (spec.worldbody, np.zeros(3))
        body = above[0].add_body(name=str(k), pos=centre - above[1])
        body.mass, body.ipos, body.explicitinertial = m, np.zeros(3), True
        body.fullinertia = [J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]]
        kind_of = mj.mjtJoint.mjJNT_HINGE if kind == "tree" else mj.mjtJoint.mjJNT_BALL
        body.add_joint(type=kind_of, axis=[0.0, 0.0, 1.0], pos=up)
        bodies.append((body, centre))
    compiled = spec.compile()  # which numbers bodies branch by branch
    data, numbers = mj.MjData(compiled), [compiled.body(str(k)).id for k in range(size)]

    def run() -> tuple[float, np.ndarray]:
        mj.mj_resetData(compiled, data)
        began = time.process_time()
        mj.mj_step(compiled, data, steps)
        spent = time.process_time() - began
        mj.mj_kinematics(compiled, data)
        return spent, np.array(data.xipos[numbers, : 2 if kind == "tree" else 3])

    return run, steps


def heyoka(tolerance: float) -> Prepare:
    def prepare(kind: str, size: int, model: Model, steps: int) -> tuple[Run, int]:
        import heyoka as hy

        start, t1 = np.concatenate([model[1]["q0"], model[1]["p0"]]), steps * model[2]
        q, p = (hy.make_vars(*(f"{name}{k}" for k in range(3 * size))) for name in "qp")
        pulls: list[list[Any]] = [[] for _ in range(3 * size)]
        for i in range(size):
            for j in range(i):
                d = [q[3 * i + k] - q[3 * j + k] for k in range(3)]
                factor = hy.sum([d[0] ** 2.0, d[1] ** 2.0, d[2] ** 2.0, hy.expression(0.01)]) ** (-1.5) / float(size)
                for k in range(3):
                    pulls[3 * i + k].append(-factor * d[k])
                    pulls[3 * j + k].append(factor * d[k])
        equations = [*zip(q, p, strict=True), *((a, hy.sum(terms)) for a, terms in zip(p, pulls, strict=True))]
        solver = hy.taylor_adaptive(equations, start.tolist(), tol=tolerance, compact_mode=True)

        def run() -> tuple[float, np.ndarray]:
            solver.time, solver.state[:] = 0.0, start
            began = time.process_time()
            solver.propagate_until(t1)
            return time.process_time() - began, np.array(solver.state[: 3 * size]).reshape(-1, 3)

        return run, 0

    return prepare


def scipy(tolerance: float) -> Prepare:
    def prepare(kind: str, size: int, model: Model, steps: int) -> tuple[Run, int]:
        from scipy.integrate import solve_ivp

        start, t1 = np.concatenate([model[1]["q0"], model[1]["p0"]]), steps * model[2]

        def slope(t: float, y: np.ndarray) -> np.ndarray:
            q, p = y.reshape(2, -1, 3)
            d = q[:, None] - q
            factor = (np.einsum("ijk,ijk->ij", d, d) + 0.01) ** -1.5 / size
            return np.concatenate([p, -np.einsum("ij,ijk->ik", factor, d)]).ravel()

        def run() -> tuple[float, np.ndarray]:
            began = time.process_time()
            found = solve_ivp(slope, (0.0, t1), start, method="DOP853", rtol=tolerance, atol=tolerance)
            return time.process_time() - began, found.y[: 3 * size, -1].reshape(-1, 3)

        return run, 0

    return prepare


RATTLE, LOBATTO = dalembert(da.Rattle()), dalembert(da.LobattoIIIAB(3))
OWN: dict[str, Prepare] = {"**dalembert**, Rattle": RATTLE, "**dalembert**, LobattoIIIAB(3)": LOBATTO}
PEERS: dict[str, dict[str, Prepare]] = {
    "net": {"OpenMM, Verlet, 1e-12": openmm, "Exudyn, trapezoidal rule": exudyn},
    "ring": {"OpenMM, Verlet, 1e-12": openmm},
    "tree": {"MuJoCo, RK4": mujoco, "Exudyn, trapezoidal rule": exudyn},
    "bodies": {"MuJoCo, RK4": mujoco, "Exudyn, trapezoidal rule": exudyn},
    "gravity": {
        **{f"heyoka, {tol:g}": heyoka(tol) for tol in (1e-6, 1e-12)},
        **{f"SciPy DOP853, {tol:g}": scipy(tol) for tol in (1e-4, 1e-10)},
    },
}


def measure(kind: str, size: int) -> dict[str, dict[str, float]]:
    """By program: CPU seconds of the run and, before, until it could begin; its steps and its error."""
    load_drivers()
    model, steps = MODELS[kind](size), CASES[kind, size]
    found: dict[str, dict[str, float]] = {}  # nothing of one that fails
    runs: dict[str, Run] = {}
    for name, prepare in (OWN | PEERS[kind]).items():
        if "dalembert" not in name and find_spec(name.split(",")[0].split()[0].lower()) is None:
            continue
        began = time.process_time()
        run, count = prepare(kind, size, model, steps)
        try:
            seconds, _ = run()
        except Exception as reason:  # as of OpenMM's constraints on a net, which do not converge
            note(f"{name}: {reason}")
            found[name] = {}
            continue
        runs[name], found[name] = run, {"whole": time.process_time() - began, "steps": count, "seconds": seconds}
    exact = dalembert(da.LobattoIIIAB(3), FINER)(kind, size, model, steps)[0]()[1]
    for name in list(runs) * ROUNDS:
        spent, place = runs[name]()
        mine = found[name]
        mine["seconds"], mine["error"] = min(mine["seconds"], spent), float(np.abs(place - exact).max())
    return found


def run() -> Section:
    rows = []
    for (kind, size), steps in CASES.items():
        note(f"{kind}, {size}")
        for name, r in measure_apart("bench_scale_peers.py", kind, size).items():
            cells = ["", "", "", "fails"]
            if r:
                each = f"{1e6 * r['seconds'] / r['steps']:.0f}" if r["steps"] else ""
                cells = [f"{r['whole'] - r['seconds']:.1f}", each, f"{1e3 * r['seconds']:.1f}", f"{r['error']:.0e}"]
            rows.append([f"{kind}, {size}", name, f"{steps * MODELS[kind](size)[2]:g}", *cells])
            note("  ".join(rows[-1]))
    head = ("model", "program", "time simulated", "ready after, s", "us/step", "whole run, ms", "error")
    body = f"""
The models of the section above: CPU time of one run, the least of {ROUNDS} in turn with the other programs in one process, and
what it takes to get ready, compiling included. Steps are equal but for heyoka's and SciPy's, which choose theirs for the given
tolerances; "error" is the largest distance of a point, or of a body's centre, in the end from LobattoIIIAB(3) with steps of a
quarter. OpenMM (Verlet, constraints to 1e-12) runs on one thread of its CPU platform, whose forces are in single precision,
Exudyn with its sparse solver and constraints of index 2, MuJoCo in joint angles, where a tree has no constraints.

{table(head, rows)}
"""
    return Section("Large mechanisms beside other programs", body)


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
    else:
        print(run().body)
