"""The parser, its help texts, and what the exit codes mean.

Each command is a module: its docstring is its help text, `add_arguments` states its options, `execute` carries it out.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

import dalembert
from dalembert.cli import (
    _bench,
    _cache,
    _completion,
    _explore_command,
    _info,
    _list,
    _reproduce_command,
    _resume,
    _run_command,
)
from dalembert.cli._user_code import UsageError
from dalembert.cli._wording import in_options
from dalembert.errors import DalembertError, InputError, ModelError, UnsupportedSystem, suggestion

RawText = argparse.RawDescriptionHelpFormatter
COMMANDS = {
    "list": _list,
    "run": _run_command,
    "explore": _explore_command,
    "resume": _resume,
    "reproduce": _reproduce_command,
    "bench": _bench,
    "info": _info,
    "cache": _cache,
    "completion": _completion,
}

INITIAL_VALUES = ("--q0", "--p0", "--v0", "--y0", "--z0", "--lam0")
DESCRIPTION = "Structure-preserving simulation of constrained mechanical systems."

EPILOG = """\
examples:
  dalembert run double_pendulum --plot double_pendulum.png
  dalembert run double_pendulum --set m2=3 --h 0.05 --steps 10000 --plot heavier.png
  dalembert explore double_pendulum     a page with sliders, in your browser
  dalembert list methods --for walls    what there is, for what
  dalembert reproduce                   the literature's experiments, and a report about them
  dalembert bench double_pendulum       what a step costs on this machine
  dalembert run --help                  every command explains itself, as in dalembert help run

exit codes:
  0    done; of reproduce: every claim holds
  1    a step, an experiment, a claim or a file failed
  2    the command cannot be carried out as it stands: standard error says why
  130  interrupted by Ctrl-C; what was computed until then is kept
"""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    commands: dict[str, argparse.ArgumentParser]
    """The parsers of the commands."""

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise UsageError(f"{message} (see {self.prog} --help)")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a word that is not one of a few, with the nearest one."""
        if action.choices is not None and value not in action.choices:
            words = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action, f"there is no {value!r}{suggestion(str(value), words)} (choose from {', '.join(words)})"
            )


def help_texts(command: ModuleType) -> tuple[str, str, str]:
    """A command's summary, description and examples, which are the docstring of its module."""
    summary, _, text = (command.__doc__ or "").partition(".\n\n")
    description, heading, examples = text.partition("examples:\n")
    return summary[:1].lower() + summary[1:], description, heading + examples


def build_parser() -> Parser:
    """The parser of all commands."""
    parser = Parser("dalembert", description=DESCRIPTION, epilog=EPILOG, formatter_class=RawText, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"dalembert {dalembert.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for name, module in COMMANDS.items():
        summary, description, examples = help_texts(module)
        command = commands.add_parser(
            name, help=summary, description=description, epilog=examples, formatter_class=RawText, allow_abbrev=False
        )
        module.add_arguments(command)
    commands.add_parser("help").add_argument("about", nargs="?", choices=list(COMMANDS))  # not listed, but completed
    parser.commands = dict(commands.choices)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command line and return its exit code.

    Example:
        >>> from dalembert.cli import main
        >>> main(["list", "methods"])  # doctest: +ELLIPSIS
        methods (--method NAME), ...
        0

    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _carry_out(arguments)
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except BrokenPipeError:  # the reader of our output has left, as in `dalembert list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (UsageError, InputError, ModelError, UnsupportedSystem) as error:
        _complain(in_options(str(error)))
        return 2
    except DalembertError as error:
        _complain(in_options(str(error)))
        return 1
    except MemoryError:
        _complain("there is not enough memory to store this run: give a larger --save-every, or --save-to")
        return 1


def _carry_out(arguments: list[str]) -> int:
    parser = build_parser()
    _completion.answer_shell(parser, parser.commands)
    if arguments[:1] == ["help"]:  # `dalembert help run` is `dalembert run --help`
        arguments = [*arguments[1:2], "--help"]
    _check_command(arguments)
    try:
        options, unknown = parser.parse_known_args(_join_negative_values(arguments))
    except SystemExit as leaving:  # --help and --version
        return int(leaving.code or 0)
    if unknown:
        hint = suggestion(unknown[0].partition("=")[0], parser.commands[options.command]._option_string_actions)
        raise UsageError(
            f"dalembert {options.command} does not know {unknown[0]!r}{hint} (see dalembert {options.command} --help)"
        )
    code = int(COMMANDS[options.command].execute(options))
    sys.stdout.flush()
    return code


def _check_command(arguments: list[str]) -> None:
    """Refuse an unknown command by name, with the nearest one."""
    first = arguments[0] if arguments else ""
    if not first:
        raise UsageError(f"say what to do: dalembert {', '.join(COMMANDS)} (see dalembert --help)")
    if not first.startswith("-") and first not in COMMANDS:
        raise UsageError(
            f"there is no command {first!r}{suggestion(first, [*COMMANDS, 'help'])} (the commands are {', '.join(COMMANDS)})"
        )


def _join_negative_values(arguments: list[str]) -> list[str]:
    """`--q0 -1,0` as `--q0=-1,0`: argparse would take a list that begins with a minus sign for an option."""
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] in INITIAL_VALUES and argument.startswith("-") and not argument.startswith("--"):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def _complain(message: object) -> None:
    print(f"dalembert: {message}", file=sys.stderr)
