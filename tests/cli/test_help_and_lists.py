"""What the command says about itself, about the catalogue and about the machine."""

import importlib.metadata
import importlib.util
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert import experiments
from dalembert.cli._main import COMMANDS


@pytest.mark.parametrize("line", ["--help", *(f"{name} --help" for name in COMMANDS)])
def test_every_help_has_examples(command, line):
    code, out, err = command(line)
    assert code == 0 and not err and "examples:\n  dalembert " in out


def test_help_is_a_command_too(command):
    assert command("help") == command("--help")
    assert command("help run") == command("run --help") and "--save-every" in command("help run")[1]


def test_help_loads_nothing_that_takes_long():
    heavy = ("numba", "matplotlib", "numpy", "scipy", "casadi", "rich")
    code = (
        "import sys\nfrom dalembert.cli import main\nmain(['run', '--help'])\nmain(['--help'])\n"
        f"assert not [name for name in {heavy} if name in sys.modules]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", [line for line in COMMANDS["run"].__doc__.splitlines() if line.startswith("  dal")])
def test_the_examples_of_run_work(command, line):
    code, out, err = command(line.strip().removeprefix("dalembert ").replace("1e5", "1000"))
    assert code == 0 and not err and "max |H - H0|" in out


def test_version(command):
    assert command("--version")[:2] == (0, f"dalembert {da.__version__}\n")


def test_list_knows_everything_that_is_public(command):
    _, out, _ = command("list --json")
    listed = {kind: {entry["name"] for entry in entries} for kind, entries in json.loads(out).items()}
    assert listed["problems"] == set(da.problems.__all__) - {"Problem"}
    classes = {
        name for name in da.__all__ if isinstance(getattr(da, name), type) and issubclass(getattr(da, name), da.OneStepMethod)
    }
    assert listed["methods"] == classes - {"OneStepMethod"} | {"MCVAA", "MCVAC", "adjoint", "compose"}
    assert listed["experiments"] == set(experiments.names())


def test_list_one_kind(command):
    code, out, _ = command("list problems --long")
    assert code == 0 and "double_pendulum(m1=1, m2=1, l1=1, l2=1, g=1)" in out and "LobattoIIIAB" not in out
    short = command("list problems")[1]
    assert "Planar double pendulum, Example 2 of Jay (1996)." in short and "m1=1" not in short


def listed(out):
    return [entry["name"] for entry in next(iter(json.loads(out).values()))]


def served(name, system):
    try:
        COMMANDS["list"].method(name).check(system)
    except da.DalembertError:
        return False
    return True


def test_lists_for_a_kind_of_system_a_problem_and_a_method_are_what_the_methods_themselves_accept(command):
    named = {"LobattoIIIAB", "Rattle", "GaussLobattoSPARK", "CVA", "SRK", "SymplecticEuler", "McLachlanPerlmutter", "Gauss"}
    for_kind = {kind: set(listed(command(f"list methods --for {kind} --json")[1])) & named
                for kind in ("free", "holonomic", "nonholonomic", "walls", "odae", "index2")}  # fmt: skip
    assert for_kind == {
        "free": {"LobattoIIIAB", "Rattle", "GaussLobattoSPARK", "SymplecticEuler", "Gauss", "SRK"},
        "holonomic": {"LobattoIIIAB", "Rattle", "GaussLobattoSPARK", "SymplecticEuler", "Gauss"},
        "nonholonomic": {"GaussLobattoSPARK", "SRK", "McLachlanPerlmutter", "Gauss"},
        "walls": {"CVA"},
        "odae": {"SymplecticEuler"},
        "index2": {"SRK", "Gauss"},
    }
    skate = da.problems.skate().system  # holonomic and nonholonomic
    assert set(listed(command("list methods --for skate --json")[1])) & named == {n for n in named if served(n, skate)}
    some = {name: getattr(da.problems, name)().system for name in ("pendulum", "skate", "bouncing_ball", "cart_pendulum")}
    found = set(listed(command("list problems --for Rattle --json")[1])) & set(some)
    assert found == {name for name, system in some.items() if served("Rattle", system)} == {"pendulum", "cart_pendulum"}
    assert all(name.startswith("jay1996.") for name in listed(command("list experiments --for jay1996 --json")[1]))


def test_lists_are_in_order_by_group_and_name(command):
    entries = json.loads(command("list problems --json")[1])["problems"]
    groups = [entry["group"] for entry in entries]
    assert len(set(groups)) == 1 + sum(a != b for a, b in itertools.pairwise(groups))  # each group once
    for group in set(groups):
        names = [entry["name"] for entry in entries if entry["group"] == group]
        assert names == sorted(names)
    assert len(command("list")[1].splitlines()) < 50  # a screen or two: names only
    assert len(command("list methods")[1].splitlines()) > 50


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("list methods --for pendulam", "there is no problem 'pendulam': did you mean"),
        ("list problems --for Rattel", "there is no method 'Rattel': did you mean"),
        ("list experiments --for jay", "there is no document 'jay' (the documents are"),
        ("list --for walls", "say what to list for walls, such as: dalembert list methods --for walls"),
    ],
)
def test_a_purpose_that_is_none_is_refused(command, line, sentence):
    code, out, err = command(line)
    assert code == 2 and not out and sentence in err


def test_examples_in_complaints_can_be_typed(command):
    for name in ("SPARK", "PartitionedRungeKutta", "compose"):
        err = command(f"run pendulum --steps 2 --method {name}")[2]
        typed = err.partition("--method ")[2].strip()
        assert command(f"run pendulum --steps 2 --method {typed}")[0] == 0


def test_info_names_versions_and_the_cache(command):
    _, out, _ = command("info --json")
    facts = json.loads(out)
    assert facts["dalembert"] == da.__version__ and facts["numpy"] == np.__version__
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"casadi", "numba", "llvmlite"} <= set(facts) and os.path.isdir(facts["cached drivers"])
    assert "numba" in command("info")[1]


def test_info_shows_the_cache_of_models_and_its_size(command, here, monkeypatch):
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(here / "cache"))
    assert json.loads(command("info --json")[1])["size"] == "0.0 MB in 0 files"
    (here / "cache").mkdir()
    (here / "cache" / "one.o").write_bytes(bytes(2_300_000))
    facts = json.loads(command("info --json")[1])
    assert facts["cached models"] == str(here / "cache") and facts["size"] == "2.3 MB in 1 file"
    assert facts["to clear a cache"].startswith("dalembert cache clear") and facts["at most"].startswith("500 MB")
    assert command("cache clear")[1] == "1 file removed, 2.3 MB\n"
    assert json.loads(command("info --json")[1])["size"] == "0.0 MB in 0 files"
    monkeypatch.delenv("DALEMBERT_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", classmethod(lambda _: (_ for _ in ()).throw(RuntimeError)))
    assert json.loads(command("info --json")[1])["cached models"].startswith("nowhere")


def test_info_knows_what_is_optional(command, monkeypatch, tmp_path):
    facts = json.loads(command("info --json")[1])
    for package in ("matplotlib", "zarr", "dask"):
        installed = importlib.util.find_spec(package) is not None
        assert facts[package] == (importlib.metadata.version(package) if installed else "not installed")
    (tmp_path / "ffmpeg").write_text("#!/bin/sh\n")
    (tmp_path / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert json.loads(command("info --json")[1])["ffmpeg"] == str(tmp_path / "ffmpeg")
    (tmp_path / "ffmpeg").unlink()
    assert json.loads(command("info --json")[1])["ffmpeg"].startswith("not found")
