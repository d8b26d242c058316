"""Tables as text: what a reader of each format gets back."""

import csv
import io
import re
import subprocess

import pytest
from rich.console import Console

from bacs.metrics import SCORES
from bacs.report.comparison import comparisons
from bacs.report.contents import chapter
from bacs.report.formats import comma_separated, escape_latex, latex, markdown
from bacs.report.tables import EMPTY, Column, Line, ReportTable, TableCell
from bacs.report.terminal import TerminalTable, fit_to_width, stack
from sweep_records import make_records

TABLE = ReportTable(
    "name",
    "50 % of A_b & c",
    "Method",
    (Column("Acc", "here"), Column("NLL", "here"), Column("Acc", "paper")),
    (
        Line("Vanilla", (TableCell("59.90", 59.8999), TableCell("∞", float("inf")), EMPTY), "vanilla", "single"),
        Line(
            "a|b *c*",
            (TableCell("87.77", 87.77, True), TableCell("0.4260", 0.426), TableCell("+1 ± 2", 1.0)),
            "bacs",
            "ensemble",
        ),
    ),
    ("A note → with <signs> & 2 × √3 − 1.",),
)


def test_markdown_has_the_cells_and_keeps_texts_as_they_are():
    lines = markdown(TABLE).splitlines()
    assert lines[0] == r"### 50 % of A\_b & c"
    assert lines[2] == "| Method | Acc | NLL | paper Acc |"
    assert lines[3] == "| --- | ---: | ---: | ---: |"
    assert lines[4] == "| Vanilla | 59.90 | ∞ | – |"
    assert lines[5] == r"| a\|b \*c\* | **87.77** | 0.4260 | +1 ± 2 |"
    assert lines[7] == r"A note → with \<signs\> & 2 × √3 − 1."


def test_comma_separated_values_are_the_numbers_in_full():
    rows = list(csv.reader(io.StringIO(comma_separated(TABLE))))
    assert rows[0] == ["Method", "here Acc", "here NLL", "paper Acc"]
    assert rows[1] == ["Vanilla", "59.8999", "inf", ""]
    assert [float(text) for text in rows[2][1:]] == [87.77, 0.426, 1.0]


def test_latex_escapes_all_that_is_special():
    assert escape_latex(r"a_b & 5 % #1 $x$ {y} \z ^ ~ <>") == (
        r"a\_b \& 5 \% \#1 \$x\$ \{y\} \textbackslash{}z \textasciicircum{} \textasciitilde{} "
        r"\textless{}\textgreater{}"
    )
    assert escape_latex("1 ± 2 → ∞ × −3 – √ Δ").isascii()
    assert escape_latex("Acc ↑ NLL ↓") == r"Acc $\uparrow$ NLL $\downarrow$"
    assert escape_latex("数") == "[?]"


def tables_of_a_sweep():
    (comparison,) = comparisons(make_records() + make_records(methods=("bacs",), epochs=5))
    return [TABLE, *chapter(comparison).tables]


@pytest.mark.parametrize("table", tables_of_a_sweep(), ids=lambda table: table.name)
def test_latex_rows_have_as_many_cells_as_columns(table):
    text = latex(table)
    assert text.isascii()
    begun, ended = (re.findall(rf"\\{word}{{(\w+)}}", text) for word in ("begin", "end"))
    assert (begun, ended) == (["table", "tabular"], ["tabular", "table"])
    assert [text.count(rf"\{rule}") for rule in ("toprule", "bottomrule")] == [1, 1]
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) >= 1 + len(table.lines)
    for row in rows:
        spans = sum(int(span) - 1 for span in re.findall(r"\\multicolumn{(\d+)}", row))
        assert len(re.findall(r"(?<!\\)&", row)) + spans == len(table.columns), row


@pytest.mark.needs("pdflatex")
def test_latex_compiles(tmp_path):
    tables = tables_of_a_sweep()
    head = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
    (tmp_path / "tables.tex").write_text(head + "\n".join(map(latex, tables)) + "\\end{document}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert len(tables) == 8
    assert (tmp_path / "tables.pdf").exists()


def test_the_terminal_shows_groups_over_headings_and_leaves_the_paper_out_where_it_is_narrow():
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system="standard")
    console.print(TerminalTable(fit_to_width(TABLE, 100)))
    wide = console.file.getvalue()
    assert "paper" in wide
    assert "\x1b[1m87.77" in wide
    narrow = fit_to_width(TABLE, 20)
    assert [column.heading for column in narrow.columns] == ["Acc", "NLL"]
    assert [len(each.cells) for each in narrow.lines] == [2, 2]


def test_people_are_told_which_way_is_better_and_programs_get_the_plain_name():
    columns = (Column("Acc", "here", score=SCORES["accuracy"]), Column("NLL", "paper", score=SCORES["nll"]))
    table = TABLE._replace(columns=columns, lines=tuple(line._replace(cells=line.cells[:2]) for line in TABLE.lines))
    assert "| Method | Acc ↑ | paper NLL ↓ |" in markdown(table)
    assert r"Method & Acc $\uparrow$ & NLL $\downarrow$ \\" in latex(table)
    assert comma_separated(table).splitlines()[0] == "Method,here Acc,paper NLL"
    assert "Acc ↑" in printed(table, 80)


def printed(table, width):
    console = Console(file=io.StringIO(), width=width)
    console.print(TerminalTable(table))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [24, 40, 60, 80])
@pytest.mark.parametrize("table", tables_of_a_sweep(), ids=lambda table: table.name)
def test_a_narrow_terminal_cuts_no_number(table, width):
    text = printed(table, width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert "…" not in text
    found = text.replace("│", " ").split()
    for line in table.lines:
        for cell in line.cells:
            assert all(word in found for word in cell.text.split()), cell.text
    for column in table.columns:
        assert all(word in text for word in column.heading.split())


def test_sixty_columns_hold_a_table_of_scores_in_one_piece_by_folding_its_labels():
    cells = tuple(TableCell(text) for text in ("87.77", "0.4260", "0.1809", "0.0299"))
    columns = tuple(Column(score.label, score=score) for score in SCORES.values())
    lines = (Line("BACS (MAP) - posterior (5 epochs, posterior weight 0.0001)", cells),)
    text = printed(ReportTable("", "", "Method", columns, lines), 60)
    assert text.count("Method") == 1
    assert all(f"{score.label} {score.arrow}" in text for score in SCORES.values())
    (row,) = [line for line in text.splitlines() if "87.77" in line]
    assert [part.strip() for part in row.split("│")[1:]] == ["87.77", "0.4260", "0.1809", "0.0299"]
    assert "weight" in text


def test_columns_that_have_no_place_stand_below_behind_the_labels():
    columns = tuple(Column(f"{number} epochs") for number in range(9))
    lines = tuple(Line(label, tuple(TableCell(f"{number}.0000") for number in range(9))) for label in ("one", "two"))
    parts = stack(ReportTable("", "", "Method", columns, lines), 60)
    assert [column.heading.split()[0] for part in parts for column in part.columns] == list("012345678")
    assert [[line.label for line in part.lines] for part in parts] == [["one", "two"]] * len(parts)
    assert len(parts) == 2
