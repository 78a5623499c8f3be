"""Builds the documentation site: README.md, docs/*.md and the API reference as static pages, with every link checked.

python docs/build.py                    build the site under out/docs
python docs/build.py --out DIR          build it elsewhere
python docs/build.py --pictures         draw the pictures in docs/images again (docs/catalogue.py draws those of the catalogue)
python docs/build.py --measure          measure the tables of docs/choosing.md again (some minutes)
"""

from __future__ import annotations

import argparse
import functools
import html
import json
import os
import re
import shutil
import struct
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
THEME = ROOT / "docs" / "theme"
sys.path.insert(0, str(ROOT / "docs"))  # the modules beside this file, also where a test loads it by its path

NAVIGATION = {
    "Start": ("index", "getting-started", "mechanisms", "coming-from", "real-mechanisms", "choosing"),
    "Tutorials": (
        "tutorial-first-constraint",
        "tutorial-rolling",
        "tutorial-impacts",
        "tutorial-long-times",
        "tutorial-orders",
    ),
    "Methods": (
        "lobatto",
        "constrained-hamiltonian",
        "runge-kutta",
        "half-explicit",
        "compositions",
        "multipliers-and-friction",
        "nonholonomic",
        "index-two",
        "variational",
        "modified-hamiltonians",
        "impacts",
    ),
    "Systems": ("catalogue",),
    "Beyond one run": ("pictures", "ensembles", "derivatives", "long-runs", "reproducing"),
    "Inside": ("how-it-works", "adding-a-method", "performance"),
    "Reference": (),
}
WIDE, WIDEST = 500, 840  # pixels: from which width on a picture has words too small for a phone, and what a desk has room for
MISSING_PERFORMANCE = "# Performance\n\nNothing has been measured here yet: `make bench` writes this page.\n"

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="icon.svg">
<link rel="stylesheet" href="style.css">
</head>
<body>
<script>document.body.classList.add("js");</script>
<div class="page">
<nav aria-label="Pages">
<div class="top"><a class="home" href="index.html">dalembert</a>
<button id="menu" type="button" aria-expanded="false" aria-controls="groups">Menu</button></div>
<div class="search" role="search">
<input id="search" type="search" placeholder="Search (press /)" aria-label="Search headings and names" autocomplete="off"
 role="combobox" aria-expanded="false" aria-controls="found" aria-autocomplete="list">
