"""The summary of an adaptation as lines for the screen."""

from bacs.agreement import Estimate
from bacs.data import Pictures
from bacs.predictions.summary import Summary
from bacs.predictions.table import Table

SHOWN_CLASSES = 12


def lines(summary: Summary, table: Table, found: Pictures) -> list[str]:
    """The summary for the screen."""
    shown = summary.classes[:SHOWN_CLASSES]
    names = [str(row.index) if row.name is None else row.name for row in shown]
    width = max(24, *(len(name) for name in names))
    text = [f"{'images predicted as':<{width}} {'before':>8} {'after':>8}"]
    text += [f"{name:<{width}} {row.before:>8} {row.after:>8}" for name, row in zip(names, shown, strict=True)]
    rest = summary.classes[SHOWN_CLASSES:]
    if rest:
        name = f"{len(rest)} other classes"
        text.append(f"{name:<{width}} {sum(row.before for row in rest):>8} {sum(row.after for row in rest):>8}")
    for name, field in (("mean confidence", "confidence"), ("effective classes", "effective_classes")):
        before, after = getattr(summary.before, field), getattr(summary.after, field)
        text.append(f"{name:<{width}} {before:>8.3f} {after:>8.3f}")
    if summary.estimated is not None:
        text.append(
            f"estimated accuracy {_range(summary.estimated.before)} before, {_range(summary.estimated.after)} after"
        )
    text.append(f"weights moved, in posterior standard deviations: {_distances(summary)}")
    flagged = int(table.abstain.sum())
    text.append(f"images: {summary.images}, flagged to abstain: {flagged}")
    if found.failures or found.ignored:
        text.append(f"pictures skipped: {len(found.failures)}, other files in the folder: {found.ignored}")
    return text + [f"warning: {warning}" for warning in summary.warnings]


def _range(guess: Estimate) -> str:
    return f"{100 * guess.ensemble:.0f} % ({100 * guess.low:.0f} to {100 * guess.high:.0f})"


def _distances(summary: Summary) -> str:
    if all(distance is None for distance in summary.moved):
        return "no posterior, or nothing adapted"
    return ", ".join("no posterior" if distance is None else f"{distance:.3g}" for distance in summary.moved)
