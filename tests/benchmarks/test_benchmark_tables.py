"""The tables of docs/benchmark.md and docs/training.md are those of the records in results/."""

import pytest
import training_table
from benchmark_tables import PAGE, lines, marked
from pages import ROOT, with_table


def test_the_page_shows_every_sweep_that_is_kept():
    kept = sorted(file.parent.name for file in (ROOT / "results").glob("*/sweep.json"))
    assert sorted(marked()) == kept


@pytest.mark.parametrize("name", marked())
def test_a_table_is_what_its_records_make_of_it(name):
    page = (ROOT / PAGE).read_text()
    assert with_table(page, name, lines(name)) == page


def test_the_table_of_training_is_what_the_run_and_the_sweep_hold():
    page = (ROOT / training_table.PAGE).read_text()
    assert with_table(page, training_table.TITLE, training_table.lines()) == page
