"""The API reference: every public name of dalembert with its signature and docstring, as pages of HTML.

`pages()` reads `dalembert.__all__` and the public modules, so that a new name is on the site without being listed anywhere.
Docstrings are plain text: indented lines are mathematics or code and stay as they are.
"""

from __future__ import annotations

import argparse
import ast
import enum
import html
import importlib
import inspect
import itertools
import os
import pkgutil
import re
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from docstrings import code, docstring, inline

import dalembert as da

MODULES = ("systems", "forces", "mechanisms", "tableaux", "schemes", "verify", "problems", "plot", "experiments", "errors")


@dataclass(frozen=True)
class Group:
    """A page of the reference: what is defined in these modules, and how the page begins."""

    page: str
    title: str
    modules: tuple[str, ...]
    opening: str


GROUPS = (
    Group(
        "reference-systems",
        "Systems",
        ("systems", "forces", "runs._index_reduction"),
        "What must hold: Lagrangians, Hamiltonians, DAEs, and states that satisfy their constraints.",
    ),
    Group(
        "reference-mechanisms",
        "Mechanisms",
        ("mechanisms",),
        'Bodies and joints that make up a system; the page <a href="mechanisms.html">Bodies and joints</a> shows them at work.',
    ),
    Group(
        "reference-simulation",
        "Simulation",
        ("runs", "contact._records", "compiler"),
        "Running a method on a system, one trajectory or thousands, and what a run holds.",
    ),
    Group(
        "reference-methods",
        "Methods",
        ("methods", "contact"),
        "Every method by its name in the literature. What each of them was measured to do is on the page "
        '<a href="choosing.html">Which method for which problem</a>.',
    ),
    Group(
        "reference-coefficients",
        "Tableaux and schemes",
        ("tableaux", "schemes"),
        "Coefficients of Runge-Kutta methods, the conditions that they satisfy, and composition schemes.",
    ),
    Group(
        "reference-analysis",
        "Verification and analysis",
        ("verify", "modified", "_fits"),
        "Measuring what a method promises, discrete mechanics and modified Hamiltonians.",
    ),
    Group("reference-problems", "Problems", ("problems",), "The catalogue: systems of the literature, ready to run."),
    Group("reference-pictures", "Figures", ("plot", "draw"), "Figures of runs and of convergence studies."),
    Group("reference-experiments", "Experiments", ("experiments", "reproduction"), "The literature's experiments, done again."),
    Group("reference-errors", "Errors", ("errors",), "Everything that dalembert raises on purpose."),
)
OTHER = Group("reference-other", "Other names", (), "Public names that belong to none of the other pages.")


@dataclass(frozen=True)
class Entry:
    """A public name and what it stands for."""

    name: str
    value: object

    @property
    def text(self) -> str:
        """Its docstring; of an alias of a type, which has none, the string beneath it in the source."""
        return inspect.getdoc(self.value) or _beneath(self.name)

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return self.text.partition("\n")[0]


@dataclass(frozen=True)
class ReferencePage:
    """A page of the reference, without links between pages resolved."""

    name: str
    title: str
    body: str
    anchors: tuple[str, ...]


def public_modules() -> dict[str, types.ModuleType]:
    """The public modules by their names."""
    names = {*MODULES, *(name for name in da.__all__ if isinstance(getattr(da, name), types.ModuleType))}
    return {name: getattr(da, name, None) or importlib.import_module(f"dalembert.{name}") for name in sorted(names)}


def public_names() -> list[Entry]:
    """Every public name once: those of dalembert itself, then those of its modules that are not among them."""
    entries = [Entry(f"da.{name}", getattr(da, name)) for name in da.__all__]
    entries = [entry for entry in entries if not isinstance(entry.value, types.ModuleType)]
    known = {id(entry.value) for entry in entries}
    for module_name, module in public_modules().items():
        listed = getattr(module, "__all__", None) or [name for name, _ in inspect.getmembers(module, inspect.isclass)]
        for name in listed:
            value = getattr(module, name)
            if not (name.startswith("_") or isinstance(value, types.ModuleType) or id(value) in known):
                known.add(id(value))
                entries.append(Entry(f"da.{module_name}.{name}", value))
    return entries


def _beneath(name: str) -> str:
    """The string that stands beneath the assignment of a name, in the module that it is exported from or in a part of it."""
    path, _, alias = name.rpartition(".")
    module = public_modules()[path.removeprefix("da.")] if "." in path else da
    parts = [f"{module.__name__}.{part.name}" for part in pkgutil.iter_modules(getattr(module, "__path__", ()))]
    for part in (module.__name__, *parts):
        statements = ast.parse(inspect.getsource(importlib.import_module(part))).body
        for first, second in itertools.pairwise(statements):
            targets = first.targets if isinstance(first, ast.Assign) else ()
            named = any(isinstance(target, ast.Name) and target.id == alias for target in targets)
            if named and isinstance(second, ast.Expr) and isinstance(second.value, ast.Constant):
                return inspect.cleandoc(str(second.value.value))
    return ""


def group_of(entry: Entry) -> Group:
    """The page that an entry belongs to, by the module that it is exported from or defined in."""
    exported = ".".join(entry.name.split(".")[1:-1])
    place = exported or getattr(entry.value, "__module__", "").removeprefix("dalembert.")
    found = [(module, group) for group in GROUPS for module in group.modules if f"{place}.".startswith(f"{module}.")]
    return max(found, key=lambda pair: len(pair[0]), default=("", OTHER))[1]


def pages() -> list[ReferencePage]:
    """The pages of the reference, in order; a page without names is left out."""
    entries = public_names()
    made = []
    for group in (*GROUPS, OTHER):
        mine = sorted((entry for entry in entries if group_of(entry) is group), key=lambda entry: entry.name.lower())
        if mine:
            made.append(_page(group, mine))
    return [*made, command_line()]


