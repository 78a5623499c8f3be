"""The page of findings: what it names as evidence exists, and no experiment that contradicts its document is missing."""

import re

from test_documentation import DOCS, ROOT

from dalembert import experiments

TEXT = (DOCS / "findings.md").read_text(encoding="utf-8")


def test_every_test_that_is_named_exists():
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", TEXT))
    assert len(named) > 15
    missing = [name for name in named if not re.search(rf"^def {name}\(", sources, re.MULTILINE)]
    assert not missing


def test_every_experiment_that_is_named_exists_and_every_contradiction_is_named():
    documents = "|".join(experiments.documents())
    named = set(re.findall(rf"`((?:{documents})\.[\w.]+)`", TEXT))
    assert named <= set(experiments.names())
    assert {name for name in experiments.names() if experiments.find(name).contradicts} <= named


def test_every_row_says_what_shows_it():
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| where")]
    assert len(rows) > 30
    for row in rows:
        evidence = row.strip("| ").split(" | ")[-1]
        assert re.search(r"`\w+[.\w]*`|below", evidence), row
