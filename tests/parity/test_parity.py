"""Every feature of the table through every door: the same result, or the refusal that the table states."""

from __future__ import annotations

import inspect
import re
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import parity_models
import pytest
from parity_table import (
    COMMAND,
    DASK,
    DOORS,
    ELSEWHERE,
    FEATURES,
    MANY,
    NO_ARGUMENT,
    NOTHING,
    PAGE,
    POINCARE,
    PROCESSES,
    RESUME,
    STORE,
    SWEEP,
    THREADS,
    VECTORS,
    page,
)

import dalembert as da
from dalembert.cli import main
from dalembert.cli._methods import method as method_named
from dalembert.runs import _stored_run

INITIAL = ("q0", "p0", "v0", "y0", "z0")
FUNCTIONS = {POINCARE: da.poincare, **dict.fromkeys((MANY, VECTORS, SWEEP, THREADS, PROCESSES, DASK), da.simulate_many)}


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        yield client


@pytest.fixture(scope="module")
def references():
    """What `simulate` and threads gave, by feature."""
    return {}


class Case:
    """A feature with its model and its method."""

    def __init__(self, feature, folder):
        self.feature, self.folder = feature, folder
        self.model, self.method = getattr(parity_models, feature.model), method_named(feature.method)
        self.given = dict(feature.given)

    @property
    def steps(self):
        return self.given.get("steps", 6)

    @property
    def two_members(self):
        """Two members, of which the second is the run."""
        rows = {name: [value, value] for name, value in self.given.items() if name in INITIAL}
        params = {name: [value, value] for name, value in self.given.get("params", {}).items()}
        return self.given | rows | {"params": params, "progress": False}

    def simulate(self, **changes):
        return da.simulate(self.model, self.method, **{**self.given, "on_failure": "return", "progress": False, **changes})

    def many(self, **options):
        return da.simulate_many(self.model, self.method, **self.two_members, **{"simd": False, **options})

    def crossing(self):
        """Where t passes the middle of a step."""
        middle = self.first_steps(3).t[2:].mean()
        found = da.poincare(self.model, self.method, section=lambda t: t - middle, **self.two_members)[1]
        assert np.allclose(found.t, [middle], rtol=0, atol=1e-12)
        return found.states[0]

    def first_steps(self, steps):
        return self.simulate(steps=steps, **({"t1": None} if "t1" in self.given else {}))

    def half_step(self):
        """The state after two steps and half a step, where steps vary of the method that was given."""
        before, half = self.first_steps(2), np.diff(self.first_steps(3).t)[-1] / 2
        method = self.method.method if self.method.varies_steps else self.method
        first, second = before.blocks
        parts = np.split(np.asarray(before.states)[-1], [first[1]])
        start = {f"{name}0": part for (name, size), part in zip((first, second), parts, strict=True) if size}
        guess = {} if first[1] else {"z0": self.given["z0"]}
        begin = {**start, **guess, "params": self.given.get("params"), "t0": float(before.t[-1])}
        if isinstance(self.model, da.Mechanism):  # redundant rows hold to less than starts must
            begin = {"start": da.consistent(before.system, **begin)}
        return da.simulate(self.model, method, **begin, progress=False, h=half, steps=1).states[-1]

    def stored(self, name, **changes):
        return self.simulate(save_to=self.folder / name, **changes)

    def resumed(self):
        steps, chosen = self.steps, {}
        if "rtol" in self.given:  # from its choice of h on it is a run like any other
            whole = self.stored("chosen.zarr")
            steps, chosen = len(whole) - 1, {"h": whole.h, "rtol": None, "atol": None}
        self.stored("half.zarr", steps=steps // 2, **chosen, **({"t1": None} if "t1" in self.given else {}))
        return da.resume(self.folder / "half.zarr", self.model, self.method, steps=steps, on_failure="return", progress=False)

    def commanded(self):
        words = ["run", f"{Path(parity_models.__file__)}:{self.feature.model}", "--method", self.feature.method]
        for name, value in self.given.items():
            option = "--" + name.replace("_", "-")
            if name == "params":
                words += [f"--set={key}={number!r}" for key, number in value.items()]
            elif value is True:
                words += [option]
            else:
                words += [f"{option}={','.join(map(repr, value)) if isinstance(value, list) else repr(value)}"]
        code = main([*words, "--save", str(self.folder / "run.npz")])
        return code, da.load(self.folder / "run.npz") if (self.folder / "run.npz").exists() else None


def equal(first, second):
    first, second = np.asarray(first), np.asarray(second)
    return first.shape == second.shape and np.array_equal(first, second, equal_nan=True)


def near(first, second, tolerance):
    first, second = np.asarray(first), np.asarray(second)
    return first.shape == second.shape and np.allclose(first, second, rtol=10 * tolerance, atol=tolerance, equal_nan=True)


def alike(first, second):
    """Whether two runs have the same bits: states, parameters, stage multipliers, step sizes, impacts and contacts."""
    same = equal(first.states, second.states) and equal(first.t, second.t) and first.status == second.status
    same = same and first.parameters.keys() == second.parameters.keys()
    same = same and all(equal(value, second.parameters[name]) for name, value in first.parameters.items())
    for name in ("stage_lam", "stage_psi", "step_sizes"):
        one, other = getattr(first, name), getattr(second, name)
        same = same and (one is None) == (other is None) and (one is None or equal(one, other))
    for name in ("impacts", "contacts"):
        one, other = getattr(first, name), getattr(second, name)
        same = same and (one is None) == (other is None)
        same = same and (one is None or all(equal(values, getattr(other, column)) for column, values in vars(one).items()))
    return same


IN_SHORT = (
    "holonomic constraints",
    "controls",
    "multipliers that enter nonlinearly",
    "impacts, sliding and rest",
    "time stepping",
)
"""Features that are sent to other processes in the short tests, too."""
CASES = [
    pytest.param(
        feature, door, id=f"{feature}-{door}", marks=[pytest.mark.slow] if away and feature.name not in IN_SHORT else []
    )
    for feature in FEATURES
    for door in DOORS[1:]
    for away in [door in (PROCESSES, DASK)]
]


@pytest.mark.parametrize(("feature", "door"), CASES)
def test_every_door(feature, door, tmp_path, monkeypatch, references, request):
    case, why = Case(feature, tmp_path), feature.differs.get(door)
    if why == NOTHING:
        pytest.skip("there is nothing to compare")
    n = case.model.system().n_state if isinstance(case.model, da.Mechanism) else case.model.n_state
    monkeypatch.setattr(_stored_run, "CHUNK_NUMBERS", 2 * n)  # two rows a chunk
    if why == NO_ARGUMENT:
        if door == COMMAND:
            assert not all("--" + name.replace("_", "-") in _options() for name in feature.given)
        else:
            assert not set(feature.given) <= set(inspect.signature(FUNCTIONS[door]).parameters)
        return
    if why is not None:
        with pytest.raises(da.DalembertError, match=re.escape(why)):
            _through(case, door, request)
        assert not list(tmp_path.iterdir())
        return
    if feature.name not in references:
        references[feature.name] = case.simulate()
    reference = references[feature.name]
    if door == COMMAND:
        code, run = case.commanded()
        assert code == (0 if reference.status == "done" else 1)
        assert alike(run, reference)
        return
    if door == POINCARE:
        assert np.allclose(case.crossing(), case.half_step(), rtol=1e-10, atol=1e-11)
        return
    run = _through(case, door, request)
    assert run.status == reference.status and (reference.impacts is None or len(run.impacts) == len(reference.impacts))
    assert near(run.states, reference.states, feature.given.get("newton_tolerance", 1e-12))
    if door == MANY:
        assert alike(run, reference)
    if door in (SWEEP, PROCESSES, DASK):
        assert alike(run, _through(case, THREADS, request))
    if door == RESUME:
        assert alike(run, case.stored("whole.zarr"))


def _through(case, door, request):
    """The run that a door gives, of an ensemble the second one."""
    if door == STORE:
        return case.stored("run.zarr")
    if door == RESUME:
        return case.resumed()
    if door == POINCARE:
        return case.crossing()
    if door == SWEEP:
        case.many(save_to=case.folder / "sweep.zarr")
        return da.load(case.folder / "sweep.zarr", case.model)[1]
    if door == THREADS:
        with ThreadPoolExecutor(1) as pool:
            return case.many(executor=pool)[1]
    executor = {PROCESSES: "processes", DASK: "client"}.get(door)
    options = {"executor": request.getfixturevalue(executor)} if executor else {}
    return case.many(**options, **({"simd": True} if door == VECTORS else {}))[1]


def _options():
    """The long options of `dalembert run`."""
    import argparse

    from dalembert.cli import _run_command

    parser = argparse.ArgumentParser()
    _run_command.add_arguments(parser)
    return {option for action in parser._actions for option in action.option_strings}


def test_every_argument_of_simulate_has_a_row():
    given = {name for feature in FEATURES for name in feature.given}
    arguments = set(inspect.signature(da.simulate).parameters)
    assert given <= arguments and arguments - given == set(ELSEWHERE), "give it a row, or say in ELSEWHERE why it has none"


def test_the_page_shows_the_table():
    assert PAGE.read_text(encoding="utf-8") == page(), "write the page again: python tests/parity/parity_table.py"