def command_line() -> ReferencePage:
    """The help texts of the command, one section a subcommand."""
    from dalembert.cli._main import COMMANDS, build_parser

    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"  # argparse breaks its lines by it
    try:
        parser = build_parser()
        subparsers = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        texts = {name: subparsers.choices[name].format_help() for name in COMMANDS}
        parts = ["<h1>Command line</h1>", code(parser.format_help().rstrip(), "")]
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    for name, text in texts.items():
        parts.append(f'<h2 id="dalembert-{name}"><code>dalembert {name}</code></h2>\n{code(text.rstrip(), "")}')
    return ReferencePage("reference-command", "Command line", "\n".join(parts), tuple(f"dalembert-{name}" for name in texts))


def _page(group: Group, entries: list[Entry]) -> ReferencePage:
    rows = "\n".join(
        f'<tr><td><a href="#{e.name}"><code>{e.name}</code></a></td><td>{inline(e.summary)}</td></tr>' for e in entries
    )
    sections = "\n".join(_section(entry) for entry in entries)
    listed = f'<div class="table"><table class="names">{rows}</table></div>'
    body = f"<h1>{group.title}</h1>\n<p>{group.opening}</p>\n{listed}\n{sections}"
    return ReferencePage(group.page, group.title, body, tuple(re.findall(r'id="([^"]+)"', body)))


# -- one entry -----------------------------------------------------------------------------------------------------------


def _section(entry: Entry) -> str:
    kind = "class " if inspect.isclass(entry.value) else ""
    parts = [
        f'<section class="entry"><h2 id="{entry.name}"><code>{entry.name}</code></h2>',
        code(kind + signature(entry.name, entry.value), "python"),
        docstring(entry.text),
    ]
    if inspect.isclass(entry.value):
        parts += [_claims(entry.value), *(_member(entry.name, *member) for member in members(entry.value))]
    return "\n".join([*parts, "</section>"])


def _claims(value: type) -> str:
    reference = vars(value).get("reference")
    return f'<p class="source">Reference: {html.escape(reference)}</p>' if isinstance(reference, str) else ""


def members(value: type) -> Iterator[tuple[str, object]]:
    """The public methods and properties that a class defines itself; of a method's class, those that no method has to have.

    What `da.Mechanism` takes from the classes that add its parts counts as its own.
    """
    inherited = set(dir(da.OneStepMethod)) if issubclass(value, da.OneStepMethod) and value is not da.OneStepMethod else set()
    parts = [base for base in value.__mro__ if value is da.Mechanism and base.__name__.startswith("With")]
    for name, member in {k: v for base in (*reversed(parts), value) for k, v in vars(base).items()}.items():
        documented = isinstance(member, (property, classmethod, staticmethod, types.FunctionType))
        if documented and not name.startswith("_") and name not in inherited:
            yield name, member


def _member(owner: str, name: str, member: object) -> str:
    anchor = f"{owner}.{name}"
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    shown = name if isinstance(member, property) else signature(name, function, bound=not isinstance(member, staticmethod))
    returns = inspect.signature(function).return_annotation if isinstance(member, property) else inspect.Signature.empty
    shown += "" if returns is inspect.Signature.empty else f": {_annotation(returns)}"
    text = docstring(inspect.getdoc(function) or "")
    return f'<div class="member"><h3 id="{anchor}"><code>{html.escape(name)}</code></h3>{code(shown, "python")}{text}</div>'


def signature(name: str, value: object, bound: bool = False) -> str:
    """`name(a: int, *, b: float = 1.0) -> C`, a line for each parameter where it is long."""
    if inspect.isclass(value) and issubclass(value, (Exception, enum.Enum)):
        return name
    try:
        described = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return name
    given = list(described.parameters.values())[1 if bound else 0 :]
    parameters, star = [], False
    for parameter in given:
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parameters.append("*")
        star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        parameters.append(_parameter(parameter))
    returns = "" if described.return_annotation in (described.empty, None, "None") else described.return_annotation
    end = f" -> {_annotation(returns)}" if returns and not inspect.isclass(value) else ""
    line = f"{name}({', '.join(parameters)}){end}"
    return line if len(line) < 96 else "{}(\n    {},\n){}".format(name, ",\n    ".join(parameters), end)


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    typed = "" if parameter.annotation is parameter.empty else f": {_annotation(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return f"{stars}{parameter.name}{typed}"
    default = parameter.default
    shown = getattr(default, "__name__", None) or repr(default)
    shown = "..." if shown.startswith("<") else shown  # such as a dataclass field with a factory
    return f"{parameter.name}{typed} = {shown}" if typed else f"{parameter.name}={shown}"


def _annotation(annotation: object) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:dalembert|collections|os|types|numpy|typing)(?:\.\w+)*\.(\w+)", r"\1", text)


# -- links between pages -------------------------------------------------------------------------------------------------


def linker(reference: list[ReferencePage]) -> Callable[[str], str]:
    """A function that makes `da.name` between code tags a link to its entry, everywhere outside links and headings."""
    places = {anchor: page.name for page in reference for anchor in page.anchors}

    def link(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        name: str = match[2]
        while name not in places and name.count(".") > 1:
            name = name.rpartition(".")[0]
        return f'<a class="name" href="{places[name]}.html#{name}">{match[1]}</a>' if name in places else match[0]

    pattern = re.compile(r"<a\b.*?</a>|<h\d.*?</h\d>|<pre.*?</pre>|(<code>(da(?:\.\w+)+)(?:\([^<]*)?</code>)", re.DOTALL)
    return lambda body: pattern.sub(link, body)
