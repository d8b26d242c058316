"""Tables for the terminal: however narrow it is, no number is cut."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.console import Console, ConsoleOptions
from rich.markup import escape
from rich.table import Table as RichTable

from bacs.report.tables import Column, ReportTable

BETWEEN = 3
"""Letters from one column to the next: a rule and its margins."""


@dataclass(frozen=True)
class TerminalTable:
    """A table that fits itself into the width it is printed in.

    Labels and headings fold at their spaces; columns that still have no place stand below, behind the labels again.
    """

    table: ReportTable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RichTable | str]:
        for number, part in enumerate(stack(self.table, options.max_width)):
            if number:
                yield ""
            yield _rich_table(part)


def fit_to_width(table: ReportTable, width: int) -> ReportTable:
    """The table, or where a terminal of this width has no place for it, the table without the paper's figures."""
    if _natural_width(table) <= width:
        return table
    kept = [index for index, column in enumerate(table.columns) if column.group != "paper"]
    part = _select(table, kept)
    return part._replace(
        columns=tuple(column._replace(group="") for column in part.columns),
        notes=tuple(note for note in table.notes if not note.startswith("paper: ")),
    )


def stack(table: ReportTable, width: int) -> list[ReportTable]:
    """The table whole if it fits into a width, or else parts of as many columns as have place beside folded labels."""
    if _natural_width(table) <= width:
        return [table]
    table = table._replace(
        columns=tuple(_fold(*each) for each in zip(table.columns, _widths_of_cells(table), strict=True))
    )
    longest_word = max(len(word) for label in _labels(table) for word in label.split() or [""])
    words = min(longest_word, width // 2)  # longer ones break
    parts: list[list[int]] = [[]]
    used = words
    for index, column in enumerate(_widths(table)):
        if parts[-1] and used + BETWEEN + column > width:
            parts.append([])
            used = words
        parts[-1].append(index)
        used += BETWEEN + column
    return [_select(table, part) for part in parts]


def _fold(column: Column, width: int) -> Column:
    """The column with headings of several lines, none wider than its cells if words allow."""
    over, heading = ("\n".join(wrap(text, width, break_long_words=False)) for text in (column.group, column.heading))
    return column._replace(heading=heading, group=over)


def _rich_table(table: ReportTable) -> RichTable:
    """The group of a column stands over its heading, a rule between blocks; labels alone may fold."""
    shown = RichTable(show_edge=False, pad_edge=False)
    shown.add_column(escape(table.stub), vertical="bottom", overflow="fold")
    for column in table.columns:
        over = f"{column.group}\n" if column.group else ""
        shown.add_column(escape(f"{over}{column.heading_with_arrow}"), justify="right", no_wrap=True)
    for index, line in enumerate(table.lines):
        if index and line.block != table.lines[index - 1].block:
            shown.add_section()
        cells = (f"[bold]{escape(cell.text)}[/bold]" if cell.best else escape(cell.text) for cell in line.cells)
        shown.add_row(escape(line.label), *cells)
    return shown


def _select(table: ReportTable, kept: Sequence[int]) -> ReportTable:
    """The table with some of its columns."""
    return table._replace(
        columns=tuple(table.columns[index] for index in kept),
        lines=tuple(line._replace(cells=tuple(line.cells[index] for index in kept)) for line in table.lines),
    )


def _labels(table: ReportTable) -> list[str]:
    return [table.stub, *(line.label for line in table.lines)]


def _natural_width(table: ReportTable) -> int:
    """Letters that a table takes where nothing is folded."""
    return max(map(len, _labels(table))) + sum(BETWEEN + width for width in _widths(table))


def _widths(table: ReportTable) -> list[int]:
    """Letters that each column takes, with its headings."""
    headings = [f"{column.group}\n{column.heading_with_arrow}".split("\n") for column in table.columns]
    cells = _widths_of_cells(table)
    return [max(own, *map(len, lines)) for own, lines in zip(cells, headings, strict=True)]


def _widths_of_cells(table: ReportTable) -> list[int]:
    return [
        max((len(line.cells[index].text) for line in table.lines), default=1) for index in range(len(table.columns))
    ]
