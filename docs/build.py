"""Builds the documentation site: README.md and docs/*.md as static pages under out/docs, with every link checked.

python docs/build.py                    build the site
python docs/build.py --pictures         draw the pictures in docs/images again (docs/catalogue.py draws those of the catalogue)
python docs/build.py --out DIR          build it elsewhere
"""

from __future__ import annotations

import argparse
import functools
import html
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
ORDER = (
    "index",
    "getting-started",
    "pictures",
    "catalogue",
    "methods",
    "constrained-hamiltonian",
    "variational",
    "modified-hamiltonians",
    "multipliers-and-friction",
    "nonholonomic",
    "index-two",
    "impacts",
    "ensembles",
    "long-runs",
    "reproducing",
    "how-it-works",
    "adding-a-method",
    "performance",
)
MISSING_PERFORMANCE = "# Performance\n\nNothing has been measured here yet: `make bench` writes this page.\n"

STYLE = """
:root { --ink: #1d2430; --soft: #5b6472; --line: #dfe3e8; --tint: #f5f7f9; --accent: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff; font: 16px/1.6 system-ui, -apple-system, "Segoe UI", sans-serif; }
.page { display: grid; grid-template-columns: 15rem minmax(0, 1fr); max-width: 75rem; margin: 0 auto; }
nav { padding: 2rem 1.5rem; border-right: 1px solid var(--line); }
nav .name { display: block; margin-bottom: 1rem; font-size: 1.2rem; font-weight: 600; color: var(--ink); }
nav ul { margin: 0; padding: 0; list-style: none; }
nav li { margin: 0.3rem 0; }
nav a { color: var(--soft); text-decoration: none; }
nav a.here, nav a:hover { color: var(--accent); }
main { padding: 2rem 2.5rem 4rem; min-width: 0; }
h1, h2, h3 { line-height: 1.25; }
h1 { margin-top: 0; }
h2 { margin-top: 2.5rem; padding-top: 0.5rem; border-top: 1px solid var(--line); }
main a { color: var(--accent); }
img { max-width: 100%; height: auto; }
code, pre { font: 0.88em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
code { padding: 0.1em 0.3em; background: var(--tint); border-radius: 3px; }
pre { padding: 0.9rem 1.1rem; overflow-x: auto; background: var(--tint); border: 1px solid var(--line); border-radius: 6px; }
pre code { padding: 0; background: none; }
.table { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.93em; }
th, td { padding: 0.35rem 0.9rem 0.35rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
@media (max-width: 46rem) {
  .page { display: block; }
  nav { padding: 1rem 1.2rem; border-right: 0; border-bottom: 1px solid var(--line); }
  nav .name { margin-bottom: 0.4rem; }
  nav ul { display: flex; flex-wrap: wrap; gap: 0 1rem; }
  main { padding: 1.2rem; }
}
"""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
<div class="page">
<nav>
<a class="name" href="index.html">dalembert</a>
<ul>
{links}
</ul>
</nav>
<main>
{body}
</main>
</div>
</body>
</html>
"""


@dataclass(frozen=True)
class Page:
    """A page: its name on the site, its title, its text as Markdown."""

    name: str
    title: str
    text: str


def read_pages(root: Path) -> list[Page]:
    """README.md as the index, then docs/*.md."""
    texts = {"index": (root / "README.md").read_text(encoding="utf-8")}
    texts |= {path.stem: path.read_text(encoding="utf-8") for path in sorted((root / "docs").glob("*.md"))}
    texts.setdefault("performance", MISSING_PERFORMANCE)
    names = [name for name in ORDER if name in texts] + [name for name in texts if name not in ORDER]
    return [Page(name, _title(texts[name]), texts[name]) for name in names]


def _title(text: str) -> str:
    heading = re.search(r"^# (.+)$", text, re.MULTILINE)
    return heading.group(1) if heading else "dalembert"


def build(root: Path, out: Path) -> list[Path]:
    """Write the site; the pages written. A link or picture that leads nowhere is an error."""
    import markdown

    pages = read_pages(root)
    out.mkdir(parents=True, exist_ok=True)
    (out / "style.css").write_text(STYLE, encoding="utf-8")
    if (root / "docs" / "images").is_dir():
        shutil.copytree(root / "docs" / "images", out / "images", dirs_exist_ok=True)
    bodies = {}
    for page in pages:
        text = re.sub(r"^```(\w+)[^\n]*$", r"```\1", page.text, flags=re.MULTILINE)
        body = markdown.markdown(text, extensions=["fenced_code", "tables", "toc", "sane_lists"], output_format="html")
        body = re.sub(r"<table>.*?</table>", r'<div class="table">\g<0></div>', body, flags=re.DOTALL)
        bodies[page.name] = re.sub(r'(href|src)="([^"]+)"', functools.partial(_link, root, page, pages), body)
    _check(bodies, out)
    written = []
    for page in pages:
        links = "\n".join(
            f'<li><a href="{other.name}.html"{" class=here" if other is page else ""}>{html.escape(_label(other))}</a></li>'
            for other in pages
        )
        path = out / f"{page.name}.html"
        path.write_text(PAGE.format(title=html.escape(page.title), links=links, body=bodies[page.name]), encoding="utf-8")
        written.append(path)
    return written


def _label(page: Page) -> str:
    return "Overview" if page.name == "index" else page.title


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
    return [plot.save(figure, folder / "double_pendulum.png", dpi=110), folder / "double_pendulum.gif"]


def main(arguments: list[str] | None = None) -> int:
    """Build the site or its pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "docs")
    parser.add_argument("--pictures", action="store_true", help="draw docs/images again instead")
    options = parser.parse_args(arguments)
    written = draw_pictures(ROOT / "docs" / "images") if options.pictures else build(ROOT, options.out)
    print("\n".join(str(path) for path in written))
    return 0


if __name__ == "__main__":
    sys.exit(main())
