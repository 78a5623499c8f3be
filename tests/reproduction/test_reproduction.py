"""Experiments run apart from each other, their results are kept, and an interrupted run goes on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dalembert as da
from dalembert import experiments
from dalembert.cli import _reproduce_command, main
from dalembert.experiments import Result, _registry
from dalembert.reproduction import load_experiments, reproduce
from dalembert.reproduction._processes import Schedule
from dalembert.reproduction._results import Store, fingerprint
from dalembert.reproduction._watcher import Progress, Watcher

HERE = Path(__file__).parent
NAMES = ("good", "many", "false", "nan", "failing", "dying", "last")


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """A copy of the toy experiments that may be changed, and what was started of it so far."""
    monkeypatch.setattr(_registry, "_registered", dict(_registry._registered))
    file = Path(shutil.copy(HERE / "toy_experiments.py", tmp_path))
    shutil.copy(HERE / "waiting_experiments.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOY_LOG", str(tmp_path / "log"))
    yield file
    sys.modules.pop("toy_experiments", None)


def started(toys):
    """What was computed since the last look, in alphabetical order."""
    log = toys.parent / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return sorted(line.rpartition(" ")[0] for line in lines)


def verdicts(out):
    return {result["name"].removeprefix("toy."): result["verdict"] for result in json.loads(out)["results"]}


def strictly(text):
    """JSON as every reader understands it, without NaN."""

    def refuse(word):
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


# -- whatever happens to one, the others go on ---------------------------------------------------------------------------


def test_failures_are_shown_and_stop_no_other(toys, capsys):
    code = main(["reproduce", "toy_experiments.py", "--json", "--jobs", "1", "--out", "report"])
    out, err = capsys.readouterr()
    answer = strictly(out)
    assert code == 1 and not err and answer["missing"] == []
    assert verdicts(out) == {
        "good": "holds", "many": "holds", "false": "does not hold", "nan": "does not hold", "failing": "failed",
        "dying": "failed", "last": "holds",
    }  # fmt: skip
    assert answer["counts"] == {"holds": 3, "does not hold": 2, "failed": 2, "not run": 0}
    by_name = {result["name"]: result for result in answer["results"]}
    assert by_name["toy.failing"]["error"].startswith("ValueError: no luck") and "in fail" in by_name["toy.failing"]["trace"]
    assert by_name["toy.dying"]["error"] == "its process was ended by SIGKILL, as happens when memory runs out"
    assert by_name["toy.nan"]["checks"][0]["value"] is None
    assert Path(answer["report"]).is_file() and all(Path(f).is_file() for r in answer["results"] for f in r["files"])
    assert started(toys) == sorted(NAMES)


def test_all_claims_that_hold_give_exit_code_zero(toys, capsys):
    code = main(["reproduce", "jay1996.figure5.6", "jay_simeon.figure4.1", "--out", "report", "--format", "pdf", "--verbose"])
    out = capsys.readouterr().out
    assert code == 0 and f"2 of 2 claims hold; the report is {Path('report/report.html')}" in out
    assert out.count("verdict: holds") == 2 and out.count("    ok  ") > 8 and "claim:   " in out
    assert {path.name for path in Path("report/figures").iterdir()} == {
        f"{name}.{kind}" for name in ("jay1996.figure5.6", "jay_simeon.figure4.1") for kind in ("png", "pdf")
    }


def test_a_document_stands_for_its_experiments(toys):
    names = load_experiments(toys)
    assert experiments.documents()["toy"] == names == [f"toy.{name}" for name in NAMES]
    assert _reproduce_command._chosen(["toy", "jay1996.figure5.6"]) == ([*names, "jay1996.figure5.6"], [])
    assert _reproduce_command._chosen(["toy_experiments.py"]) == (names, ["toy_experiments.py"])


# -- results are kept ----------------------------------------------------------------------------------------------------


def test_results_are_kept_until_something_changes(toys, capsys):
    file = toys.parent / "few_experiments.py"
    file.write_text("from toy_experiments import failing, false, good, many\n")

    def run(*options):
        assert main(["reproduce", "few_experiments.py", "--out", "report", "--json", "--jobs", "1", *options]) == 1
        return verdicts(capsys.readouterr().out)

    first = run()
    assert first == {"failing": "failed", "false": "does not hold", "good": "holds", "many": "holds"}
    assert started(toys) == ["failing", "false", "good", "many"]
    Path("report/figures/toy.good.png").unlink()
    Path("report/results/toy.many.json").write_text("half a fi")
    assert run() == first and started(toys) == ["failing", "good", "many"]  # what failed is tried again
    assert run("--full") == first and started(toys) == ["failing full", "false full", "good full", "many full"]
    assert Path("report/full/report.html").is_file()
    assert run() == first and started(toys) == ["failing"]  # untouched by the full run
    assert run("--again") == first and started(toys) == ["failing", "false", "good", "many"]
    toys.write_text(toys.read_text().replace('toy("false", value=4.0)', 'toy("false", value=1.0)'))
    sys.modules.pop("toy_experiments")
    assert run() == first | {"false": "holds"} and started(toys) == ["failing", "false", "good", "many"]


def test_a_fingerprint_depends_on_the_library_and_on_the_document(monkeypatch):
    from dalembert.reproduction import _results as _store

    jay, hilden = experiments.find("jay1996.figure5.1"), experiments.find("hilden2009.figure4.1")
    before = fingerprint(jay), fingerprint(hilden)
    partial = experiments.find("jay_simeon.figure4.1")  # its functions are partials of functions in the package
    assert any(path.name == "_shared.py" for path in _store._sources(partial))
    real = Path.read_bytes
    change = {"sphere.py": b"# changed"}
    monkeypatch.setattr(Path, "read_bytes", lambda path: change.get(path.name, b"") + real(path))
    assert fingerprint(jay) != before[0] and fingerprint(hilden) == before[1]
    change |= {"_trajectory.py": b"# changed"}
    _store._library.cache_clear()
    assert fingerprint(hilden) != before[1]
    change.clear()
    change |= {"_page.py": b"# changed", "_run.py": b""}
    _store._library.cache_clear()
    assert (fingerprint(jay), fingerprint(hilden)) == before
    _store._library.cache_clear()


def test_a_kept_result_is_what_was_computed(tmp_path):
    result = experiments.run("jay1996.figure5.6")
    store = Store(tmp_path, full=False)
    store.prepare()
    assert store.load(result.experiment, ()) is None
    store.keep(result)
    kept = store.load(result.experiment, ())
    assert store.load(result.experiment, ("png",)) is None  # its figure was not drawn
    assert kept.checks == result.checks and kept.seconds == result.seconds and kept.verdict == "holds"
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["jay1996.figure5.6.json"]  # nothing half written


# -- interruptions -------------------------------------------------------------------------------------------------------


def begin(toys, *options):
    (toys.parent / "wait").write_text("")
    environment = os.environ | {"TOY_WAIT": str(toys.parent / "wait"), "PYTHONPATH": str(Path(da.__file__).parents[1])}
    command = [sys.executable, "-m", "dalembert.cli", "reproduce", "waiting_experiments.py", "--jobs", "2", *options]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def process_of(toys, name):
    log = toys.parent / "log"
    found = [line.split()[-1] for line in (log.read_text().splitlines() if log.exists() else []) if line.startswith(name)]
    return int(found[-1]) if found else None


def alive(process):
    stat = Path(f"/proc/{process}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_ctrl_c_writes_the_report_and_the_same_command_goes_on(toys, capsys):
    running = begin(toys, "--out", "my report")
    wait_for(lambda: process_of(toys, "slow") and Path("my report/results/toy.quick.json").exists())
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130 and "Traceback" not in err
    assert "1 of 3 claims hold, 2 not run" in out
    assert err.strip().endswith("to go on: dalembert reproduce waiting_experiments.py --out 'my report' --jobs 2")
    index, page = (Path(f"my report/{name}.html").read_text() for name in ("report", "toy"))
    assert page.count('data-verdict="not run"') == 2 and 'data-kind="not run"><b>2</b>not run yet' in index
    wait_for(lambda: not alive(process_of(toys, "slow")))
    assert "quick" in started(toys)
    Path("wait").unlink()
    os.environ["TOY_WAIT"] = "wait"
    try:
        assert main(["reproduce", "waiting_experiments.py", "--out", "my report", "--jobs", "2"]) == 0
    finally:
        del os.environ["TOY_WAIT"]
    assert started(toys) == ["later", "slow"] and "1 results are in my report already" in capsys.readouterr().out


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_no_process_outlives_a_run_that_is_killed(toys):
    running = begin(toys, "--out", "report")
    wait_for(lambda: process_of(toys, "slow"))
    running.kill()
    running.communicate(timeout=60)
    wait_for(lambda: not alive(process_of(toys, "slow")))


# -- who does what, and for how long -------------------------------------------------------------------------------------


def test_a_worker_goes_on_with_the_module_that_it_began():
    spheres = [experiments.find(f"jay1996.figure5.{k}") for k in (1, 2, 3)]
    pendulums = [experiments.find(f"jay1996.figure5.{k}") for k in (5, 6)]
    schedule = Schedule([*spheres, *pendulums])
    assert schedule.take("a") == spheres[0] and schedule.take("b") == pendulums[0]
    assert schedule.take("a") == spheres[1] and schedule.take("b") == pendulums[1]
    assert schedule.take("b") == spheres[2]  # nothing of its own is left: it helps
    assert schedule.take("a") is None and schedule.take("b") is None


def test_what_is_timed_runs_last_and_beside_nothing_else():
    timed, other = (next(e for e in map(experiments.find, experiments.names()) if e.timed is kind) for kind in (True, False))
    schedule = Schedule([timed, other])
    assert schedule.take("a") == other and schedule.take("b") is None
    assert schedule.take("a") == timed and schedule.take("b") is None and schedule.take("a") is None


def test_the_time_left_is_that_of_the_last_time_or_the_mean():
    class Noted(Watcher):
        def finished(self, result, done, todo, seconds_left):
            told.append((done, todo, seconds_left))

    told = []
    first, *others = (experiments.find(f"jay1996.figure5.{k}") for k in (1, 2, 3, 4))
    assert Progress({other.name: None for other in others}, 2).seconds_left() is None
    progress = Progress({first.name: 100.0} | {other.name: None for other in others}, 2, Noted())
    assert progress.seconds_left() == (100 + 3 * 100) / 2
    for other in others:
        progress.start(other)
        progress.finish(Result(other, False, 70.0))
    # at the end, the second process cannot help
    assert told == [(1, 4, (100 + 70 + 70) / 2), (2, 4, 100.0), (3, 4, 100.0)]
    progress.start(first)
    assert 99 < progress.seconds_left() < 100


# -- refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["--jobs", "0"], "at least 1"),
        (["--jobs", "many"], "not a number"),
        (["nowhere.py"], "there is no file nowhere.py"),
        (["empty.py"], "defines no experiment"),
        (["wrong.py"], "wrong.py, line 2: ZeroDivisionError"),
        (["taken.py"], "there is an experiment named 'jay1996.figure5.6' already"),
        (["jay96"], "did you mean jay1996"),
        (["--out", "empty.py/below"], "cannot be made"),
        (["--verbose", "--json"], "not allowed with"),
    ],
)
def test_bad_usage_is_one_sentence(toys, capsys, line, message):
    Path("empty.py").write_text("x = 1\n")
    Path("wrong.py").write_text("x = 1\ny = x / 0\n")
    copy = "mine = dataclasses.replace(experiments.find('jay1996.figure5.6'), claim='Mine.')"
    Path("taken.py").write_text(f"import dataclasses\nfrom dalembert import experiments\n{copy}\n")
    assert main(["reproduce", *line]) == 2
    out, err = capsys.readouterr()
    assert message in err and len(err.strip().splitlines()) == 1 and not out


def test_the_function_refuses_what_the_command_does(tmp_path):
    with pytest.raises(da.InputError, match="at least one process"):
        reproduce(["jay1996.figure5.6"], out=tmp_path, jobs=0)
    with pytest.raises(da.InputError, match="did you mean"):
        reproduce(["jay1996.figure5.66"], out=tmp_path)
