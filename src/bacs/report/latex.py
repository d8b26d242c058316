r"""Tables as LaTeX with the rules of booktabs (`\usepackage{booktabs}`)."""

from itertools import groupby

from bacs.report.tables import Cell, Column, Table

_SPECIAL = {
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


def latex(table: Table) -> str:
    """A table environment: caption, booktabs rules, one midrule between blocks, notes below."""
    words = sum(column.words for column in table.columns)
    aligned = "".join(rf"p{{{0.7 / words:.2f}\linewidth}}" if column.words else "r" for column in table.columns)
    lines = [
        r"\begin{table}[tb]",
        r"\centering",
        r"\small",
        rf"\caption{{{escaped(table.title)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{@{{}}l{aligned}@{{}}}}",
        r"\toprule",
        *_groups(table.columns),
        _row([escaped(table.stub), *(escaped(column.heading_with_arrow) for column in table.columns)]),
    ]
    for _, block in groupby(table.lines, key=lambda line: line.block):
        lines.append(r"\midrule")
        lines += [_row([escaped(line.label), *map(_cell, line.cells)]) for line in block]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {escaped(note)}}}" for note in table.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def escaped(text: str) -> str:
    """Text that LaTeX prints as it is; letters that plain LaTeX lacks become a question mark in brackets."""
    pieces = (_SPECIAL.get(letter, letter if letter.isascii() else "[?]") for letter in " ".join(text.split()))
    return "".join(pieces)


def _groups(columns: tuple[Column, ...]) -> list[str]:
    """The line of headings over several columns, with a thin rule under each."""
    if not any(column.group for column in columns):
        return []
    cells, rules, start = [""], [], 2
    for group, members in groupby(columns, key=lambda column: column.group):
        span = len(list(members))
        cells.append(rf"\multicolumn{{{span}}}{{c}}{{{escaped(group)}}}")
        if group:
            rules.append(rf"\cmidrule(lr){{{start}-{start + span - 1}}}")
        start += span
    return [_row(cells), "".join(rules)]


def _row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(cell: Cell) -> str:
    text = escaped(cell.text)
    return rf"\textbf{{{text}}}" if cell.best else text
