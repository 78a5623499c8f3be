"""`dalembert completion`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from dalembert.cli._methods import makers
from dalembert.cli._models import catalogue

SUMMARY = "print a script that completes commands in your shell"

DESCRIPTION = """\
Print a script with which your shell completes commands, options and the names of problems, methods and experiments.
"""

EPILOG = """\
examples:
  dalembert completion bash > ~/.local/share/bash-completion/completions/dalembert
  dalembert completion fish > ~/.config/fish/completions/dalembert.fish
  dalembert completion zsh >> ~/.zshrc

Print it again after an update, for the names of what is new.
"""

SHELLS = ("bash", "zsh", "fish")

BASH = """\
# Completion of dalembert in bash.
_dalembert() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    if [[ $COMP_CWORD -eq 1 ]]; then
        words="{commands}"
    else
        case "$before" in
{values}
        {others}) ;;
        *) case "${{COMP_WORDS[1]}} $word" in
{options}
{arguments}
            esac ;;
        esac
    fi
    COMPREPLY=( $(compgen -W "$words" -- "$word") )
}}
complete -o default -F _dalembert dalembert
"""

ZSH_HEAD = """\
# Completion of dalembert in zsh, by way of its emulation of bash.
autoload -Uz compinit bashcompinit
whence compdef > /dev/null || compinit
bashcompinit
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert completion`."""
    parser.add_argument("shell", choices=SHELLS, metavar="bash|zsh|fish", help="your shell")


def execute(options: argparse.Namespace) -> int:
    """Print the script."""
    print({"bash": bash, "zsh": lambda: ZSH_HEAD + bash(), "fish": fish}[options.shell](), end="")
    return 0


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    from dalembert.cli._main import build_parser

    (group,) = (action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(group.choices)


def arguments(command: str) -> Sequence[str]:
    """What may follow a command besides its options."""
    from dalembert import experiments
    from dalembert.cli._list import KINDS

    return {
        "help": list(commands()),
        "list": KINDS,
        "run": list(catalogue()),
        "resume": list(catalogue()),
        "bench": list(catalogue()),
        "reproduce": [*experiments.documents(), *experiments.names()],
        "completion": SHELLS,
    }.get(command, ())


FILES_FIRST = {"resume": 1}
"""How many files come before what may follow a command."""


def values() -> dict[str, Sequence[str]]:
    """What may follow an option, if that is one of a few words."""
    found: dict[str, Sequence[str]] = {"--method": list(makers())}
    for parser in commands().values():
        for action in parser._actions:
            if action.choices and action.option_strings:
                found[action.option_strings[-1]] = list(action.choices)
    return found


def _taking_anything(parsers: Iterable[argparse.ArgumentParser]) -> list[str]:
    """The options after which comes a number or a file: nothing to offer but files."""
    return sorted({
        action.option_strings[-1]
        for parser in parsers
        for action in parser._actions
        if action.option_strings and action.nargs != 0 and action.option_strings[-1] not in values()
    })  # fmt: skip


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """The long options of a command."""
    return [name for action in parser._actions for name in action.option_strings if name.startswith("--")]


def bash() -> str:
    """The script for bash."""
    indent = 8 * " "
    known = commands()
    return BASH.format(
        commands=" ".join([*known, "help", "--help", "--version"]),
        values="\n".join(f'{indent}{option}) words="{" ".join(words)}" ;;' for option, words in values().items()),
        others="|".join(_taking_anything(known.values())),
        options="\n".join(f'{indent}"{name} -"*) words="{" ".join(options_of(parser))}" ;;' for name, parser in known.items()),
        arguments="\n".join(
            f'{indent}"{name} "*) {_unless_a_file(name)}words="{" ".join(arguments(name))}" ;;'
            for name in ("help", *known)
            if arguments(name)
        ),
    )


def _unless_a_file(command: str) -> str:
    """What asks bash whether the files that come first are there already."""
    return f"[[ $COMP_CWORD -le {1 + FILES_FIRST[command]} ]] || " if command in FILES_FIRST else ""


def fish() -> str:
    """The script for fish."""
    lines = [
        "# Completion of dalembert in fish.",
        "complete -c dalembert -n __fish_use_subcommand -f",
        "complete -c dalembert -n __fish_use_subcommand -f -a help -d 'explain a command'",
        f"complete -c dalembert -n '__fish_seen_subcommand_from help' -f -a '{' '.join(commands())}'",
    ]
    choices = values()
    for name, parser in commands().items():
        lines.append(f"complete -c dalembert -n __fish_use_subcommand -f -a {name} -d '{_summary(name)}'")
        here = f"-n '__fish_seen_subcommand_from {name}'"
        if arguments(name):
            there = f"; and test (count (commandline -opc)) -gt {1 + FILES_FIRST[name]}" if name in FILES_FIRST else ""
            lines.append(f"complete -c dalembert {here[:-1]}{there}' -a '{' '.join(arguments(name))}'")
        for action in parser._actions:
            for option in action.option_strings:
                if option.startswith("--"):
                    takes = "" if action.nargs == 0 else " -r"
                    words = f" -f -a '{' '.join(choices[option])}'" if option in choices else ""
                    text = (action.help or "").replace("%(default)s", str(action.default)).replace("'", r"\'")
                    lines.append(f"complete -c dalembert {here} -l {option[2:]}{takes}{words} -d '{text}'")
    return "\n".join(lines) + "\n"


def _summary(command: str) -> str:
    from dalembert.cli._main import COMMANDS

    return str(COMMANDS[command].SUMMARY).replace("'", r"\'")
