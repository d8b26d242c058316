"""What each row gains over BN Adapt on the same shifts: the mean difference, and an interval around it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bacs.metrics import SCORES
from bacs.report.comparison import Comparison, Entry, Shift
from bacs.report.differences import LEVEL, paired_interval
from bacs.report.names import counted, of_data
from bacs.report.summary import stem
from bacs.report.tables import EMPTY, Cell, Column, Line, Table

BASELINES = ("bn", "vanilla")
ENDS = ("mean", "from", "to")


class Gain(NamedTuple):
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


def others(entries: Sequence[Entry]) -> list[Entry]:
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


def gains(comparison: Comparison, kind: str, name: str) -> list[Gain]:
    """The gain of every row of a kind but the baseline, each corruption counted once."""
    entries, groups = comparison.of_kind(kind), shifts_by_corruption(comparison).values()
    base = [baseline(entries).mean(shifts, name) for shifts in groups]
    return [
        Gain(entry, *paired_interval([entry.mean(shifts, name) for shifts in groups], base))
        for entry in others(entries)
    ]


def has_gains(comparison: Comparison) -> bool:
    """Whether there are rows to compare, on corruptions enough for an interval."""
    return len(shifts_by_corruption(comparison)) > 1 and any(
        others(comparison.of_kind(kind)) for kind in comparison.kinds
    )


def gains_table(comparison: Comparison) -> Table:
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
    heading = f"{of_data(comparison.data)}, {comparison.protocol}: each row minus {name}"
    return Table(f"{stem(comparison)}-gains", heading, "Method", columns, lines, (interval_note(comparison),))


def interval_note(comparison: Comparison) -> str:
    """What the intervals are, in a sentence or two."""
    number = counted(len(shifts_by_corruption(comparison)), "corruption" if comparison.corruptions else "shift")
    return (
        f"Mean difference on {number}, paired, with the {LEVEL:.0%} interval of Student's t over them: "
        "mean ± t · deviation / √number. It says how far the mean depends on which corruptions there are, not what "
        "other images or networks would give."
    ).replace("%", " %")


def _cells(name: str, gain: Gain) -> list[Cell]:
    score = SCORES[name]
    values = [score.shown(value) for value in (gain.mean, gain.low, gain.high)]
    if not np.isfinite(values).all():
        return [EMPTY] * len(ENDS)
    return [Cell(f"{value:+.{score.digits}f}".replace("-", "−"), value) for value in values]
