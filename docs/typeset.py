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
    "grad": r"\nabla",
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


NAMED = rf"(?<![A-Za-z])(?:{GREEK}|{CAPITAL}|{'|'.join(FUNCTIONS)}|lam|eps|sqrt|grad|[A-Za-z]|[a-z]{{2}}(?=\d))(?![A-Za-z])"
LONG_NAME = r"(?:(?<=[-=+/(]\s)|(?<=[(]))[a-z]{4,}(?:_[a-z]+)?(?=\s?[-+*/^]|\ssin|\scos|\s\(|\)|,|\.|$)"
WORD = (
    rf"(?:\d+(?:\.\d+)?(?:e-?\d+)?(?!-?D\b)|{NAMED}\d?|{LONG_NAME}|_(?:\{{[^{{}}`]*\}}|{GREEK}|dot|max|min|[A-Za-z0-9]{{1,3}}(?![A-Za-z_]))"
    r"|[-+*/=<>()\[\]|^'~!,;])+"
)
RUN = re.compile(rf"(?<![^\s(\[]){WORD}(?:\s{WORD})*(?![^\s.:)\]])")
"""Words that mathematics may consist of."""
STRONG = re.compile(
    rf"[=<>^~_]|\w'|(?<![a-z])(?:{GREEK}|{CAPITAL}|lam|eps|sqrt|grad|sin|cos|tan|exp|log)(?![a-z])|\w ?[-+/] ?\(?[A-Za-z]"
)
"""What makes them mathematics."""
LETTER = re.compile(r"(?<![^\s(])(?<!\d\s)(?<!\d\s\()[b-zBD-HJ-Z](?![^\s)])(?! \d)")
"""One that stands alone, and is no unit of a number."""
UNIT = re.compile(r"[\d.]+ (?:kg|m|N|s|J)[a-z/]*(?:\^2)?")
FOLLOWED = re.compile(r"\s(?!and |or |is |are |of |if |in |for |with |where |at |as |to |by |on |from |that )[a-z]{2}")


def in_text(text: str, template: str) -> str:
    r"""A text with its formulas typeset; `code` between backticks stays as it is.

    Example:
        >>> in_text("M = H_pp^-1 at y_0, with `x_0`, a save_to and tau", "${}$")
        '$M = H_{pp}^{-1}$ at $y_0$, with `x_0`, a save_to and $\\tau$'
        >>> in_text("With k = sin(theta/2), a length l (2 m) by E. Hairer and c = a constant.", "${}$")
        'With $k = \\sin(\\theta/2)$, a length $l$ (2 m) by E. Hairer and $c$ = a constant.'

    """
    parts = re.split(r"(`[^`]+`\w*|\$[^$]+\$)", text)
    for i in range(0, len(parts), 2):
        part = parts[i]
        parts[i] = RUN.sub(lambda run, part=part: _in_pieces(run[0], part[run.end() :], template), part)
    return "".join(parts)


def _in_pieces(run: str, after: str, template: str) -> str:
    """Words that look like mathematics, cut at commas outside of parentheses."""
    pieces, depth = [""], 0
    for letter in run:
        depth += (letter in "([") - (letter in ")]")
        if letter in ",;" and depth <= 0:
            pieces += [letter, ""]
        else:
            pieces[-1] += letter
    last = len(pieces) - 1
    return "".join(_formula(piece, after if i == last else ", ", template) for i, piece in enumerate(pieces))


def _formula(piece: str, after: str, template: str) -> str:
    """A formula, without the article in front of it or behind it, the parentheses around it and the units of a number."""
    article = r"[-+/=<> ]*\s[aA]\s*$" if FOLLOWED.match(after) else r"(?<![-+/=<>*])\s[aA]\s*$"
    head = re.match(r"\s*(?:[aAI]\s+(?![-+/=<>*]))?", piece)[0]
    tail = (re.search(article, piece[len(head) :]) or re.search(r"\s*$", piece[len(head) :]))[0]
    body = piece[len(head) : len(piece) - len(tail)]
    while body.startswith("(") and body.count("(") > body.count(")"):
        head, body = f"{head}(", body[1:]
    while body.endswith(")") and body.count(")") > body.count("("):
        tail, body = f"){tail}", body[:-1]
    open_end = re.search(r"\s[-+/=<>]+$", body)
    if open_end and after and not tail:  # what follows is a word, and no code
        body, tail = body[: open_end.start()], open_end[0]
    if (body.isupper() and len(body) == 1 and after.startswith(".") and not tail) or UNIT.fullmatch(body):
        return piece  # an initial
    strong = STRONG.search(body) and re.search("[A-Za-z]", body) and re.match(r"[^*/=<>]", body)
    try:
        if strong or LETTER.fullmatch(body):
            return head + template.format(latex(body)) + tail
    except Unknown:
        pass
    plain = SYMBOL.sub(lambda match: template.format(latex(match[0])), body)
    return head + LETTER.sub(lambda match: template.format(match[0]), plain) + tail


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
    stem, digits = re.fullmatch(r"([A-Za-z]+)(\d*)", name).groups()
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
