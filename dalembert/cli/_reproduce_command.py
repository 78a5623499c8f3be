"""Do experiments of the literature again and write a report.

Do experiments of the literature again: compute, draw, judge whether the claim holds here, and write a report.

EXPERIMENT is a name that `dalembert list experiments` shows, a document (jay1996 means all of its experiments), or a Python
file that defines experiments of your own; by default all of the library's but the benchmarks. They run in parallel, and each
ends as "holds", "does not hold" or "failed" without stopping the others. The report begins with DIR/report.html and has a page
for each document; the figures are in DIR/figures.

Results are kept in DIR as soon as they are there. The same command goes on with what is missing, for instance after Ctrl-C, or
with what has changed; what failed is tried again. Results of --full are kept apart, in DIR/full.

examples:
  dalembert reproduce                               everything, within minutes
  dalembert reproduce --full                        at the lengths of the documents
  dalembert reproduce jay1996.figure5.6 --verbose   one experiment, with its numbers
  dalembert reproduce jay1996 --format pdf          a document, with figures for print
  dalembert reproduce benchmarks --verbose          the field's benchmark problems beside other solvers, with tables
  dalembert reproduce benchmarks.car_axis           one of them
  dalembert reproduce mine.py --out mine            experiments of your own
  dalembert reproduce --json --again                verdicts for a program, everything computed afresh

exit codes: 0 every claim holds, 1 some claim does not hold or failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from dalembert.cli._json import as_json
from dalembert.cli._numbers import count
from dalembert.cli._user_code import UsageError, user_code
from dalembert.errors import suggestion

if TYPE_CHECKING:
    from dalembert.experiments import Result

COLUMN = {"holds": "holds        ", "does not hold": "DOES NOT HOLD", "failed": "FAILED       "}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert reproduce`."""
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="a name, a document, or mine.py; all by default")
    parser.add_argument("--full", action="store_true", help="take the time that a thorough answer needs")
    parser.add_argument("--out", metavar="DIR", default="out/report", help="where the report goes (default: %(default)s)")
    parser.add_argument("--again", action="store_true", help="compute everything afresh")
    parser.add_argument("--jobs", metavar="N", help="processes to use (default: one a processor)")
    parser.add_argument(
        "--format", choices=("png", "pdf", "svg"), action="append", default=[], help="write figures also so; may be repeated"
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--verbose", action="store_true", help="print claims and numbers, not verdicts only")
    output.add_argument("--json", action="store_true", help="print JSON only")


def execute(options: argparse.Namespace) -> int:
    """Run the experiments and write the report."""
    from dalembert.reproduction import reproduce

    jobs = count("--jobs", options.jobs, least=1)
    names, files = _chosen(options.experiments)
    watcher = Printer(sys.stderr if options.json else sys.stdout, options.verbose, quiet=options.json, out=options.out)
    report = reproduce(
        names,
        full=options.full,
        out=options.out,
        jobs=jobs,
        again=options.again,
        formats=options.format,
        files=files,
        command=_command(options),
        watcher=watcher,
    )
    watcher.clear()
    if options.json:
        answer = {
            "report": str(report.path),
            "counts": report.counts | {"not run": len(report.missing)},
            "results": [result.as_dict() for result in report.results],
            "missing": [experiment.name for experiment in report.missing],
        }
        print(as_json(answer))
    else:
        for result in report.results:
            if options.verbose and result.experiment.name not in watcher.printed:
                print(result, end="\n\n")
        print(_summary(report))
    if report.missing:
        done, total = len(report.results), len(report.results) + len(report.missing)
        print(
            f"dalembert: interrupted with {done} of {total} done; to go on: {_command(options, again=False)}", file=sys.stderr
        )
        return 130
    return 0 if report.all_hold else 1


def _chosen(given: list[str]) -> tuple[list[str] | None, list[str]]:
    """The names of the experiments that are meant, and the files that some of them are in."""
    from dalembert import experiments
    from dalembert.reproduction import load_experiments

    if not given:
        return None, []
    names: list[str] = []
    files = [text for text in given if text.endswith(".py")]
    loaded: dict[str, list[str]] = {}
    for file in files:
        if not Path(file).is_file():
            raise UsageError(f"there is no file {file}")
        with user_code(Path(file)):
            loaded[file] = load_experiments(file)
    documents = experiments.documents()
    for text in given:
        if text in loaded:
            names += loaded[text]
        elif text in experiments.names():
            names.append(text)
        elif text in documents:
            names += documents[text]
        else:
            near = suggestion(text, [*experiments.names(), *documents])
            raise UsageError(f"there is no experiment {text!r}{near} (see dalembert list experiments)")
    return names, files


def _command(options: argparse.Namespace, again: bool = True) -> str:
    """The command line, without what concerns the terminal only."""
    words = ["dalembert", "reproduce", *options.experiments]
    words += ["--full"] if options.full else []
    words += ["--out", options.out]
    words += ["--again"] if options.again and again else []
    words += ["--jobs", options.jobs] if options.jobs is not None else []
    words += [word for kind in options.format for word in ("--format", kind)]
    return shlex.join(words)


def _summary(report: Any) -> str:
    counts = report.counts
    held, total = counts["holds"], len(report.results) + len(report.missing)
    others = [f"{counts[verdict]} {words}" for verdict, words in (("does not hold", "do not"), ("failed", "failed"))
              if counts[verdict]]  # fmt: skip
    others += [f"{len(report.missing)} not run"] if report.missing else []
    against = sum(bool(result.holds and result.experiment.contradicts) for result in report.results)
    corrected = (
        f" ({against} of them against what {'its document says' if against == 1 else 'their documents say'})" if against else ""
    )
    return f"{held} of {total} claims hold{corrected}{''.join(f', {text}' for text in others)}; the report is {report.path}"


class Printer:
    """Says what is done, a line an experiment; on a terminal also what is going on."""

    def __init__(self, stream: TextIO, verbose: bool, quiet: bool, out: str) -> None:
        self._stream, self._verbose, self._quiet, self._out = stream, verbose, quiet, out
        self._status = sys.stderr.isatty()
        self.printed: set[str] = set()

    def begins(self, todo: int, stored: int, jobs: int) -> None:
        """Say what there is to do."""
        if self._quiet and not self._status:
            return
        kept = f"{stored} results are in {self._out} already (--again computes them afresh); " if stored else ""
        processes = f"{min(jobs, todo)} process{'' if min(jobs, todo) == 1 else 'es'}"
        print(f"{kept}{todo} experiment{'' if todo == 1 else 's'} to run in {processes}", file=self._stream, flush=True)

    def finished(self, result: Result, done: int, todo: int, seconds_left: float) -> None:
        """Say how one ended."""
        self.clear()
        self.printed.add(result.experiment.name)
        if self._quiet and not self._status:
            return
        left = f"   {_about(seconds_left)} left" if done < todo else ""
        head = (
            f"{done:>{len(str(todo))}}/{todo}  {COLUMN[result.verdict]}  {result.experiment.name:<32} {result.seconds:6.1f} s"
        )
        print(f"{head}{left}", file=self._stream, flush=True)
        if self._verbose or (not result.holds and not self._quiet):
            print(result, end="\n\n", file=self._stream, flush=True)

    def waits(self, running: dict[str, float], done: int, todo: int, seconds_left: float | None) -> None:
        """Say what is running."""
        if self._status:
            names = ", ".join(f"{name} ({taken:.0f} s)" for name, taken in running.items())
            left = "" if seconds_left is None else f"{_about(seconds_left)} left, "
            line = f"{done} of {todo} done, {left}running {names}"
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{line[:width]}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Wipe the line that says what is running."""
        if self._status:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _about(seconds: float) -> str:
    """A rough length of time.

    Example:
        >>> _about(3.2), _about(47), _about(400)
        ('a few seconds', 'about 50 s', 'about 7 min')

    """
    if seconds < 10:
        return "a few seconds"
    return f"about {10 * round(seconds / 10)} s" if seconds < 95 else f"about {round(seconds / 60)} min"
