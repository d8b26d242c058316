"""Puts the tables of the sweeps in results/ into docs/benchmark.md, between their marks.

    python benchmarks/benchmark_tables.py

Each sweep that the page has marks for gives its scores, and how far BACS is from the other rows, as in `bacs report`.
"""

import re

import tuning_tables
from pages import ROOT, write_table

from bacs.report.comparison import comparisons
from bacs.report.contents import chapter
from bacs.report.formats import markdown
from bacs.report.records import read
from bacs.report.tables import ReportTable

PAGE = "docs/benchmark.md"


def tables(name: str) -> list[ReportTable]:
    """The scores and the differences of a sweep, of each data set and protocol in it."""
    chapters = [chapter(comparison) for comparison in comparisons(read(ROOT / "results" / name).records)]
    parts = [part for each in chapters for part in each.parts]
    return [table for part in parts if part.heading in ("Scores", "Differences") for table in part.tables]


def lines(name: str) -> list[str]:
    """What stands between the marks of a sweep."""
    text = "\n".join(markdown(table, heading="####") for table in tables(name))
    return ["", *text.splitlines(), ""]


def marked() -> list[str]:
    """The sweeps that the page has marks for."""
    named = re.findall(r"<!-- table: (.+?) -->", (ROOT / PAGE).read_text())
    return [name for name in named if name != tuning_tables.TITLE]


if __name__ == "__main__":
    for name in marked():
        write_table(PAGE, name, lines(name))
