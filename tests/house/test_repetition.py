"""No ten lines of the package stand twice, signatures included; an import is one line, however long it is."""

import re
from collections import defaultdict
from pathlib import Path

import dalembert

PACKAGE = Path(dalembert.__file__).parent
LINES = 10


def test_no_ten_lines_stand_twice():
    places = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        text = re.sub(r"import \([^)]*\)", lambda found: " ".join(found[0].split()), path.read_text(encoding="utf-8"))
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        for k in range(len(lines) - LINES + 1):
            places[tuple(lines[k : k + LINES])].append(path.relative_to(PACKAGE))
    assert [(found, lines[0]) for lines, found in places.items() if len(found) > 1] == []
