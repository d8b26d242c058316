"""Scores by corruption, by severity, their spread over corruptions, and the mean corruption error."""

from collections.abc import Sequence

import numpy as np

from bacs.metrics import ALEXNET_ERROR, MCE, SCORES, mce
from bacs.report.comparison import Comparison, Entry, Shift, stem
from bacs.report.main_table import coverage_notes
from bacs.report.names import KINDS, of_corruption, quantity
from bacs.report.paper import paper_table
from bacs.report.tables import EMPTY, Column, Line, ReportTable, TableCell, cell_of, cells_of

BY_CORRUPTION = ("accuracy", "nll")
SPREAD = ("min", "25 %", "median", "75 %", "max", "mean")


def kind_names(comparison: Comparison) -> list[tuple[str, str]]:
    """The kinds of row that there are, each with its word."""
    return [(kind, KINDS[kind]) for kind in comparison.kinds]


def corruption_tables(comparison: Comparison) -> list[ReportTable]:
    """Accuracy and NLL of every corruption, a table each for single models and ensembles; missing cells stay empty."""
    corruptions = list(dict.fromkeys(shift.corruption for shift in comparison.shifts if shift.corruption))
    if len(corruptions) < 2:
        return []
    severities = sorted({shift.severity for shift in comparison.shifts if shift.severity})
    over = f"severity {severities[0]}" if len(severities) == 1 else f"mean over severities {_number_range(severities)}"
    notes = () if len(severities) == 1 else ("A cell is empty until all severities of its corruption are there.",)
    tables = []
    for kind, spoken in kind_names(comparison):
        entries = comparison.of_kind(kind)
        columns = tuple(Column(entry.label, method=entry.method) for entry in entries)
        for name in BY_CORRUPTION:
            score, lines = SCORES[name], []
            for corruption in corruptions:
                shifts = [shift for shift in comparison.shifts if shift.corruption == corruption]
                values = [_mean_if_whole(entry, shifts, name) for entry in entries]
                lines.append(Line(of_corruption(corruption), tuple(cells_of(score, values))))
            whole = [entry.mean(comparison.common, name) if comparison.common else np.nan for entry in entries]
            lines.append(Line("mean", tuple(cells_of(score, whole)), block="mean"))
            heading = f"{comparison.name}: {score.label} by corruption, {spoken}, {over}; {score.direction}"
            remarks = (*notes, *(f"In the last line: {note}" for note in coverage_notes(comparison)))
            stem_ = f"{stem(comparison)}-by-corruption-{kind}-{name}"
            tables.append(ReportTable(stem_, heading, "Corruption", columns, tuple(lines), remarks))
    return tables


def severity_table(comparison: Comparison) -> ReportTable | None:
    """Mean accuracy and NLL over corruptions at each severity, None where there is one severity, or a stream."""
    severities = comparison.severities
    if len(severities) < 2 or not comparison.corruptions:
        return None
    columns, cells = [], []
    for name in BY_CORRUPTION:
        for severity in severities:
            shifts = [shift for shift in comparison.common if shift.severity == severity]
            columns.append(Column(str(severity), f"{SCORES[name].label} at severity"))
            cells.append(cells_of(SCORES[name], [entry.mean(shifts, name) for entry in comparison.entries]))
    lines = tuple(
        Line(entry.label, tuple(column[index] for column in cells), entry.method, entry.kind)
        for index, entry in enumerate(comparison.entries)
    )
    ways = ", ".join(f"{SCORES[name].label}: {SCORES[name].direction}" for name in BY_CORRUPTION)
    heading = f"{comparison.name}: by severity, mean over corruptions; {ways}"
    notes = [*coverage_notes(comparison), *_uneven_note(comparison)]
    return ReportTable(f"{stem(comparison)}-by-severity", heading, "Method", tuple(columns), lines, tuple(notes))


