"""The page of benchmarks is what its command wrote: all of its rows, and nothing by hand."""

import importlib.util
from pathlib import Path

import pytest

from dalembert.experiments.benchmarks._benchmark import _tool
from dalembert.experiments.benchmarks._references import references
from dalembert.experiments.benchmarks._shown import STEPS_ONLY
from dalembert.experiments.benchmarks.records import RECORDS

DOCS = Path(__file__).parents[2] / "docs"
SPEC = importlib.util.spec_from_file_location("benchmarks_page", DOCS / "benchmarks.py")
page = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(page)
WRITTEN, MARK = page.PAGE.read_text(encoding="utf-8").split(page.BEGIN)[1].split(page.END)


def test_nothing_was_changed_by_hand():
    assert MARK.split(" -->")[0] == page.digest(WRITTEN)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_problem_has_all_of_its_rows_or_is_said_not_to_be_measured(record):
    section = WRITTEN.split(f"### {record.item}\n")[1].split("###")[0]
    if page.NOT_MEASURED in section:
        assert "|" not in section
        return
    rows = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("|")][2:]
    ours = [row for method, numbers in record.runs for row in (f"dalembert {_tool(method, numbers[0])}", STEPS_ONLY)]
    assert rows == [*ours, *record.peers, *record.published]


def test_a_problem_without_a_result_of_this_state_is_said_not_to_be_measured(tmp_path):
    assert page.tables([tmp_path]) == {}
    text = page.sections({})
    assert text.count(page.NOT_MEASURED) == len(RECORDS) and text.startswith(f"0 of {len(RECORDS)} tables")
    assert page.iftomm({})[0]["results"] == []


def test_a_table_is_called_old_when_what_it_rests_on_has_changed_and_not_before():
    name = RECORDS[0].name
    rows = [f"dalembert {_tool(method, numbers[0])}" for method, numbers in RECORDS[0].runs] + list(RECORDS[0].peers)
    fresh = page.sections({name: [["", "least error", ""], *([row, "1", ""] for row in rows)]})
    kept = page.earlier(fresh)
    assert kept.keys() == {name} and page.sections({}, kept) == fresh and page.EARLIER not in fresh
    table, sources = kept[name]
    old = page.sections({}, {name: (table, sources[::-1])})
    assert old.count(page.EARLIER) == 1 and table in old and page.earlier(old) == {name: (table, sources[::-1])}


def test_the_first_table_has_the_fastest_of_each_side_at_the_accuracy_that_is_asked_for():
    head = ["", f"ms to {page.ASKED}", "least error", ""]
    rows = [
        ["dalembert A", "12", "3e-10", ""], [STEPS_ONLY, "11", "", ""], ["dalembert B", "7", "4e-11", ""],
        [STEPS_ONLY, "6", "", ""], ["dalembert C", "-", "2e-8", ""], [STEPS_ONLY, "-", "", ""], ["peer", "-", "1e-5", "slow"],
        ["another", "**5**", "1e-12", ""], ["quoted", "", "", "as published"],
    ]  # fmt: skip
    text = page.sections({RECORDS[0].name: [head, *rows]})
    assert f"| {RECORDS[0].item} | 4e-11 | 7, 6 | B | another: **5** ms |" in text
    text = page.sections({RECORDS[0].name: [head, *rows[4:7]]})
    assert f"| {RECORDS[0].item} | 2e-8 | - |  | none |" in text


def test_the_file_for_iftomm_has_the_fastest_way_and_leaves_out_what_was_not_reached():
    record = RECORDS[0]
    head = ["", f"ms to {record.target:.0e}", "least error", ""]
    rows = [
        ["dalembert A", "12", "3e-10", ""],
        [STEPS_ONLY, "11", "", ""],
        ["dalembert B", "-", "4e-9", ""],
        [STEPS_ONLY, "-", "", ""],
    ]
    (entry,) = page.iftomm({record.name: [head, *rows]})[0]["results"]
    assert (entry["problem"], entry["method"], entry["CPU seconds"]) == (record.item, "A", 0.012)
    assert page.iftomm({record.name: [head, *rows[2:]]})[0]["results"] == []


def test_pairs_of_methods_behind_references_are_of_different_families_and_orders():
    for name, entry in references().items():
        one, other = (method.split(",")[0] for method in entry["methods"])
        assert one != other and entry["orders"][0] != entry["orders"][1], name
