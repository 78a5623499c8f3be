"""The package: its metadata agree, nothing is missing from what is built, and what is built works in an empty environment."""

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import dalembert

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def rules():
    """Targets of the Makefile with what they need and their commands."""
    found = re.findall(r"^([^\s:#=]+):(?!=) *(.*)\n((?:\t.*\n)*)", MAKEFILE.replace("$(READY)", "ready"), re.MULTILINE)
    return {target: (needs.split(), commands) for target, needs, commands in found}


def test_one_version_everywhere():
    version = dalembert.__version__
    assert SETTINGS["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "dalembert._version.__version__"}
    assert f"\nversion: {version}\n" in text_of("CITATION.cff")
    assert re.search(r"^## (\S+)", text_of("CHANGELOG.md"), re.MULTILINE)[1] == version


def test_one_licence_everywhere():
    assert SETTINGS["project"]["license"] == "BSD-3-Clause" and "\nlicense: BSD-3-Clause\n" in text_of("CITATION.cff")
    assert text_of("LICENSE").startswith("BSD 3-Clause License\n") and "the dalembert developers" in text_of("LICENSE")
    assert not [name for name in SETTINGS["project"]["classifiers"] if name.startswith("License")]  # PEP 639 forbids both


def test_every_file_that_is_no_module_is_packed():
    packed = SETTINGS["tool"]["setuptools"]["package-data"]
    package = ROOT / "dalembert"
    found = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    others = [path for path in found if path.suffix != ".py"]
    assert package / "py.typed" in others
    for path in others:
        owner = next(folder for folder in path.parents if (folder / "__init__.py").is_file())  # the package that has it
        folder = ".".join(owner.relative_to(ROOT).parts)
        assert any(path.match(pattern) for pattern in packed.get(folder, ())), f"{path.relative_to(ROOT)} is not in the wheel"


def test_running_installs_nothing_for_tests_lint_or_documentation():
    targets = rules()
    assert targets["run"][0] == ["setup"] and targets["setup"][0] == ["ready"]
    assert '$(INSTALL) ".[sundials]"\n' in targets["ready"][1]  # IDA, the peer of hilden2009.table4.1, and nothing more
    for target, extra in {"test": "test", "lint": "lint", "docs": "docs", "bench-peers": "bench"}.items():
        (needed,) = targets[target][0]
        assert needed == f"ready-{extra}" and f"[{extra}" in targets[needed][1]


def test_every_installation_is_editable():
    """One that is not would replace the clone by a copy, and later changes would have no effect."""
    installed = re.findall(r"pip install .*|\$\(INSTALL\) .*", MAKEFILE)
    assert len(installed) > 4
    for line in installed:
        assert line.startswith("$(INSTALL)") or "--editable" in line or line.endswith("--upgrade pip"), line


# -- built, and tried in an empty environment ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the source distribution; the wheel is built from the latter, as users of it would."""
    pytest.importorskip("build")
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)], check=True, capture_output=True)
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, source


@pytest.mark.slow
def test_wheel_and_source_distribution_have_what_belongs_to_them(built):
    wheel, source = built
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = email.message_from_bytes(archive.read(next(name for name in names if name.endswith("/METADATA"))))
    assert metadata["License-Expression"] == "BSD-3-Clause" and metadata["Version"] == dalembert.__version__
    assert not [name for name in names if not name.startswith("dalembert")]  # no tests, no documentation
    assert {"dalembert/py.typed", "dalembert/reproduction/report.html"} <= set(names)
    with tarfile.open(source) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "CITATION.cff", "docs/getting-started.md", "tests/conftest.py", "dalembert/py.typed"} <= members


@pytest.mark.slow
def test_the_wheel_runs_the_lines_of_the_readme_in_an_empty_environment(built, tmp_path):
    example = re.findall(r"^```python\n(.*?)^```$", text_of("README.md"), re.MULTILINE | re.DOTALL)[0]
    venv.create(tmp_path / "empty", with_pip=True)
    python = tmp_path / "empty" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(built[0])], check=True, env=environment, cwd=tmp_path)
    (tmp_path / "example.py").write_text(example, encoding="utf-8")
    done = subprocess.run(
        [python, "example.py"], cwd=tmp_path, env=environment | {"HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    described, residual, energy_range = done.stdout.strip().rsplit(" ", 2)
    assert "10001 states" in described and float(residual) < 1e-14 and 0 < float(energy_range) < 1e-5
    assert (tmp_path / "pendulum.png").read_bytes().startswith(b"\x89PNG")
    version = subprocess.run(
        [tmp_path / "empty" / "bin" / "dalembert", "--version"], capture_output=True, text=True, check=True
    )
    assert version.stdout.strip() == f"dalembert {dalembert.__version__}"