<ul id="found" role="listbox" aria-label="Search results" hidden></ul>
</div>
<div class="groups" id="groups">
{links}
</div>
</nav>
<main>
{body}
</main>
</div>
<script src="search-index.js"></script>
<script src="search.js"></script>
</body>
</html>
"""


@dataclass(frozen=True)
class Page:
    """A page: its name on the site, its title, its text as Markdown, or its body as HTML."""

    name: str
    title: str
    text: str = ""
    body: str = ""


def read_pages(root: Path) -> list[Page]:
    """README.md as the index, then docs/*.md, in the order of the navigation."""
    texts = {"index": (root / "README.md").read_text(encoding="utf-8")}
    texts |= {path.stem: path.read_text(encoding="utf-8") for path in sorted((root / "docs").glob("*.md"))}
    texts.setdefault("performance", MISSING_PERFORMANCE)
    known = [name for names in NAVIGATION.values() for name in names]
    names = [name for name in known if name in texts] + [name for name in texts if name not in known]
    return [Page(name, _title(texts[name]), texts[name]) for name in names]


def _title(text: str) -> str:
    heading = re.search(r"^# (.+)$", text, re.MULTILINE)
    return heading.group(1) if heading else "dalembert"


def build(root: Path, out: Path) -> list[Path]:
    """Write the site; the pages written. A link or picture that leads nowhere is an error."""
    import reference

    documented = reference.pages() if (root / "dalembert").is_dir() else []
    pages = [*read_pages(root), *(Page(page.name, page.title, body=page.body) for page in documented)]
    out.mkdir(parents=True, exist_ok=True)
    for path in THEME.iterdir():
        shutil.copy(path, out)
    if (root / "docs" / "images").is_dir():
        shutil.copytree(root / "docs" / "images", out / "images", dirs_exist_ok=True)
    named = reference.linker(documented)
    bodies = {page.name: named(page.body or _render(root, page, pages)) for page in pages}
    _check(bodies, out)
    index = json.dumps([entry for page in pages for entry in _headings(page, bodies[page.name])], separators=(",", ":"))
    (out / "search-index.js").write_text(f"window.SEARCH_INDEX = {index};\n", encoding="utf-8")
    written = []
    for page in pages:
        path = out / f"{page.name}.html"
        links, title = _navigation(page, pages), html.escape(page.title)
        path.write_text(PAGE.format(title=title, links=links, body=bodies[page.name]), encoding="utf-8")
        written.append(path)
    return written


def _render(root: Path, page: Page, pages: list[Page]) -> str:
    """Markdown as HTML, with links between sources as links between pages."""
    import markdown

    text = re.sub(r"^```(\w+)[^\n]*$", r"```\1", page.text, flags=re.MULTILINE)
    body = markdown.markdown(
        text,
        extensions=["fenced_code", "tables", "toc", "sane_lists", "codehilite", "md_in_html"],
        extension_configs={"codehilite": {"guess_lang": False}},
        output_format="html",
    )
    body = re.sub(r"<table>.*?</table>", r'<div class="table" tabindex="0">\g<0></div>', body, flags=re.DOTALL)
    body = re.sub(r"<td>([^<]{1,14})</td>", r'<td class="short">\1</td>', body)  # numbers, which should not be broken
    body = re.sub(r'(href|src)="([^"]+)"', functools.partial(_link, root, page, pages), body)
    return re.sub(r'<p>(<img [^>]*?src="(images/[^"]+)"[^>]*)></p>', functools.partial(_legible, root), body)


def _legible(root: Path, match: re.Match[str]) -> str:
    """A picture that stands alone; a wide one keeps 0.8 of its size, and scrolls in a box where the screen is narrower."""
    width = _width(root / "docs" / match[2])
    if width <= WIDE:
        return match[0]
    return f'<div class="box" tabindex="0">{match[1]} style="min-width: {min(round(0.8 * width), WIDEST)}px"></div>'


def _width(picture: Path) -> int:
    """The width of a .png or .gif in pixels; 0 where there is none, which the check of links will tell."""
    if not picture.is_file():
        return 0
    with picture.open("rb") as file:
        start = file.read(24)
    return struct.unpack(">I", start[16:20])[0] if start.startswith(b"\x89PNG") else struct.unpack("<H", start[6:8])[0]


def _navigation(page: Page, pages: list[Page]) -> str:
    """The links of all pages in their groups; pages that the navigation does not know come last."""
    grouped = {name: group for group, names in NAVIGATION.items() for name in names}
    groups: dict[str, list[Page]] = {group: [] for group in (*NAVIGATION, "More")}
    for other in pages:
        groups["Reference" if other.body else grouped.get(other.name, "More")].append(other)
    parts = []
    for group, members in groups.items():
        marked = ((other, ' aria-current="page"' if other is page else "") for other in members)
        items = "\n".join(
            f'<li><a href="{other.name}.html"{mark}>{html.escape(_label(other))}</a></li>' for other, mark in marked
        )
        if members:
            parts.append(f"<h2>{group}</h2>\n<ul>\n{items}\n</ul>")
    return "\n".join(parts)


def _label(page: Page) -> str:
    return "Overview" if page.name == "index" else page.title


def _headings(page: Page, body: str) -> list[dict[str, str]]:
    """What the search finds: the page, its headings and, in the reference, every name."""
    label = _label(page)
    entries = [{"text": label, "page": "", "href": f"{page.name}.html"}]
    for anchor, heading in re.findall(r'<h[23] id="([^"]+)">(.*?)</h[23]>', body, re.DOTALL):
        text = anchor if anchor.startswith("da.") else html.unescape(re.sub(r"<[^>]+>", "", heading))
        entries.append({"text": text, "page": label, "href": f"{page.name}.html#{anchor}"})
    return entries


def _link(root: Path, page: Page, pages: list[Page], match: re.Match[str]) -> str:
    """A link between sources as a link between pages; a link to a source file as its path in the repository."""
    kind, target = match.groups()
    if re.match(r"[a-z]+:|#", target):
        return match.group(0)
    path, hash_mark, fragment = target.partition("#")
    path = path.removeprefix("docs/") if page.name == "index" else path
    stem = path.removesuffix(".md")
    if path.endswith(".md") and stem in {other.name for other in pages}:
        path = f"{stem}.html"
    elif path == "../README.md":
        path = "index.html"
    elif path.startswith("../"):
        if not (root / path.removeprefix("../")).exists():
            raise SystemExit(f"docs: {page.name}.md links to {target}, which does not exist")
        return f'title="{path.removeprefix("../")}"'  # sources are not part of the site: the path stays as a hint
    return f'{kind}="{path}{hash_mark}{fragment}"'


def _check(bodies: dict[str, str], out: Path) -> None:
    """Every link inside the site must lead somewhere."""
    anchors = {name: set(re.findall(r'id="([^"]+)"', body)) for name, body in bodies.items()}
    for name, body in bodies.items():
        for target in re.findall(r'(?:href|src)="([^"]+)"', body):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, fragment = unquote(target).partition("#")
            page = path.removesuffix(".html") if path else name
            if path and page not in bodies and not (out / path).is_file():
                raise SystemExit(f"docs: {name} links to {target}, which does not exist")
            if fragment and page in bodies and fragment not in anchors[page]:
                raise SystemExit(f"docs: {name} links to {target}, but that page has no such heading")


def draw_pictures(folder: Path) -> list[Path]:
    """Draw the pictures of README.md and docs/."""
    import dalembert as da
    from dalembert import plot

    folder.mkdir(parents=True, exist_ok=True)
    problem = da.problems.double_pendulum()
    run = da.simulate(problem, da.LobattoIIIAB(stages=3), h=0.12, steps=5000)
    figure = plot.overview(run, problem=problem, coordinates=["x1", "z2"])
    run.animate(folder / "double_pendulum.gif", window=(0.0, 5.0), fps=16)
    pictures = [plot.save(figure, folder / "double_pendulum.png", dpi=110), folder / "double_pendulum.gif"]
    for page in sorted((ROOT / "docs").glob("tutorial-*.md")):
        pictures += draw_page(page, folder)
    return pictures


def draw_page(page: Path, folder: Path) -> list[Path]:
    """The pictures that a page shows and that its own code draws: its blocks are run in a directory of their own."""
    text = page.read_text(encoding="utf-8")
    names = re.findall(r"!\[[^\]]*\]\(images/([^)]+)\)", text)
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            code = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
            exec(compile(code, str(page), "exec"), {"__name__": "__documentation__"})
            return [Path(shutil.copy(name, folder / name)) for name in names]
        finally:
            os.chdir(before)


def main(arguments: list[str] | None = None) -> int:
    """Build the site, its pictures or its measured tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "docs")
    parser.add_argument("--pictures", action="store_true", help="draw docs/images again instead")
    parser.add_argument("--measure", action="store_true", help="measure the tables of docs/choosing.md again instead")
    options = parser.parse_args(arguments)
    if options.measure:
        import measured

        written = [measured.write(ROOT / "docs" / "choosing.md")]
    else:
        written = draw_pictures(ROOT / "docs" / "images") if options.pictures else build(ROOT, options.out)
    print("\n".join(str(path) for path in written))
    return 0


if __name__ == "__main__":
    sys.exit(main())
