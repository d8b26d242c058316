"""What streams decided by themselves: marks on the axis of time, and the words to them.

A record may have `events`: `{"image" or "step", "what", "reason"}` each, `what` in words or as in a stream's history.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bacs.report.comparison import Comparison, Entry, Shift, setting_text
from bacs.report.figure_style import assign, colour
from bacs.report.records import Record
from bacs.report.tables import Column, Line, ReportTable, TableCell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NUMBERED = 24
"""Decisions of a row up to which each mark has its number; more would run into one another."""
APART = 0.08
"""From the marks of one row to those of the next, as a share of the figure's height."""


class Mark(NamedTuple):
    image: int  # how many had been seen
    what: str
    reason: str


def decisions(entry: Entry, shift: Shift) -> list[Mark]:
    """The decisions of a row on a stream, in the order of time."""
    record = entry.records.get(shift.name, {})
    found = [
        Mark(_images_seen(event, record), _decision_text(event.get("what", "")), str(event.get("reason") or ""))
        for event in record.get("events") or ()
    ]
    return sorted(found, key=lambda decision: decision.image)


def decisions_table(comparison: Comparison, shift: Shift, name: str) -> ReportTable:
    """When each row decided what, and why; numbered as in the figure. `name` is the stem of its files."""
    lines = tuple(
        Line(
            f"{entry.label} {number}",
            (TableCell(f"{decision.image:,}", decision.image), TableCell(decision.what), TableCell(decision.reason)),
            entry.method,
            entry.label,
        )
        for entry in comparison.combined
        for number, decision in enumerate(decisions(entry, shift), 1)
    )
    columns = (Column("after images"), Column("decision", words=True), Column("reason", words=True))
    own = shift.name.rpartition("/")[2]
    where = f" at severity {shift.severity}" if shift.severity else f" {own}" if own != comparison.protocol else ""
    heading = f"{comparison.name}{where}: decisions of streams"
    return ReportTable(name, heading, "Row", columns, lines)


def mark_decisions(axes: "Axes", entries: Sequence[Entry], shift: Shift) -> None:
    """A triangle on the axis of time for each decision, a line of them for each row that took some."""
    deciding = [entry for entry in entries if decisions(entry, shift)]
    low, high = axes.get_ylim()
    axes.set_ylim(low - APART * len(deciding) * (high - low), high)  # below the lines of scores
    for line, entry in enumerate(deciding):
        images = [decision.image for decision in decisions(entry, shift)]
        height, across = 0.015 + APART * line, axes.get_xaxis_transform()
        marks = axes.plot(
            images,
            [height] * len(images),
            marker="^",
            markersize=5,
            linestyle="",
            color=colour(entry.method),
            transform=across,
            clip_on=False,
            zorder=3,
        )
        numbers = [
            axes.text(image, height + 0.015, text, transform=across, ha="center", va="bottom", fontsize=7)
            for image, text in _numbers(images).items()
            if len(images) <= NUMBERED
        ]
        numbers.append(axes.text(1.005, height, entry.label, transform=axes.transAxes, fontsize=7))
        for number in numbers:
            number.set_color(colour(entry.method))
        assign([*marks, *numbers], entry.method)


def _numbers(images: Sequence[int]) -> dict[int, str]:
    """The numbers of the decisions at each place; those at one place as a range.

    >>> _numbers([64, 128, 128, 128])
    {64: '1', 128: '2–4'}
    """
    found: dict[int, list[int]] = {}
    for number, image in enumerate(images, 1):
        found.setdefault(image, []).append(number)
    return {image: "–".join(map(str, dict.fromkeys([own[0], own[-1]]))) for image, own in found.items()}


def _images_seen(event: dict[str, Any], record: Record) -> int:
    """After how many images a decision was taken; steps are batches of the record's size."""
    if "image" in event:
        return int(event["image"])
    return min(int(event["step"]) * int(record["settings"]["batch_size"]), int(record["images"]))


def _decision_text(what: object) -> str:
    """What was decided: from which value to which, or which parts were reset.

    >>> _decision_text({"learning_rate": [0.001, 0.0003]}), _decision_text({"reset": ["weights"], "share": 0.5})
    ('learning rate: 0.001 → 0.0003', 'reset: weights; share: 0.5')
    """
    if not isinstance(what, dict):
        return str(what)
    described = []
    for name, change in what.items():
        values = [setting_text(value) for value in (change if isinstance(change, list) else [change])]
        between = " → " if name != "reset" else ", "
        described.append(f"{str(name).replace('_', ' ')}: {between.join(values)}")
    return "; ".join(described)
