"""Every code block of README.md and docs/ runs, every measured number is measured again."""

import itertools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.cli import main
from dalembert.experiments import _registry

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return [(match[1], match[2].strip(), match[3]) for match in FENCE.finditer(page.read_text(encoding="utf-8"))]


def table(page, heading):
    """The rows of the first table after a heading or sentence, as lists of cells."""
    text = page.read_text(encoding="utf-8").partition(heading)[2]
    rows = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)[0].splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def is_known(command):
    """Whether a command that this test does not run is one of a few, and names something that exists."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    match command:
        case ["cd", "dalembert"] | [".", ".venv/bin/activate"] | ["git", "clone", _] | ["pip", "install", *_]:
            return True
        case ["make", target]:
            return f"\n{target}: " in makefile
        case ["python", script, *_]:
            return script.startswith("benchmarks/") and (ROOT / script).is_file()
    return False


# -- code ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_runs_as_one_session_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    """Experiments that pages name are reproduced in tests/experiments; one page, on how that is done, reproduces its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_registry, "_registered", dict(_registry._registered))  # a page may add experiments
    monkeypatch.setattr("dalembert.explorer._server.Server.run", lambda server: server._listener.close())
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    names = {"__name__": "__documentation__"}
    for language, option, code in blocks(page):
        if language == "python" and option.startswith("file="):
            (tmp_path / option.removeprefix("file=")).write_text(code)
        elif language == "python":
            exec(compile(code, str(page), "exec"), names)
        elif language == "sh":
            for line in code.splitlines():
                command = shlex.split(line, comments=True)
                if command[:2] == ["dalembert", "reproduce"] and page.name != "reproducing.md":
                    assert all(map(_registry.find, itertools.takewhile(lambda word: word != "--out", command[2:])))
                elif command and command[0] in ("dalembert", ".venv/bin/dalembert"):
                    assert main(command[1:]) == 0, f"{line}: {capsys.readouterr().err}"
                elif command:
                    assert is_known(command), f"{page.name}: {line} is neither run nor known to this test"


def test_every_block_has_a_language_that_this_test_runs():
    for page in PAGES:
        if page.name == "performance.md":  # written by the benchmarks
            continue
        for language, _, _ in blocks(page):
            assert language in ("python", "sh"), f"{page.name} has a block in {language!r}"


def test_commands_stand_in_blocks_of_their_own():
    for page in PAGES:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        found = re.findall(r"^(?: {4,}|\t)(?:\.venv/bin/)?(?:dalembert|make|pip|python|git|cd)\b.*$", text, re.MULTILINE)
        assert not found, f"{page.name} has commands that no test sees: write them between ```sh and ```"


@pytest.mark.parametrize("line", ["curl example.org", "make nothing", "python benchmarks/none.py", "git push", "cd /"])
def test_other_programs_are_not_passed_over(line):
    assert not is_known(line.split())


def test_readme_has_its_ten_line_example_its_picture_and_its_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    example, mechanism = (code for language, _, code in blocks(ROOT / "README.md") if language == "python")
    assert "da.Mechanism(" in mechanism
    assert len([line for line in example.splitlines() if line.strip()]) <= 10
    assert "make run" in text and "make test" in text
    picture = DOCS / "images" / "double_pendulum.png"
    assert "docs/images/double_pendulum.png" in text and picture.stat().st_size < 200_000


@pytest.mark.parametrize("page", ["README.md", "docs/getting-started.md"])
def test_three_commands_lead_from_a_clone_to_a_picture_of_ones_own_double_pendulum(page, tmp_path):
    commands = next(code for language, _, code in blocks(ROOT / page) if language == "sh").splitlines()
    assert commands[:2] == ["cd dalembert", "make setup"] and len(commands) == 3
    makefile, settings = ((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "pyproject.toml"))
    assert "\nsetup: " in makefile and "VENV := .venv\n" in makefile and 'dalembert = "dalembert.cli:main"' in settings
    program, *arguments = shlex.split(commands[2])
    assert program == ".venv/bin/dalembert" and "m1=2" in arguments and "m2=0.5" in arguments
    command = [sys.executable, "-m", "dalembert.cli", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine.png").read_bytes().startswith(b"\x89PNG")


def test_the_numbers_under_the_picture():
    run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), h=0.12, steps=5000)
    energy = run.energy - run.energy[0]
    assert np.abs(energy).max() < 1e-5
    assert abs(da.verify.drift(energy, run.t).slope) * 600 < 1e-2 * np.abs(energy).max()
    assert max(np.abs(values).max() for values in run.residuals.values()) < 1e-15


