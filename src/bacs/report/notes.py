"""What a reader must know to read a table, made from the records: origin, coverage, precision, other settings."""

import json
from collections.abc import Sequence

from bacs.methods.settings import OF_STREAMS
from bacs.report import paper
from bacs.report.comparison import Comparison, spelt
from bacs.report.names import counted, of_corruption, of_data
from bacs.report.records import images_per_shift
from bacs.report.tables import EMPTY, Cell, Column, Line, Table


def origin_note(comparison: Comparison) -> str:
    """Images, members, run and seeds behind a table."""
    records = comparison.records
    images = sorted({images_per_shift(record) for record in records})
    members = sorted({len(record["members"]) for record in records})
    seeds = sorted({record.get("seed", 0) for record in records})
    runs = {(record.get("run") or {}).get("sha256", ""): record for record in records}
    spread = "–".join(f"{number:,}" for number in dict.fromkeys((images[0], images[-1])))
    parts = [
        f"{spread} image{'s' if images[-1] != 1 else ''} a shift",
        *([f"{counted(len(comparison.sequence), 'shift')} in one stream"] if comparison.sequence else []),
        " or ".join(counted(number, "member") for number in members),
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
    listed = "; ".join(f"{label} lacks {_listed(names)}" for label, names in lacking.items() if names)
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


def paper_notes(comparison: Comparison, table: paper.PaperTable) -> list[str]:
    """In what the paper's setting differs from that of the records."""
    records = comparison.records
    other = []
    members = max(len(record["members"]) for record in records)
    images = max(record["images"] for record in records)
    if members != paper.MEMBERS:
        other.append(f"{paper.MEMBERS} members (here {members})")
    if images != table.images:
        other.append(f"{table.images:,} images a shift (here {images:,})")
    if table.published is not None and table.published is not comparison.published:
        other.append(
            "the published files (here corrupted anew)" if table.published else "images corrupted anew (here published)"
        )
    other += _other_settings(comparison, table)
    notes = [
        f"paper: Table {table.number} of Zhou & Levine 2021, with {table.network}s of its own training; the networks "
        "here are others, so compare the order of rows and their distances rather than values."
        + (f" The paper also has {'; '.join(other)}." if other else "")
    ]
    missing = [key for key in table.scores if key not in _keys(comparison)]
    if missing:
        names = sorted({f"{method} ({kind}, {counted(epochs, 'epoch')})" for method, kind, epochs in missing})
        notes.append(f"Rows of the paper that were not run: {', '.join(names)}.")
    return notes


def settings_table(comparison: Comparison, name: str) -> Table:
    """The settings of each row, as far as its method has a use for them."""
    entries = comparison.combined
    settings = [{"epochs": entry.variant.epochs} | json.loads(entry.variant.settings) for entry in entries]
    idle = [key for key in OF_STREAMS if not any(each.get(key) for each in settings)]
    names = [key for key in dict.fromkeys(key for each in settings for key in each) if key not in idle]
    lines = tuple(
        Line(entry.label, tuple(_setting(each[key]) if key in each else EMPTY for key in names), entry.method)
        for entry, each in zip(entries, settings, strict=True)
    )
    title = f"{of_data(comparison.data)}, {comparison.protocol}: settings"
    return Table(name, title, "Method", tuple(Column(key.replace("_", " ")) for key in names), lines)


def _setting(value: object) -> Cell:
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return Cell(spelt(value), number)


def _keys(comparison: Comparison) -> set[paper.Key]:
    return {(entry.method, entry.kind, entry.variant.epochs) for entry in comparison.entries}


def _other_settings(comparison: Comparison, table: paper.PaperTable) -> list[str]:
    """Hyperparameters that the paper states and that a row here has otherwise."""
    small = table.network == "ResNet26"
    found: dict[str, list[str]] = {}
    for entry in comparison.combined:
        if not entry.variant.epochs:
            continue
        stated = {"batch_size": 128 if small else 64, "learning_rate": 1e-3}
        if entry.method == "bacs":
            stated |= {"learning_rate": 1e-3 if small else 1e-4, "posterior_weight": 1e-4 if small else 3e-4}
        settings = json.loads(entry.variant.settings)
        for name, value in stated.items():
            if name in settings and settings[name] != value:
                text = f"{name.replace('_', ' ')} {value:g} (here {settings[name]:g})"
                found.setdefault(text, []).append(entry.label)
    return [f"{text} for {', '.join(labels)}" for text, labels in found.items()]


def _images_by_shift(comparison: Comparison) -> dict[str, set[int]]:
    by_shift: dict[str, set[int]] = {}
    for record in comparison.records:
        by_shift.setdefault(record["shift"], set()).add(record["images"])
    return by_shift


def _listed(names: Sequence[str], most: int = 4) -> str:
    shown = [of_corruption(name) for name in names[:most]]
    return ", ".join(shown) + (f" and {len(names) - most} more" if len(names) > most else "")
