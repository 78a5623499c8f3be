"""What shells complete."""

import os
import shutil
import subprocess

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
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(command, here):
    (here / "script").write_text(command("completion bash")[1])
    lines = ["source ./script", 'try() { COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _dalembert; echo "${COMPREPLY[@]}"; }']
    files = ["dalembert run pendulum --plot ", "dalembert resume ", "dalembert resume pend"]
    for line in [*COMPLETIONS, *files]:
        words = " ".join(f"'{word}'" for word in line.split(" "))
        lines.append(f"COMP_WORDS=({words}); try")
    done = subprocess.run(["bash", "--norc", "-u", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    found = [set(words.split()) for words in done.stdout.split("\n")[:-1]]
    assert found == [*COMPLETIONS.values(), *(set() for _ in files)] and not done.stderr  # then bash offers files


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_completes(command, here):
    (here / "script").write_text(command("completion fish")[1])
    for line, expected in COMPLETIONS.items():
        asked = ["fish", "--no-config", "-c", f"source ./script; complete -C '{line}'"]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
        found = {text.partition("\t")[0] for text in done.stdout.splitlines()}
        assert expected <= found and not done.stderr, line
        assert all(word.startswith(line.split(" ")[-1]) for word in found - expected)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_takes_the_script(command, here):
    (here / "script").write_text(command("completion zsh")[1])
    done = subprocess.run(["zsh", "-f", "-c", "source ./script; print $_comps[dalembert]"], capture_output=True, text=True,
                          check=True, env=os.environ | {"HOME": str(here)})  # fmt: skip
    assert "_dalembert" in done.stdout and not done.stderr
