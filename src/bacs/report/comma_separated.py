"""Tables as comma-separated values, for programs: numbers in full, no marks."""

import csv
import io

from bacs.report.tables import Cell, Table


def comma_separated(table: Table) -> str:
    """A line of headings, then a line each; a missing number is empty, an infinite one `inf`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([table.stub, *(" ".join(filter(None, (c.group, c.heading))) for c in table.columns)])
    for line in table.lines:
        writer.writerow([line.label, *map(_value, line.cells)])
    return out.getvalue()


def _value(cell: Cell) -> str:
    return "" if cell.value is None else repr(float(cell.value))
