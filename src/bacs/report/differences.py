"""How sure the order of rows is: differences to BACS on the same shifts, with their standard error."""

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from bacs.metrics import SCORES
from bacs.report.comparison import Comparison, Entry
from bacs.report.names import counted
from bacs.report.summary import stem, title
from bacs.report.tables import EMPTY, Cell, Column, Line, Table

REFERENCES = ("bacs", "bacs-no-posterior")
LEVEL = 0.95
"""Share of intervals that hold the true mean, where differences are independent and normal."""
COUNTED = ("accuracy", "nll")
"""Scores by which the shifts are counted that BACS wins."""


def differences_table(comparison: Comparison) -> Table | None:
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
        f"{counted(len(shifts), 'shift')}, ± one standard error over shifts (deviation / √shifts). Accuracy in points; "
        "where BACS is better, its difference is positive in accuracy and negative in the other scores. Shifts share "
        "their images and networks: the error says how far the order of rows depends on the choice of shifts, not what "
        "another test set or training seed would give.",
    )
    return Table(
        f"{stem(comparison)}-differences",
        f"{title(comparison)}: {references[-1]} minus each other row",
        f"{references[-1]} minus",
        tuple(columns),
        tuple(lines),
        notes,
    )


def paired(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error of the differences of pairs; not a number if one of them is infinite."""
    with np.errstate(invalid="ignore"):
        difference = np.subtract(first, second)
    if not np.isfinite(difference).all():
        return float("nan"), float("nan")
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def paired_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float, float]:
    """Mean of the differences of pairs, and the ends of its interval by Student's t; not a number as in `paired`.

    d_i = first_i - second_i,   mean(d) ± t_{(1 + level) / 2, n - 1} s(d) / √n,   level = 0.95
    """
    mean, error = paired(first, second)
    reach = float(stdtrit(len(first) - 1, (1 + LEVEL) / 2)) * error
    return mean, mean - reach, mean + reach


def _line(reference: Entry, other: Entry, shifts: Sequence[str]) -> Line:
    pairs = {name: [(reference.score(shift, name), other.score(shift, name)) for shift in shifts] for name in SCORES}
    cells = []
    for name, score in SCORES.items():
        mean, error = map(score.shown, paired(*zip(*pairs[name], strict=True)))
        text = f"{mean:+.{score.digits}f} ± {error:.{score.digits}f}".replace("-", "−")
        cells.append(EMPTY if np.isnan(mean) else Cell(text, mean))
    for name in COUNTED:
        won = sum(SCORES[name].better(*pair) for pair in pairs[name])
        cells.append(Cell(f"{won}/{len(shifts)}", float(won)))
    return Line(other.label, tuple(cells), other.method, reference.kind)
