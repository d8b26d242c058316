"""Tables as Markdown."""

from bacs.report.tables import Cell, Table


def markdown(table: Table, *, heading: str = "###") -> str:
    """A heading, the table, its notes. Columns of a group carry its name, since Markdown cannot span columns."""
    titles = [(f"{c.group} " if c.group not in ("", "here") else "") + c.heading_with_arrow for c in table.columns]
    rows = [[table.stub, *titles], ["---", *("---:" for _ in titles)]]
    for line in table.lines:
        rows.append([_escaped(line.label), *map(_cell, line.cells)])
    rows[0] = [_escaped(text) for text in rows[0]]
    lines = [f"{heading} {_escaped(table.title)}", "", *(f"| {' | '.join(row)} |" for row in rows)]
    for note in table.notes:
        lines += ["", _escaped(note)]
    return "\n".join(lines) + "\n"


def _cell(cell: Cell) -> str:
    text = _escaped(cell.text)
    return f"**{text}**" if cell.best else text


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    flat = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in r"\`*_[]<>|" else letter for letter in flat)
