"""A table as data, before it is Markdown, LaTeX, CSV, HTML or lines on a terminal."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bacs.report.rows import formatted


class Cell(NamedTuple):
    """What is printed, the number behind it, and whether it is the best of its kind."""

    text: str
    value: float | None = None
    best: bool = False


EMPTY = Cell("–")


class Column(NamedTuple):
    """A heading under a heading of several columns; `method` where the column is one method's."""

    heading: str
    group: str = ""
    method: str | None = None


class Line(NamedTuple):
    """Cells behind a label; lines of one `block` stand together, `method` where the line is one method's."""

    label: str
    cells: tuple[Cell, ...]
    method: str | None = None
    block: str = ""


class Table(NamedTuple):
    """`name` is the stem of its files, `stub` the heading over the labels."""

    name: str
    title: str
    stub: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


def percent_or_score(name: str, value: float) -> float:
    """The number that `formatted` prints."""
    return 100 * value if name in ("accuracy", "mce") else value


def scored(name: str, values: Sequence[float]) -> list[Cell]:
    """Cells of one score, the best marked: the highest accuracy, the lowest of the rest.

    They are compared as printed, so that equal figures are equally bold.
    """
    choose: Callable[[Sequence[float]], float] = max if name == "accuracy" else min
    numbers = [value for value in values if not np.isnan(value)]
    leader = formatted(name, choose(numbers)) if len(numbers) > 1 else None
    return [
        EMPTY
        if np.isnan(value)
        else Cell(formatted(name, value), percent_or_score(name, value), formatted(name, value) == leader)
        for value in values
    ]
