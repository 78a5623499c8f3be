r"""Mathematics as docstrings write it, in plain text, as LaTeX: `Q_i = q_0 + h sum_j a^_ij k_j` becomes a formula.

Blocks that are code, or that have anything this module does not know, stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

GREEK = r"alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega"
CAPITAL = r"Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega"
SYMBOLS = {name: rf"\{name}" for name in f"{GREEK}|{CAPITAL}".split("|")} | {
    "lam": r"\lambda",
    "eps": r"\varepsilon",
    "sum": r"\sum",
}
FUNCTIONS = {
    name: rf"\{name}"
    for name in [
        "sin",
        "cos",
        "tan",
        "cot",
        "sinh",
        "cosh",
        "tanh",
        "arccos",
        "arcsin",
        "arctan",
        "exp",
        "log",
        "det",
        "min",
        "max",
    ]
}
FUNCTIONS |= {name: rf"\operatorname{{{name}}}" for name in ("diag", "rank", "sign", "artanh", "cd", "sn", "cn", "dn")}
OPERATORS = {
    "<=": r"\le", ">=": r"\ge", "->": r"\to", "<-": r"\leftarrow", "!=": r"\ne", "+-": r"\pm", "...": r"\dots", "..": r"\dots",
    "*": r"\,", ".": r"\cdot", "|": r"\mid", "x": r"\times", "o": r"\circ", "<": "<", ">": ">", "~": r"\sim",
}  # fmt: skip
SHORT_WORDS = ["an", "as", "at", "be", "by", "if", "in", "is", "it", "no", "of", "on", "or", "to", "we"]
MARKS = {"^": r"\hat", "~": r"\tilde", "*": r"^*"}
CODE = re.compile(r"\bda\.|\bnp\.|import |print\(|>>>|dalembert |\"|'\w+'|[`#@%$\\]|\w=\w|: \w+ =")

TOKEN = re.compile(
    r"""(?P<space>\s+) | (?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)
    | (?P<name>[A-Za-z]+\d*(?:'s\b)?) (?P<mark>~|[\^*](?=[_' ,)]|$))? (?P<prime>'*)
      (?:_(?P<sub>\{[^{}]*\}|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)?))? (?P<late>~?)
      (?:\^(?P<power>\{[^{}]*\}|\([^()]*\)|-?[A-Za-z0-9]+(?:_[a-z])?))? (?P<later>'*)
    | \^(?P<up>\{[^{}]*\}|\([^()]*\)|-?[A-Za-z0-9]+(?:_[a-z])?) | _(?P<down>\{[^{}]*\}|[A-Za-z0-9]+)
    | (?P<op><=|>=|->|<-|!=|\+-|\.\.\.|\.\.|[-+*/=<>.,:;~!]|(?<=[ ])\|(?=[ ]))
    | (?P<open>[(\[{]) | (?P<close>[)\]}]'*) | (?P<bar>\|)""",
    re.VERBOSE,
)


LONG = 70  # characters


class Unknown(ValueError):
    """A text that this module cannot typeset."""


def block(lines: Sequence[str]) -> str | None:
    """The lines of an indented block as one display, aligned at their first relation; None if they are no mathematics."""
    text = "\n".join(lines)
    if CODE.search(text) or not re.search(r"[=<]|->", text):
        return None
    rows: list[str] = []
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    try:
        for line in lines:
            if line.strip():
                continued = len(line) - len(line.lstrip()) > indent and bool(rows)
                rows += [rf"&\quad {row.replace('&', '', 1)}" if continued else row for row in _rows(line.strip())]
    except Unknown:
        return None
    body = " \\\\\n".join(rows)
    return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"


def _rows(line: str) -> list[str]:
    """A line, or its equations one by one if it is long; the number of the equation is in a column of its own."""
    number = re.search(r"\s{2,}(\([\w.,() -]*\d[\w.,() -]*\)(?:, [\w^ =.()]+)?|\([a-z' -]{4,}\))$", line)
    text = line[: number.start()].rstrip() if number else line
    rows = [_aligned(latex(part)) for part in (re.split(r"(?<=,)\s{2,}", text) if len(text) > LONG else [text])]
    return [*rows[:-1], rf"{rows[-1]} && \text{{{number[1]}}}"] if number else rows


def _aligned(text: str) -> str:
    """An equation, its first relation marked."""
    relation = re.search(r"(?<![<>!])=|\\le |\\ge |\\to |\\leftarrow ", text)
    return f"{text[: relation.start()]}&{text[relation.start() :]}" if relation else f"&{text}"


SYMBOL = re.compile(
    rf"(?<![^\s(\[/-])(?:[A-Za-z]|{GREEK}|{CAPITAL}|lam)~?'*"  # a letter
    r"(?:_(?:\{[^{}]*\}|[A-Za-z0-9]{1,3})(?:\^(?:-?\d+|[A-Za-z]))?|\^(?:-?\d+|[A-Za-z])|(?<=~)|(?<=\w'))(?=[\s),.;:\]/-]|$)"
)
"""A letter with an index, a power, a tilde or a prime, in a text."""


def in_text(text: str, template: str) -> str:
    r"""A text with its symbols typeset; `code` between backticks stays as it is.

    Example:
        >>> in_text("M = H_pp^-1 at y_0, with `x_0` and a save_to", "${}$")
        'M = $H_{pp}^{-1}$ at $y_0$, with `x_0` and a save_to'

    """
    parts = re.split(r"(`[^`]+`|\$[^$]+\$)", text)
    parts[::2] = [SYMBOL.sub(lambda match: template.format(latex(match[0])), part) for part in parts[::2]]
    return "".join(parts)


def latex(text: str) -> str:
    r"""A line of plain mathematics in LaTeX.

    Example:
        >>> latex("0 = sqrt(x1^2 + z1^2) - l1"), latex("Lambda_i,   a^_ij"), latex("H~ = v^T M(q) v / 2")
        ('0 = \\sqrt{x_1^2 + z_1^2} - l_1', '\\Lambda_i,\\quad \\hat a_{ij}', '\\tilde H = v^T M(q) v / 2')

    """
    parts, stack, bars, position = [], [], 0, 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None or (match["close"] and not stack):
            raise Unknown(text[position:])
        end = match.end()
        if match["name"] == "sqrt" and text.startswith("(", end):
            parts.append(r"\sqrt{")
            stack.append("}")
            end += 1
        elif match["open"]:
            parts.append(r"\{" if match[0] == "{" else match[0])
            stack.append({"(": ")", "[": "]", "{": r"\}"}[match[0]])
        elif match["close"]:
            parts.append(stack.pop() + match[0][1:])
        elif match["bar"]:
            parts.append(r"\rvert " if bars else r"\lvert ")
            bars = 1 - bars
        else:
            parts.append(_token(match, text))
        position = end
    if stack or bars:
        raise Unknown(text)
    return _joined(parts)


def _token(match: re.Match[str], text: str) -> str:
    """A name, a number, an operator, an index, a power or a space, in LaTeX."""
    if match["name"]:
        before = text[: match.start()]
        return _named(match, before.rstrip()[-1:], before.endswith(" "), text[match.end() :])
    if match["space"]:
        return r"\quad " if len(match[0]) > 1 else " "
    if match["up"] or match["down"]:
        return f"^{{{_inner(match['up'])}}}" if match["up"] else f"_{{{_subscript(match['down'])}}}"
    if match["op"]:
        ends = match[0] == "." and not text[match.end() :].strip()
        symbol = "." if ends else OPERATORS.get(match[0], match[0])
        return f"{symbol} " if symbol.startswith("\\") else symbol
    mantissa, e, exponent = match[0].partition("e")
    power = rf"10^{{{exponent}}}"
    return mantissa if not e else power if mantissa == "1" else rf"{mantissa} \cdot {power}"


def _joined(parts: list[str]) -> str:
    """The parts in one line; neighbouring words become one text."""
    line = re.sub(r"([_^])\{(\w)\}", r"\1\2", re.sub(r" +", " ", "".join(parts)))
    line = re.sub(r"\\text\{([^{}]*)\} (?=\\text\{)", r"\\text{\1 }", line)
    while re.search(r"\\text\{([^{}]*)\}\\text\{([^{}]*)\}", line):
        line = re.sub(r"\\text\{([^{}]*)\}\\text\{([^{}]*)\}", r"\\text{\1\2}", line)
    line = re.sub(r"(?<=[\w})]) (\\text\{)", r"\\ \1", line)
    return re.sub(r"(\\text\{[^{}]*\}) (?=[\w\\(])", r"\1\\ ", line).rstrip()


def _named(match: re.Match[str], before: str, spaced: bool, after: str) -> str:
    """A name with its marks, subscript and power."""
    name = match["name"]
    plain = match[0] == name
    if plain and name in ("x", "o") and spaced and (before.isalnum() or before in ")]}'|.") and re.match(r" [\w(|]", after):
        return rf"{OPERATORS[name]} "
    if name == "sum" and match["sub"] and ".." in match["sub"]:
        low, high = match["sub"].strip("{}").split("..")
        return rf"\sum_{{{latex(low)}}}^{{{latex(high)}}}"
    symbol = _symbol(name)
    for mark in filter(None, (match["mark"], match["late"])):
        symbol = f"{symbol}^*" if mark == "*" else f"{MARKS[mark]} {symbol}"
    symbol += match["prime"] + (f"_{{{_subscript(match['sub'])}}}" if match["sub"] else "")
    return symbol + (f"^{{{_inner(match['power'])}}}" if match["power"] else "") + match["later"]


def _inner(text: str) -> str:
    return latex(text[1:-1] if text[0] in "{(" else text)


def _symbol(name: str) -> str:
    """A single letter with an index, a Greek letter, a function, a product of letters, or a word."""
    if name.endswith("'s"):
        return rf"\text{{{name}}}"
    stem, digits = re.fullmatch(r"([A-Za-z]+)(\d*)", name).groups()  # type: ignore[union-attr]
    index = f"_{digits}" if len(digits) == 1 else f"_{{{digits}}}" if digits else ""
    if stem in FUNCTIONS:
        return FUNCTIONS[stem] + index
    if stem in SYMBOLS:
        return SYMBOLS[stem] + index
    if len(stem) == 1:
        return stem + index
    if len(stem) == 2 and stem not in SHORT_WORDS:
        return " ".join(stem) + index
    return rf"\text{{{stem}}}{index}"


def _subscript(text: str) -> str:
    if text.startswith("{"):
        return latex(text[1:-1])
    head, _, tail = text.partition("_")
    if tail:
        return f"{_subscript(head)}_{{{_subscript(tail)}}}"
    if re.fullmatch(r"[A-Za-z]+\d*", head) and (re.sub(r"\d", "", head) in SYMBOLS or re.fullmatch(r"[a-hl-z]\d", head)):
        return _symbol(head)
    return head if len(head) <= 3 or head.isdigit() else rf"\mathrm{{{head}}}"
