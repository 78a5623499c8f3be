"""What shells complete."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dalembert as da
from dalembert import experiments
from dalembert.cli._main import COMMANDS


def catalogued(start):
    return {name for name in da.problems.__all__ if name.startswith(start)}


COMPLETIONS = {
    "dalembert re": {name for name in COMMANDS if name.startswith("re")},
    "dalembert h": {"help"},
    "dalembert help ru": {"run"},
    "dalembert run double_pend": catalogued("double_pend"),
    "dalembert resume run.zarr pend": catalogued("pend"),
    "dalembert resume run.zarr pendulum --method MCVA": {"MCVA", "MCVAA", "MCVAC"},
    "dalembert run pendulum --method Lobatto": {"LobattoGalerkin", "LobattoIIIAB", "LobattoIIIC", "LobattoSPARK"},
    "dalembert reproduce small": {"small_jay2011", *(n for n in experiments.names() if n.startswith("small_jay2011."))},
    "dalembert reproduce --f": {"--full", "--format"},
    "dalembert reproduce --format p": {"png", "pdf"},
    "dalembert bench heavy_t": catalogued("heavy_t"),
    "dalembert completion ": {"bash", "zsh", "fish"},
    "dalembert list p": {"problems"},
    "dalembert run pendulum --plot ": {"mymodel.py", "notes.txt"},
    "dalembert resume ": {"mymodel.py", "notes.txt"},
    "dalembert resume pend": set(),
    "dalembert run my": {"mymodel.py"},
    "dalembert run notes": set(),
}
IN_SHELLS = ("dalembert run double_pend", "dalembert resume run.zarr pendulum --method MCVA", "dalembert run my")
"""What the shells themselves are asked: each answer takes a process of its own."""


@pytest.fixture
def directory(here, monkeypatch):
    """A directory with two files, and with the command on the way to programs."""
    programs = here / "programs"
    programs.mkdir()
    (here / "notes.txt").write_text("")
    (programs / "dalembert").write_text(f'#!/bin/sh\nexec {sys.executable} -m dalembert.cli "$@"\n')
    (programs / "dalembert").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(da.__file__).parents[1]))
    return here


ASK = """
import os, sys
from dalembert import _public, experiments
from dalembert.cli import main
os.dup2(1, 8), os.dup2(2, 9)
for line in sys.argv[1:]:
    if os.fork() == 0:
        os.environ |= {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": " "}
        main([])
    os.wait()
    os.write(8, b"\\n")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_answers_to_shells(directory):
    shutil.rmtree(directory / "programs")
    done = subprocess.run([sys.executable, "-c", ASK, *COMPLETIONS], capture_output=True, text=True, check=True)
    found = [set(answer.split()) for answer in done.stdout.split("\n")[:-1]]
    assert dict(zip(COMPLETIONS, found, strict=True)) == COMPLETIONS and not done.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(command, directory):
    (directory / "script").write_text(command("completion bash")[1])
    lines = ["source ./script", "try() { COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9; _python_argcomplete dalembert; }"]
    lines += [f"try '{line}'; echo ${{COMPREPLY[@]}}" for line in IN_SHELLS]
    done = subprocess.run(["bash", "--norc", "-u", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    found = [set(words.split()) for words in done.stdout.splitlines()]
    assert found == [COMPLETIONS[line] for line in IN_SHELLS] and not done.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_completes(command, directory):
    (directory / "script").write_text(command("completion fish")[1])
    for line in IN_SHELLS:
        asked = ["fish", "--no-config", "-c", f"source ./script; complete -C '{line}'"]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
        assert {text.partition("\t")[0].strip() for text in done.stdout.splitlines()} == COMPLETIONS[line] and not done.stderr


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_takes_the_script(command, here):
    (here / "script").write_text(command("completion zsh")[1])
    done = subprocess.run(["zsh", "-f", "-c", "source ./script; print $_comps[dalembert]"], capture_output=True, text=True,
                          check=True, env=os.environ | {"HOME": str(here)})  # fmt: skip
    assert "_python_argcomplete" in done.stdout and not done.stderr
