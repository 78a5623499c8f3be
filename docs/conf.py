"""Settings of the documentation site: `make docs`, or `python -m sphinx -W docs out/docs`.

README.md is its first page. Every page of this folder is on the site: those that index.md does not list come last.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import imagesize
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import dalembert  # noqa: E402

project = "dalembert"
author = "the dalembert developers"
copyright = f"2026, {author}"
release = dalembert.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx-mathjax-offline",  # the pages load nothing from elsewhere
    "reference",
]
suppress_warnings = ["myst.header"]  # headings of docstrings on the page of the catalogue

myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
mathjax3_config = {"tex": {"macros": {"T": r"^{\mathsf T}"}}}

autodoc_typehints = "description"
autodoc_typehints_format = "short"
autoclass_content = "both"  # with the parameters of __init__
autosummary_generate = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "dalembert"
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sphinx = False

LEGIBLE, ROOM = 0.8, 840  # the least share of its size that a wide picture keeps on a phone; the width that a desk has room for


def first_page(app: Sphinx, name: str, text: list[str]) -> None:
    """README.md in front of index.md, and behind it the pages that are listed nowhere."""
    if name != "index":
        return
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    readme = re.sub(r"\]\((?!docs/|[a-z]+:|#)", "](path:../", readme).replace("](docs/", "](")
    listed = set(re.findall(r"^[\w/-]+$", text[0], re.MULTILINE)) | {"index"}
    more = sorted(app.project.docnames - listed)
    rest = "\n".join(["", "```{toctree}", ":hidden:", ":caption: More", "", *more, "```"]) if more else ""
    text[0] = f"{readme}\n{text[0]}{rest}\n"


def link_names(app: Sphinx, tree: nodes.document) -> None:
    """`da.name` in a text leads to its entry in the reference."""
    for literal in list(tree.findall(nodes.literal)):
        name = re.fullmatch(r"da((?:\.\w+)+)(?:\(.*\))?", literal.astext(), re.DOTALL)
        if name and not isinstance(literal.parent, (nodes.reference, nodes.title, addnodes.pending_xref)):
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=f"dalembert{name[1]}", refdoc=app.env.docname, refwarn=False
            )
            literal.replace_self(link)
            link += literal


def keep_legible(app: Sphinx, tree: nodes.document) -> None:
    """A wide picture that stands alone keeps most of its size, and scrolls in a box where the screen is narrower."""
    for image in list(tree.findall(nodes.image)):
        paragraph = image.parent
        if not isinstance(paragraph, nodes.paragraph) or len(paragraph) > 1:
            continue
        width, _ = imagesize.get(DOCS / image["uri"])
        if width > 500:
            image["width"] = f"{min(round(LEGIBLE * width), ROOM)}px"
            box = nodes.container(classes=["box"])
            paragraph.replace_self(box)
            box += image


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("source-read", first_page)
    app.connect("doctree-read", link_names)
    app.connect("doctree-read", keep_legible)
