"""A table as data, before it is Markdown, LaTeX, CSV, HTML or lines on a terminal."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bacs.metrics import Score


class TableCell(NamedTuple):
    """What is printed, the number behind it, and whether it is the best of its kind."""

    text: str
    value: float | None = None
    best: bool = False


EMPTY = TableCell("–")


class Column(NamedTuple):
    """A heading under a heading of several columns; `method` where the column is one method's.

    `score` where the numbers are of one score: people are then told which way is better, programs are not.
    `words` where there are sentences in place of numbers.
    """

    heading: str
    group: str = ""
    method: str | None = None
    score: Score | None = None
    words: bool = False

    @property
    def heading_with_arrow(self) -> str:
        """The heading with an arrow to where better numbers lie."""
        return f"{self.heading} {self.score.arrow}" if self.score else self.heading


class Line(NamedTuple):
    """Cells behind a label; lines of one `block` stand together, `method` where the line is one method's."""

    label: str
    cells: tuple[TableCell, ...]
    method: str | None = None
    block: str = ""


class ReportTable(NamedTuple):
    """`name` is the stem of its files, `stub` the heading over the labels."""

    name: str
    title: str
    stub: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


def cell_of(score: Score, value: float, leader: str | None = None) -> TableCell:
    """The cell of one score; empty if there is none."""
    return EMPTY if np.isnan(value) else TableCell(score.text(value), score.shown(value), score.text(value) == leader)


def cells_of(score: Score, values: Sequence[float]) -> list[TableCell]:
    """Cells of one score, the best marked. They are compared as printed, so that equal figures are equally bold."""
    several = np.count_nonzero(~np.isnan(values)) > 1
    leader = score.text(score.best(values)) if several else None
    return [cell_of(score, value, leader) for value in values]
