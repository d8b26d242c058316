"""The table of a comparison: a row for each method, alone and as ensemble, the paper's figures beside ours.

Its notes say what a reader must know of the records: origin, coverage, precision. A second table has the settings.
"""

import json
from collections.abc import Sequence

import numpy as np

from bacs.benchmark.cell import parts
from bacs.methods.settings import OF_STREAMS
from bacs.metrics import SCORES
from bacs.report.comparison import Comparison, Entry, setting_text, stem
from bacs.report.names import of_corruption, quantity
from bacs.report.paper import PaperTable, paper_notes, paper_table
from bacs.report.records import images_per_shift
from bacs.report.tables import EMPTY, Column, Line, ReportTable, TableCell, cells_of


def summary_table(comparison: Comparison) -> ReportTable:
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
        Line(entry.label, (*own, *(_paper_cells(beside, entry) if beside else ())), entry.method, entry.kind)
        for entry, own in zip(comparison.entries, zip(*cells, strict=True), strict=True)
    ]
    notes = [origin_note(comparison), *coverage_notes(comparison), *precision_note(comparison)]
    if beside:
        notes += paper_notes(comparison, beside)
    return ReportTable(stem(comparison), title(comparison), "Method", tuple(columns), tuple(lines), tuple(notes))


def title(comparison: Comparison) -> str:
    """Data, protocol, and what the means are over."""
    name = comparison.name
    if comparison.sequence:
        return f"{name}, {_stream_words(comparison)}"
    corrupted = [shift for shift in comparison.common if shift.corruption]
    if not corrupted:
        number = len(comparison.common)
        return name if number == 1 else f"{name}, mean over {quantity(number, 'shift')}"
    severities = comparison.severities
    over = quantity(len(comparison.corruptions), "corruption")
    if len(severities) == 1:
        return f"{name}, mean over {over} at severity {severities[0]}"
    whole = len(comparison.corruptions) * len(severities) == len(corrupted)
    return f"{name}, mean over {over} {'×' if whole else 'and'} {len(severities)} severities"


def _stream_words(comparison: Comparison) -> str:
    """What follows each other in a stream."""
    corruptions = quantity(len({parts(name)[1] for name in comparison.sequence}), "corruption")
    severities = comparison.severities
    if len(severities) > 1:
        return f"{corruptions} one after the other, mean over {len(severities)} severities"
    return f"{corruptions} one after the other" + (f" at severity {severities[0]}" if severities else "")


def origin_note(comparison: Comparison) -> str:
    """Images, members, run and seeds behind a table."""
    records = comparison.records
    images = sorted({images_per_shift(record) for record in records})
    members = sorted({len(record["members"]) for record in records})
    seeds = sorted({record.get("seed", 0) for record in records})
    runs = {(record.get("run") or {}).get("sha256", ""): record for record in records}
    spread = "–".join(f"{number:,}" for number in dict.fromkeys((images[0], images[-1])))
    parts = [
        f"{spread} image{'s' if images[-1] != 1 else ''} per shift",
        *([f"{quantity(len(comparison.sequence), 'shift')} in one stream"] if comparison.sequence else []),
        " or ".join(quantity(number, "member") for number in members),
        f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}",
    ]
    text = "; ".join(parts) + "."
    if members != [1]:
        text += " Rows of single models are means over the members."
    if len(runs) > 1:
        text += f" The records come from {len(runs)} different runs: rows may compare different networks."
    if len(images) > 1 and any(len(numbers) > 1 for numbers in _images_by_shift(comparison).values()):
        text += " Rows differ in the number of images of the same shift."
    return text


def coverage_notes(comparison: Comparison) -> list[str]:
    """Which rows lack which shifts, if they do not all have the same ones."""
    common, every = comparison.common, comparison.shifts
    if len(common) == len(every):
        return []
    lacking = {
        entry.label: [shift.name for shift in every if shift.name not in entry.records] for entry in comparison.combined
    }
    listed = "; ".join(f"{label} lacks {_first_names(names)}" for label, names in lacking.items() if names)
    if not common:
        return [f"No shift has been finished for every row, so there are no means. {listed}."]
    return [f"Means are over the {len(common)} of {len(every)} shifts that every row has. {listed}."]


def precision_note(comparison: Comparison) -> list[str]:
    """The standard error of an accuracy on one shift, where there are not several shifts to see the spread."""
    if len(comparison.common) != 1 or comparison.sequence:  # a stream has the same images under each corruption
        return []
    images = min(record["images"] for record in comparison.records)
    share = max(entry.mean(comparison.common, "accuracy") for entry in comparison.combined)
    error = 100 * (share * (1 - share) / images) ** 0.5
    return [
        f"From {images:,} images an accuracy of {100 * share:.1f} % is known to ± {error:.1f} points (one standard "
        "error). All rows see the same images, so differences between rows are usually more certain than that."
    ]


def settings_table(comparison: Comparison, name: str) -> ReportTable:
    """The settings of each row, as far as its method has a use for them."""
    entries = comparison.combined
    settings = [{"epochs": entry.variant.epochs} | json.loads(entry.variant.settings) for entry in entries]
    idle = [key for key in OF_STREAMS if not any(each.get(key) for each in settings)]
    names = [key for key in dict.fromkeys(key for each in settings for key in each) if key not in idle]
    lines = tuple(
        Line(entry.label, tuple(_setting(each[key]) if key in each else EMPTY for key in names), entry.method)
        for entry, each in zip(entries, settings, strict=True)
    )
    title = f"{comparison.name}: settings"
    return ReportTable(name, title, "Method", tuple(Column(key.replace("_", " ")) for key in names), lines)


def _paper_cells(table: PaperTable, entry: Entry) -> list[TableCell]:
    """The paper's figures of a row, the best of its whole table marked; none for another objective than the paper's."""
    key = (entry.method, entry.kind, entry.variant.epochs)
    found = table.scores.get(key) if entry.has_objective_of_method else None
    if found is None:
        return [EMPTY] * len(SCORES)
    leaders = {name: table.best(name, score) for name, score in SCORES.items()}
    return [TableCell(found[name], float(found[name]), float(found[name]) == leaders[name]) for name in SCORES]


def _setting(value: object) -> TableCell:
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return TableCell(setting_text(value), number)


def _images_by_shift(comparison: Comparison) -> dict[str, set[int]]:
    by_shift: dict[str, set[int]] = {}
    for record in comparison.records:
        by_shift.setdefault(record["shift"], set()).add(record["images"])
    return by_shift


def _first_names(names: Sequence[str], most: int = 4) -> str:
    shown = [of_corruption(name) for name in names[:most]]
    return ", ".join(shown) + (f" and {len(names) - most} more" if len(names) > most else "")
