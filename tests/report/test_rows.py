from io import StringIO

import pytest
from rich.console import Console

from bacs.report.rows import table
from bacs.report.terminal import terminal_table


def record(shift, method, accuracy, nll=1.0):
    scores = {"accuracy": accuracy, "nll": nll, "brier": 0.5, "ece": 0.1}
    return {"shift": shift, "method": method, "single": scores | {"accuracy": accuracy - 0.1}, "ensemble": scores}


RECORDS = [
    record("fog", "tent", 0.6),
    record("snow", "tent", 0.8, nll=3.0),
    record("fog", "vanilla", 0.3),
    record("snow", "vanilla", 0.2),
]


def test_rows_stand_in_the_papers_order_and_average_over_shifts():
    rows = table(RECORDS)
    assert [row.label for row in rows] == ["Vanilla", "TENT", "Vanilla Ensemble", "Ensemble TENT"]
    assert rows[1].scores["accuracy"] == pytest.approx(0.6)
    assert rows[3].scores["accuracy"] == pytest.approx(0.7)
    assert rows[3].scores["nll"] == pytest.approx(2.0)


def test_the_terminal_table_marks_equal_leaders_equally():
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=100, color_system="standard")
    console.print(terminal_table(table(RECORDS)))
    printed = out.getvalue().splitlines()
    assert all(heading in printed[0] for heading in ("Acc ↑", "NLL ↓", "Brier ↓", "ECE ↓"))

    def line(label):
        return next(text for text in printed if text.split("│")[0].strip() == label)

    assert "\x1b[1m70.00" in line("Ensemble TENT")
    assert "\x1b[1m1.0000" in line("Vanilla")
    assert "\x1b[1m1.0000" in line("Vanilla Ensemble")
    assert "\x1b[1m60.00" not in line("TENT")
