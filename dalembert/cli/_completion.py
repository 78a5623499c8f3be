"""Print a script that completes commands in your shell.

Print a script with which your shell completes commands, options and the names of problems, methods and experiments.

examples:
  dalembert completion bash > ~/.local/share/bash-completion/completions/dalembert
  dalembert completion fish > ~/.config/fish/completions/dalembert.fish
  dalembert completion zsh >> ~/.zshrc
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any

from dalembert.cli._methods import makers
from dalembert.cli._models import catalogue

ZSH_HEAD = """\
autoload -Uz compinit
whence compdef > /dev/null || compinit
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `dalembert completion`."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="bash|zsh|fish", help="your shell")


def execute(options: argparse.Namespace) -> int:
    """Print the script."""
    import argcomplete

    script = argcomplete.shellcode(["dalembert"], shell=options.shell)
    print(ZSH_HEAD + script if options.shell == "zsh" else script, end="")
    return 0


def _python_files(prefix: str) -> list[str]:
    import argcomplete

    return list(argcomplete.FilesCompleter(("py",))(prefix))


def _problems(prefix: str, **_: Any) -> list[str]:
    return [*catalogue(), *_python_files(prefix)]


def _methods(prefix: str, **_: Any) -> list[str]:
    return list(makers())


def _experiments(prefix: str, **_: Any) -> list[str]:
    from dalembert import experiments

    return [*experiments.documents(), *experiments.names(), *_python_files(prefix)]


COMPLETERS = {"problem": _problems, "problems": _problems, "method": _methods, "experiments": _experiments}
"""What may stand for an argument, by its name, besides the choices that the parser knows and files."""


def answer_shell(parser: argparse.ArgumentParser, commands: Mapping[str, argparse.ArgumentParser]) -> None:
    """If a shell asks what may come next, answer and leave; argcomplete is loaded only then."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete

    for command in commands.values():
        for action in command._actions:
            if action.dest in COMPLETERS:
                vars(action)["completer"] = COMPLETERS[action.dest]  # where argcomplete looks for it
    argcomplete.autocomplete(parser, always_complete_options=False)
