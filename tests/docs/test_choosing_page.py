"""The tables of docs/choosing.md: every method has its rows, and the rows are what is measured."""

import inspect
import re
import sys

import pytest
from test_documentation import DOCS

import dalembert as da

sys.path.insert(0, str(DOCS))
import measured

TEXT = (DOCS / "choosing.md").read_text(encoding="utf-8")
QUICK = ("Rattle()", "LobattoIIIAB(stages=3)", "SymplecticEuler()", 'SRK("gauss", stages=1)', "LobattoSPARK(stages=2)")


def rows_of(name):
    """The rows of a table by the method in their first cell."""
    table = re.search(rf"<!-- measured: {name} -->\n(.*?)<!-- end -->", TEXT, re.DOTALL)[1]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n") if line.startswith("|")]
    return {cells[0].strip("`"): cells[1:] for cells in lines[2:]}


def cases():
    for name, (_, measure, rows) in measured.TABLES.items():
        for row in rows:
            call = measured.call(row.method)
            marks = () if call.removeprefix("da.") in QUICK else pytest.mark.slow
            yield pytest.param(name, measure, row, marks=marks, id=f"{name} {call}")


def agree(printed, now, heading):
    """Cells say the same: words exactly, numbers as far as their digits and the solver's freedom go."""
    try:
        old, new = (float(cell.replace(",", "").removeprefix("to order ")) for cell in (printed, now))
    except ValueError:
        return printed == now or (printed.startswith("stops") and now.startswith("stops"))
    if heading in ("order of q", "order", "p", "lam", "psi", "an impact step is symplectic"):
        return abs(old - new) < 0.06
    return old == pytest.approx(new, rel=0.2, abs=0.3 if heading == "iterations" else 1e-12)


@pytest.mark.parametrize(("name", "measure", "row"), list(cases()))
def test_a_method_does_what_its_row_says(name, measure, row):
    printed = rows_of(name)[measured.call(row.method)]
    headings = measured.TABLES[name][0].split(" | ")
    for heading, old, new in zip(headings, printed, measure(row), strict=True):
        assert agree(old, new, heading), f"{heading}: printed {old}, measured {new}"


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "da.CVA()" else pytest.mark.slow) for n in measured.COLLISIONS]
)
def test_a_collision_integrator_does_what_its_row_says(name):
    order, symplectic, energy, impacts = rows_of("impacts")[name]
    now = measured.impacts(measured.COLLISIONS[name])
    assert agree(order, now[0], "order") and agree(symplectic, now[1], "an impact step is symplectic")
    # the motion is chaotic: other roundings give another orbit of the same kind
    assert float(energy) / 4 < float(now[2]) < 4 * float(energy) and int(impacts) == pytest.approx(int(now[3]), rel=0.15)


def test_what_accepts_what():
    now = {cells[0].strip("`"): cells[1:] for cells in list(measured.served())[1:]}
    assert rows_of("served") == now


def test_every_public_method_is_measured():
    public = {
        name
        for name in da.__all__
        if inspect.isclass(getattr(da, name))
        and issubclass(getattr(da, name), da.OneStepMethod)
        and not inspect.isabstract(getattr(da, name))
    }
    shown = {name.removeprefix("da.").partition("(")[0] for table in (*measured.TABLES, "impacts") for name in rows_of(table)}
    elsewhere = {name for name in public if getattr(da, name).driver == "time stepping"}
    contact = (DOCS / "contact.md").read_text(encoding="utf-8")
    varying = {name for name in public if getattr(da, name).varies_steps}
    page = (DOCS / "varying-steps.md").read_text(encoding="utf-8")
    assert all(f"da.{name}" in contact for name in elsewhere) and all(f"da.{name}" in page for name in varying)
    assert public <= shown | elsewhere | varying, public - shown
    assert {"compose", "adjoint", "MCVAA", "MCVAC"} <= shown


@pytest.mark.parametrize("name", measured.TABLES)
def test_tables_have_the_rows_of_the_tests_table_of_methods(name):
    assert list(rows_of(name)) == [measured.call(row.method) for row in measured.TABLES[name][2]]
    for call in rows_of(name):
        assert measured.call(eval(call, {"da": da})) == call


def test_constrained_claims_and_measurements_agree():
    for row in measured.TABLES["holonomic"][2]:
        printed = dict(
            zip(measured.TABLES["holonomic"][0].split(" | "), rows_of("holonomic")[measured.call(row.method)], strict=True)
        )
        for claim in ("symplectic", "symmetric"):
            if getattr(row.method, claim) is not None:
                assert printed[claim] == ("yes" if getattr(row.method, claim) else "no"), row.method
        for constraint in row.method.keeps & {"g", "g_dot"}:
            assert printed[f"keeps {constraint}"] == "yes"
        assert (printed["symplectic"] == "yes") == (printed["drift"] == "none"), "the page says that only these do not drift"
