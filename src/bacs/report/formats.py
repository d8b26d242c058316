"""Tables as text: Markdown and LaTeX for people, comma-separated values for programs."""

import csv
import io
from collections.abc import Callable
from itertools import groupby

from bacs.report.tables import Column, ReportTable, TableCell

_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
    "−": r"$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "→": r"$\to$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "∞": r"$\infty$",
    "√": r"$\surd$",
    "Δ": r"$\Delta$",
}


def markdown(table: ReportTable, *, heading: str = "###") -> str:
    """A heading, the table, its notes. Columns of a group carry its name, since Markdown cannot span columns."""
    titles = [(f"{c.group} " if c.group not in ("", "here") else "") + c.heading_with_arrow for c in table.columns]
    rows = [[_escape_markdown(text) for text in (table.stub, *titles)], ["---", *("---:" for _ in titles)]]
    for line in table.lines:
        rows.append([_escape_markdown(line.label), *map(_markdown_cell, line.cells)])
    lines = [f"{heading} {_escape_markdown(table.title)}", "", *(f"| {' | '.join(row)} |" for row in rows)]
    for note in table.notes:
        lines += ["", _escape_markdown(note)]
    return "\n".join(lines) + "\n"


def _markdown_cell(cell: TableCell) -> str:
    text = _escape_markdown(cell.text)
    return f"**{text}**" if cell.best else text


def _escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    flat = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in r"\`*_[]<>|" else letter for letter in flat)


def latex(table: ReportTable) -> str:
    r"""A table environment with the rules of booktabs (`\usepackage{booktabs}`), one between blocks; notes below."""
    words = sum(column.words for column in table.columns)
    aligned = "".join(rf"p{{{0.7 / words:.2f}\linewidth}}" if column.words else "r" for column in table.columns)
    lines = [
        r"\begin{table}[tb]",
        r"\centering",
        r"\small",
        rf"\caption{{{escape_latex(table.title)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{@{{}}l{aligned}@{{}}}}",
        r"\toprule",
        *_latex_groups(table.columns),
        _latex_row([escape_latex(table.stub), *(escape_latex(column.heading_with_arrow) for column in table.columns)]),
    ]
    for _, block in groupby(table.lines, key=lambda line: line.block):
        lines.append(r"\midrule")
        lines += [_latex_row([escape_latex(line.label), *map(_latex_cell, line.cells)]) for line in block]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {escape_latex(note)}}}" for note in table.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is; letters that plain LaTeX lacks become a question mark in brackets."""
    pieces = (_LATEX_SPECIAL.get(letter, letter if letter.isascii() else "[?]") for letter in " ".join(text.split()))
    return "".join(pieces)


def _latex_groups(columns: tuple[Column, ...]) -> list[str]:
    """The line of headings over several columns, with a thin rule under each."""
    if not any(column.group for column in columns):
        return []
    cells, rules, start = [""], [], 2
    for group, members in groupby(columns, key=lambda column: column.group):
        span = len(list(members))
        cells.append(rf"\multicolumn{{{span}}}{{c}}{{{escape_latex(group)}}}")
        if group:
            rules.append(rf"\cmidrule(lr){{{start}-{start + span - 1}}}")
        start += span
    return [_latex_row(cells), "".join(rules)]


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(cell: TableCell) -> str:
    text = escape_latex(cell.text)
    return rf"\textbf{{{text}}}" if cell.best else text


def comma_separated(table: ReportTable) -> str:
    """A line of headings, then the lines: numbers in full, no marks; a missing one is empty, an infinite one `inf`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([table.stub, *(" ".join(filter(None, (c.group, c.heading))) for c in table.columns)])
    for line in table.lines:
        numbers = ("" if cell.value is None else repr(float(cell.value)) for cell in line.cells)
        writer.writerow([line.label, *numbers])
    return out.getvalue()


FORMATS: dict[str, Callable[[ReportTable], str]] = {"md": markdown, "tex": latex, "csv": comma_separated}
"""The ending of a table's file -> what makes its text."""
