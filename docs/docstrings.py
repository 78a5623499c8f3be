"""Plain text and code of docstrings as HTML: indented lines are mathematics or code and stay as they are."""

from __future__ import annotations

import html
import inspect
import re

DESCRIBED = ("Args:", "Attributes:", "Raises:", "Returns:")


def docstring(text: str) -> str:
    """A docstring as HTML: paragraphs, lists, and indented lines as they are."""
    parts: list[str] = []
    paragraph: list[str] = []
    listed: list[str] = []
    described = False  # inside a section such as "Raises:", whose indented lines are names and what they mean
    lines = text.splitlines()

    def close() -> None:
        nonlocal described
        if paragraph:
            label = len(paragraph) == 1 and re.fullmatch(r"\w+:", paragraph[0])
            described = bool(label) and paragraph[0] in DESCRIBED
            shown = inline(" ".join(paragraph).removesuffix(":") if label else re.sub("::$", ":", " ".join(paragraph)))
            parts.append(f'<p class="label">{shown}</p>' if label else f"<p>{shown}</p>")
            paragraph.clear()
        if listed:
            parts.append("<ul>" + "".join(f"<li>{inline(item)}</li>" for item in listed) + "</ul>")
            listed.clear()

    position = 0
    while position < len(lines):
        line = lines[position]
        if not line.strip():
            close()
        elif line.startswith("- "):
            if paragraph:
                close()
            listed.append(line[2:])
        elif listed and re.match(r" {2}\S", line):
            listed[-1] += " " + line.strip()
        elif line.startswith(("    ", ">>> ")):
            close()
            end = position
            while end < len(lines) and (not lines[end].strip() or line.startswith(">>>") or lines[end].startswith("    ")):
                end += 1
            block = inspect.cleandoc("\n" + "\n".join(lines[position:end])).rstrip()
            example = ">>>" in block
            parts.append(_names(block) if described and not example else code(block, "pycon" if example else ""))
            position = end - 1
        else:
            paragraph.append(line.strip())
        position += 1
    close()
    return "\n".join(parts)


def _names(block: str) -> str:
    """`name: what it means`, with continuation lines, as a list."""
    items = re.split(r"\n(?=\S)", block)
    shown = (re.sub(r"^`?([\w.*]+)`?: ", r"`\1`: ", " ".join(item.split())) for item in items)
    return "<ul>" + "".join(f"<li>{inline(item)}</li>" for item in shown) + "</ul>"


def inline(text: str) -> str:
    """A line of plain text, with `code` between backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def code(text: str, language: str) -> str:
    """A block of code, highlighted where Pygments is installed and the language is known."""
    try:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import get_lexer_by_name
    except ImportError:
        language = ""
    if not language:
        return f"<pre><code>{html.escape(text, quote=False)}</code></pre>"
    return str(highlight(text, get_lexer_by_name(language, stripall=True), HtmlFormatter(cssclass="codehilite", wrapcode=True)))
