"""Tables for the terminal."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table as RichTable

from bacs.metrics import SCORES
from bacs.report.rows import Row
from bacs.report.tables import Column, Line, Table, cells_of

ARROWS = {score.label: " ↑" if score.higher_is_better else " ↓" for score in SCORES.values()}


def terminal_table(rows: Sequence[Row]) -> RichTable:
    """Rows and columns of the paper; the best value of each column is bold."""
    cells = [cells_of(score, [row.scores[name] for row in rows]) for name, score in SCORES.items()]
    lines = tuple(
        Line(row.label, own, row.method, row.kind) for row, own in zip(rows, zip(*cells, strict=True), strict=True)
    )
    return on_terminal(Table("", "", "Method", tuple(Column(score.label) for score in SCORES.values()), lines))


def fitted(table: Table, width: int) -> Table:
    """The table, or where a terminal of this width has no place for it, the table without the paper's figures."""
    if _width(table) <= width:
        return table
    kept = [index for index, column in enumerate(table.columns) if column.group != "paper"]
    return table._replace(
        columns=tuple(table.columns[index]._replace(group="") for index in kept),
        lines=tuple(line._replace(cells=tuple(line.cells[index] for index in kept)) for line in table.lines),
        notes=tuple(note for note in table.notes if not note.startswith("paper: ")),
    )


def on_terminal(table: Table) -> RichTable:
    """Any table; the group of a column stands over its heading, a rule between blocks."""
    shown = RichTable(show_edge=False, pad_edge=False)
    shown.add_column(escape(table.stub), vertical="bottom", no_wrap=True)
    for column in table.columns:
        over = f"{column.group}\n" if column.group else ""
        heading = column.heading + ARROWS.get(column.heading, "")
        shown.add_column(escape(f"{over}{heading}"), justify="right", no_wrap=True)
    for index, line in enumerate(table.lines):
        if index and line.block != table.lines[index - 1].block:
            shown.add_section()
        cells = (f"[bold]{escape(cell.text)}[/bold]" if cell.best else escape(cell.text) for cell in line.cells)
        shown.add_row(escape(line.label), *cells)
    return shown


def _width(table: Table) -> int:
    """Letters that the widest line takes."""
    label = max(len(text) for text in (table.stub, *(line.label for line in table.lines)))
    cells = [
        max(len(column.group), len(column.heading) + 2, *(len(line.cells[index].text) for line in table.lines))
        for index, column in enumerate(table.columns)
    ]
    return label + sum(cells) + 3 * len(cells)
