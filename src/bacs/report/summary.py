"""The paper's table: one row a method, alone and as ensemble, means over shifts, the paper's figures beside ours."""

import numpy as np

from bacs.benchmark.cell import parts
from bacs.metrics import SCORES
from bacs.report import paper
from bacs.report.comparison import Comparison, Entry
from bacs.report.names import counted, of_data, slug
from bacs.report.notes import coverage_notes, origin_note, paper_notes, precision_note
from bacs.report.tables import EMPTY, Cell, Column, Line, Table, cells_of


def summary_table(comparison: Comparison) -> Table:
    """Mean scores over the shifts that all rows have."""
    shifts = comparison.common
    beside = paper_table(comparison)
    cells = []
    for name, score in SCORES.items():
        values = [entry.mean(shifts, name) if shifts else np.nan for entry in comparison.entries]
        cells.append(cells_of(score, values))
    groups = ("here", "paper") if beside else ("",)
    columns = [Column(score.label, group, score=score) for group in groups for score in SCORES.values()]
    lines = [
        Line(entry.label, (*own, *(_printed_in(beside, entry) if beside else ())), entry.method, entry.kind)
        for entry, own in zip(comparison.entries, zip(*cells, strict=True), strict=True)
    ]
    notes = [origin_note(comparison), *coverage_notes(comparison), *precision_note(comparison)]
    if beside:
        notes += paper_notes(comparison, beside)
    return Table(stem(comparison), title(comparison), "Method", tuple(columns), tuple(lines), tuple(notes))


def paper_table(comparison: Comparison, score: str = "accuracy") -> paper.PaperTable | None:
    """The paper's table of the same shifts, None where the means are over others."""
    cells = {(shift.corruption, shift.severity) for shift in comparison.common}
    return paper.beside(comparison.data, comparison.protocol, cells, published=comparison.published, score=score)


def stem(comparison: Comparison) -> str:
    parts = [comparison.data, "published" if comparison.published else "", comparison.protocol]
    return "-".join(slug(part) for part in parts if part)


def title(comparison: Comparison) -> str:
    """Data, protocol, and what the means are over."""
    name = f"{of_data(comparison.data)}, {comparison.protocol}"
    if comparison.sequence:
        return f"{name}, {_in_a_row(comparison)}"
    corrupted = [shift for shift in comparison.common if shift.corruption]
    if not corrupted:
        number = len(comparison.common)
        return name if number == 1 else f"{name}, mean over {counted(number, 'shift')}"
    severities = comparison.severities
    over = counted(len(comparison.corruptions), "corruption")
    if len(severities) == 1:
        return f"{name}, mean over {over} at severity {severities[0]}"
    whole = len(comparison.corruptions) * len(severities) == len(corrupted)
    return f"{name}, mean over {over} {'×' if whole else 'and'} {len(severities)} severities"


def _in_a_row(comparison: Comparison) -> str:
    """What follows each other in a stream."""
    corruptions = counted(len({parts(name)[1] for name in comparison.sequence}), "corruption")
    severities = comparison.severities
    if len(severities) > 1:
        return f"{corruptions} one after the other, mean over {len(severities)} severities"
    return f"{corruptions} one after the other" + (f" at severity {severities[0]}" if severities else "")


def _printed_in(table: paper.PaperTable, entry: Entry) -> list[Cell]:
    """The paper's figures of a row, the best of its whole table marked."""
    found = table.scores.get((entry.method, entry.kind, entry.variant.epochs))
    if found is None:
        return [EMPTY] * len(SCORES)
    leaders = {name: table.best(name, score) for name, score in SCORES.items()}
    return [Cell(found[name], float(found[name]), float(found[name]) == leaders[name]) for name in SCORES]
