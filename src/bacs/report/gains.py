"""How rows differ on the same shifts: each minus BN Adapt, BACS minus each, with the error of the mean difference."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from bacs.metrics import SCORES
from bacs.report.comparison import Comparison, Entry, Shift, stem
from bacs.report.main_table import title
from bacs.report.names import quantity
from bacs.report.tables import EMPTY, Column, Line, ReportTable, TableCell

BASELINES = ("bn", "vanilla")
ENDS = ("mean", "from", "to")
REFERENCES = ("bacs", "bacs-no-posterior")
LEVEL = 0.95
"""Share of intervals that hold the true mean, where differences are independent and normal."""
COUNTED = ("accuracy", "nll")
"""Scores by which the shifts are counted that BACS wins."""


class Difference(NamedTuple):
    """How a row differs from the baseline of its kind in one score; not a number if one of them is infinite."""

    entry: Entry
    mean: float
    low: float
    high: float


def baseline(entries: Sequence[Entry]) -> Entry:
    """The row that the others of its kind are compared with: BN Adapt moves no weight, so the rest is what moving did.

    Without it vanilla, and without that the first row.
    """
    return next((entry for method in BASELINES for entry in entries if entry.method == method), entries[0])


def without_baseline(entries: Sequence[Entry]) -> list[Entry]:
    """The rows beside the baseline."""
    return [entry for entry in entries if entry is not baseline(entries)]


def shifts_by_corruption(comparison: Comparison) -> dict[str, list[Shift]]:
    """The common shifts by corruption; a shift that has none stands for itself.

    The severities of a corruption are too much alike to count as several.
    """
    found: dict[str, list[Shift]] = {}
    for shift in comparison.common:
        found.setdefault(shift.corruption or shift.name, []).append(shift)
    return found


def gains(comparison: Comparison, kind: str, name: str) -> list[Difference]:
    """The gain of every row of a kind but the baseline, each corruption counted once."""
    entries, groups = comparison.of_kind(kind), shifts_by_corruption(comparison).values()
    base = [baseline(entries).mean(shifts, name) for shifts in groups]
    return [
        Difference(entry, *paired_interval([entry.mean(shifts, name) for shifts in groups], base))
        for entry in without_baseline(entries)
    ]


def has_gains(comparison: Comparison) -> bool:
    """Whether there are rows to compare, on corruptions enough for an interval."""
    return len(shifts_by_corruption(comparison)) > 1 and any(
        without_baseline(comparison.of_kind(kind)) for kind in comparison.kinds
    )


def gains_table(comparison: Comparison) -> ReportTable:
    """The numbers of the figures of gains."""
    by_score = {name: [gain for kind in comparison.kinds for gain in gains(comparison, kind, name)] for name in SCORES}
    lines = tuple(
        Line(
            row[0].entry.label,
            tuple(cell for name, gain in zip(SCORES, row, strict=True) for cell in _cells(name, gain)),
            row[0].entry.method,
            row[0].entry.kind,
        )
        for row in zip(*by_score.values(), strict=True)
    )
    columns = tuple(
        Column(end, f"Δ {score.label}", score=score if end == "mean" else None)
        for score in SCORES.values()
        for end in ENDS
    )
    name = baseline(comparison.entries).label
    heading = f"{comparison.name}: each row minus {name}"
    return ReportTable(f"{stem(comparison)}-gains", heading, "Method", columns, lines, (interval_note(comparison),))


def interval_note(comparison: Comparison) -> str:
    """What the intervals are, in a sentence or two."""
    number = quantity(len(shifts_by_corruption(comparison)), "corruption" if comparison.corruptions else "shift")
    return (
        f"Mean difference on {number}, paired, with the {LEVEL:.0%} interval of Student's t over them: "
        "mean ± t · deviation / √number. It says how far the mean depends on which corruptions there are, not what "
        "other images or networks would give."
    ).replace("%", " %")


def differences_table(comparison: Comparison) -> ReportTable | None:
    """BACS minus every other row of its kind, paired by shift: mean ± standard error, and the shifts that BACS wins.

    None where there are fewer than two shifts to compare on, or no BACS.
    """
    shifts = comparison.common
    if len(shifts) < 2:
        return None
    names = [shift.name for shift in shifts]
    lines, references = [], []
    for kind in comparison.kinds:
        entries = comparison.of_kind(kind)
        reference = next((e for method in REFERENCES for e in entries if e.method == method), None)
        if reference is None:
            return None
        references.append(reference.label)
        lines += [_line(reference, other, names) for other in entries if other is not reference]
    if not lines:
        return None
    columns = [Column(f"Δ {score.label}", score=score) for score in SCORES.values()]
    columns += [Column(SCORES[name].label, "shifts won") for name in COUNTED]
    notes = (
        f"{' and '.join(references)} minus the other rows of their block: means of the differences on "
        f"{quantity(len(shifts), 'shift')}, ± one standard error over shifts (deviation / √shifts). Accuracy in "
        "points; where BACS is better, its difference is positive in accuracy and negative in the other scores. Shifts "
        "share their images and networks: the error says how far the order of rows depends on the choice of shifts, "
        "not what another test set or training seed would give.",
    )
    return ReportTable(
        f"{stem(comparison)}-differences",
        f"{title(comparison)}: {references[-1]} minus each other row",
        f"{references[-1]} minus",
        tuple(columns),
        tuple(lines),
        notes,
    )


def paired_difference(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error of the differences of pairs; not a number if one of them is infinite."""
    with np.errstate(invalid="ignore"):
        difference = np.subtract(first, second)
    if not np.isfinite(difference).all():
        return float("nan"), float("nan")
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def paired_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float, float]:
    """Mean of the differences of pairs, and the ends of its interval by Student's t; not a number if one is infinite.

    d_i = first_i - second_i,   mean(d) ± t_{(1 + level) / 2, n - 1} s(d) / √n,   level = 0.95
    """
    mean, error = paired_difference(first, second)
    reach = float(stdtrit(len(first) - 1, (1 + LEVEL) / 2)) * error
    return mean, mean - reach, mean + reach


def _cells(name: str, gain: Difference) -> list[TableCell]:
    score = SCORES[name]
    values = [score.shown(value) for value in (gain.mean, gain.low, gain.high)]
    if not np.isfinite(values).all():
        return [EMPTY] * len(ENDS)
    return [TableCell(f"{value:+.{score.digits}f}".replace("-", "−"), value) for value in values]


def _line(reference: Entry, other: Entry, shifts: Sequence[str]) -> Line:
    pairs = {name: [(reference.score(shift, name), other.score(shift, name)) for shift in shifts] for name in SCORES}
    cells = []
    for name, score in SCORES.items():
        mean, error = map(score.shown, paired_difference(*zip(*pairs[name], strict=True)))
        text = f"{mean:+.{score.digits}f} ± {error:.{score.digits}f}".replace("-", "−")
        cells.append(EMPTY if np.isnan(mean) else TableCell(text, mean))
    for name in COUNTED:
        won = sum(SCORES[name].better(*pair) for pair in pairs[name])
        cells.append(TableCell(f"{won}/{len(shifts)}", float(won)))
    return Line(other.label, tuple(cells), other.method, reference.kind)