def spread_tables(comparison: Comparison) -> list[ReportTable]:
    """What the box plots show: the spread of each score over corruptions, by severity and row."""
    if len(comparison.severities) < 2:
        return []
    columns = tuple(Column(heading) for heading in SPREAD)
    tables = []
    for name, score in SCORES.items():
        lines = []
        for severity in comparison.severities:
            for entry in comparison.entries:
                values = severity_scores(comparison, entry, severity, name)
                cells = tuple(cell_of(score, value) for value in spread(values))
                lines.append(Line(f"{severity}: {entry.label}", cells, entry.method, str(severity)))
        over = f"spread of {score.label} over corruptions; {score.direction}"
        title = f"{comparison.name}: {over}"
        stem_ = f"{stem(comparison)}-spread-{name}"
        tables.append(
            ReportTable(stem_, title, "Severity and method", columns, tuple(lines), tuple(_uneven_note(comparison)))
        )
    return tables


def severity_scores(comparison: Comparison, entry: Entry, severity: int, name: str) -> list[float]:
    """A row's score on each corruption at one severity."""
    return [entry.score(shift.name, name) for shift in comparison.common if shift.severity == severity]


def spread(values: Sequence[float]) -> list[float]:
    """Minimum, quartiles, maximum and mean."""
    return [*np.quantile(values, (0, 0.25, 0.5, 0.75, 1)).tolist(), float(np.mean(values))]


def mce_table(comparison: Comparison) -> ReportTable | None:
    """mCE of each row, None unless all 15 corruptions of ImageNet-C are there at all 5 severities.

    AlexNet's errors are those on ImageNet-C; for other data the ratio would have no meaning.
    """
    errors_at = {(shift.corruption, shift.severity): shift.name for shift in comparison.common}
    wanted = {(corruption, severity) for corruption in ALEXNET_ERROR for severity in range(1, 6)}
    if comparison.data != "imagenet-c" or not wanted <= errors_at.keys():
        return None
    values = [
        mce({c: [1 - entry.score(errors_at[c, s], "accuracy") for s in range(1, 6)] for c in ALEXNET_ERROR})
        for entry in comparison.entries
    ]
    beside = paper_table(comparison, "mce")
    columns = [Column(MCE.label, "here" if beside else "", score=MCE)]
    theirs: list[tuple[TableCell, ...]] = [() for _ in values]
    if beside:
        columns.append(Column(MCE.label, "paper", score=MCE))
        leader = beside.best("mce", MCE)
        for index, entry in enumerate(comparison.entries):
            text = beside.scores.get((entry.method, entry.kind, entry.variant.epochs), {}).get("mce")
            theirs[index] = (TableCell(text, float(text), float(text) == leader) if text else EMPTY,)
    lines = tuple(
        Line(entry.label, (cell, *other), entry.method, entry.kind)
        for entry, cell, other in zip(comparison.entries, cells_of(MCE, values), theirs, strict=True)
    )
    over = "mean over the 15 corruptions of all 5 severities each"
    notes = [f"In percent of AlexNet's error, {over}."]
    if beside:
        notes.append(f"paper: Table {beside.number} of Zhou & Levine 2021.")
    return ReportTable(
        f"{stem(comparison)}-mce",
        f"{comparison.name}: mean corruption error",
        "Method",
        tuple(columns),
        lines,
        tuple(notes),
    )


def _mean_if_whole(entry: Entry, shifts: Sequence[Shift], name: str) -> float:
    return entry.mean(shifts, name) if all(shift.name in entry.records for shift in shifts) else float("nan")


def _uneven_note(comparison: Comparison) -> list[str]:
    """A remark if severities do not have the same corruptions."""
    numbers = {
        severity: sum(shift.severity == severity for shift in comparison.common) for severity in comparison.severities
    }
    if len(set(numbers.values())) == 1:
        return []
    listed = ", ".join(f"{quantity(number, 'corruption')} at {severity}" for severity, number in numbers.items())
    return [f"Severities do not have the same corruptions: {listed}."]


def _number_range(numbers: Sequence[int]) -> str:
    return f"{numbers[0]}–{numbers[-1]}" if len(numbers) > 2 else " and ".join(map(str, numbers))
