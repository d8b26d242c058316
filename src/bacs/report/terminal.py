"""Tables for the terminal."""

from collections.abc import Sequence

from rich.table import Table

from bacs.report.rows import COLUMNS, Row, best, formatted


def terminal_table(rows: Sequence[Row]) -> Table:
    """Rows and columns of the paper; the best value of each column is bold."""
    shown = Table(show_edge=False, pad_edge=False)
    shown.add_column("Method")
    for name, heading in COLUMNS.items():
        arrow = "↑" if name == "accuracy" else "↓"
        shown.add_column(f"{heading} {arrow}", justify="right")
    leaders = best(rows)
    for index, row in enumerate(rows):
        if index and row.kind != rows[index - 1].kind:
            shown.add_section()
        cells = []
        for name in COLUMNS:
            # Compared as printed, so that equal figures are equally bold.
            leads = formatted(name, row.scores[name]) == formatted(name, leaders[name])
            cells.append(
                f"[bold]{formatted(name, row.scores[name])}[/bold]" if leads else formatted(name, row.scores[name])
            )
        shown.add_row(row.label, *cells)
    return shown
