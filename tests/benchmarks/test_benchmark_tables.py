"""The tables of docs/benchmark.md are those of the sweeps in results/."""

import pytest
from benchmark_tables import PAGE, lines, marked
from pages import ROOT, with_table


def test_the_page_shows_every_sweep_that_is_kept():
    kept = sorted(file.parent.name for file in (ROOT / "results").glob("*/sweep.json"))
    assert sorted(marked()) == kept


@pytest.mark.parametrize("name", marked())
def test_a_table_is_what_its_records_make_of_it(name):
    page = (ROOT / PAGE).read_text()
    assert with_table(page, name, lines(name)) == page