# -- the tables of lobatto.md --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", table(DOCS / "lobatto.md", "Slopes of the errors"), ids=lambda row: f"s={row[0]}")
def test_orders_on_the_page_are_what_is_measured(row):
    stages, promised, steps, *slopes = row
    method = da.LobattoIIIAB(stages=int(stages))
    assert method.order["q"] == int(promised)
    counts = [int(n) for n in steps.split(",")]
    study = da.verify.order(
        da.problems.double_pendulum(), method, t1=5.0, steps=counts, reference=(da.LobattoIIIAB(stages=8), 200)
    )
    for name, printed in zip(("q", "p", "lam"), slopes, strict=True):
        assert study.used[name].sum() == 3 and study.slopes[name] == pytest.approx(float(printed), abs=0.02)


@pytest.mark.parametrize("row", table(DOCS / "lobatto.md", "A run of 5000 steps"), ids=lambda row: f"s={row[0]}")
def test_long_runs_on_the_page_are_what_is_measured(row):
    method, problem = da.LobattoIIIAB(stages=int(row[0])), da.problems.double_pendulum()
    run = da.simulate(problem, method, h=0.12, steps=5000)
    error = np.abs(run.energy - run.energy[0]).max()
    assert error == pytest.approx(float(row[1]), rel=0.06)
    measured = [
        abs(da.verify.drift(run.energy, run.t).slope) * 600 / error,
        np.abs(run.residuals["g"]).max(),
        np.abs(run.residuals["g_dot"]).max(),
        da.verify.symplecticity_defect(problem, method, h=0.12),
        da.verify.reversibility_defect(problem, method, h=0.12),
    ]
    for value, bound in zip(measured, row[2:], strict=True):
        assert value < float(bound.removeprefix("<"))


# -- the table of multipliers-and-friction.md ----------------------------------------------------------------------------


@pytest.mark.parametrize("row", table(DOCS / "multipliers-and-friction.md", "Slopes of the errors"), ids=lambda row: row[0])
def test_orders_with_a_nonlinear_multiplier_are_what_is_measured(row):
    method, counts, *slopes = row
    problem = da.problems.nonlinear_multiplier()
    study = da.verify.order(
        problem, eval(method.strip("`"), {"da": da}), t1=1.0, steps=[int(n) for n in counts.split(",")], reference=problem.exact
    )
    for name, printed in zip(("y", "z", "lam"), slopes, strict=True):
        if printed != "-":
            assert study.used[name].sum() == 3 and study.slopes[name] == pytest.approx(float(printed), abs=0.02)


# -- the table of index-two.md -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", table(DOCS / "index-two.md", "Slopes of the errors"), ids=lambda row: f"{row[0]} {row[1]}")
def test_orders_for_index_two_are_what_is_measured(row):
    name, method, counts, promised, *slopes = row
    sleigh = da.problems.chaplygin_sleigh(speed=0.5, turning=0.7)
    growth = da.problems.index_two_growth()
    problem, t1, reference, components = {
        "sleigh": (sleigh, 3.0, (da.SRK("gauss", stages=4), 600), ("q", "p")),
        "(2.28)": (growth, 1.0, growth.exact, ("y", "z")),
    }[name]
    steps = [int(n) for n in counts.split(",")]
    study = da.verify.order(problem, eval(method.strip("`"), {"da": da}), t1=t1, steps=steps, reference=reference)
    for component, printed in zip(components, slopes, strict=True):
        assert study.used[component].sum() == 3 and study.slopes[component] == pytest.approx(float(printed), abs=0.02)
        assert abs(float(printed) - int(promised)) < 0.1


# -- mathematics ---------------------------------------------------------------------------------------------------------

GREEK = "alpha|beta|delta|epsilon|eta|lam|lambda|Lambda|mu|omega|phi|psi|Psi|tau|theta|Xi"
PLAIN = re.compile(
    rf"\w\^|\b[A-Za-z]{{1,3}}_[A-Za-z0-9]|\b(?:{GREEK})\b(?!-)|\b(?:sqrt|sum|grad|det)\(|\b\w'(?:'| =)|<=|>=|\b[A-Za-z]~"
)
"""What mathematics looks like that was not typeset: `q_0`, `h^2`, lam, sqrt(...), y' =, <=."""


def prose(text):
    """A page without its code, its formulas, the targets of its links, its comments and its pictures."""
    text = re.sub(r"^```.*?^```$|^ *\$\$.*?^ *\$\$$|<!--.*?-->|^ {4,}\S.*?$|^#.*?$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`|\$[^$]*\$|!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|<[^>\n]*>", "", text)


MEASURED = ("performance.md", "benchmarks.md")
"""Pages that are written by commands, from reports."""


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in MEASURED], ids=lambda page: page.name)
def test_mathematics_in_the_text_is_typeset(page):
    lines = prose(page.read_text(encoding="utf-8")).splitlines()
    found = [f"{match[0]} in: {line}" for line in lines if (match := PLAIN.search(line))]
    assert not found, "write it between dollars"


@pytest.mark.parametrize("text", ["from q_0 on", "of h^2", "where lam is", "y' = v", "sqrt(eps) h", "phi >= 0", "H~ is"])
def test_plain_mathematics_would_be_found(text):
    assert PLAIN.search(prose(text)) and not PLAIN.search(prose(f"`{text}` and ${text}$"))
