"""The paper's tables as data, which of them stands beside a comparison of ours, and in what the two differ."""

import json
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from bacs.corruptions import TEST
from bacs.metrics import Score
from bacs.report.comparison import Comparison
from bacs.report.names import quantity

MEMBERS = 10

Key = tuple[str, str, int | float]  # method, kind, epochs


@dataclass(frozen=True)
class PaperTable:
    """One half or whole of a table: scores as printed, by method, kind and epochs (0 where nothing is adapted)."""

    number: int
    data: str
    protocol: str
    severities: tuple[int, ...]
    images: int
    network: str
    published: bool | None
    scores: Mapping[Key, Mapping[str, str]]

    @property
    def cells(self) -> frozenset[tuple[str | None, int | None]]:
        """The corruptions and severities that its means are over."""
        if not self.severities:
            return frozenset({(None, None)})
        return frozenset((corruption, severity) for corruption in TEST for severity in self.severities)

    def best(self, name: str, score: Score) -> float:
        """The best figure of a column, as printed."""
        return score.best([float(scores[name]) for scores in self.scores.values()])


@cache
def tables() -> tuple[PaperTable, ...]:
    """Every table of the paper that has figures in it."""
    text = (files("bacs.report") / "paper.toml").read_text(encoding="utf-8")
    return tuple(
        PaperTable(
            number=entry["table"],
            data=entry["data"],
            protocol=entry["protocol"],
            severities=tuple(entry["severities"]),
            images=entry["images"],
            network=entry["network"],
            published=entry.get("published"),
            scores={
                (method, kind, epochs): dict(zip(entry["scores"], values, strict=True))
                for method, kind, epochs, *values in entry["rows"]
            },
        )
        for entry in tomllib.loads(text)["tables"]
    )


def find_table(
    data: str,
    protocol: str,
    cells: Collection[tuple[str | None, int | None]],
    *,
    published: bool,
    score: str = "accuracy",
) -> PaperTable | None:
    """The paper's table of the same data, protocol, corruptions and severities; None if it has none.

    Of ImageNet-C the paper has two: of the published files, and of images made anew. The one like ours is taken.
    """
    fitting = [
        table
        for table in tables()
        if (table.data, table.protocol) == (data, protocol)
        and table.cells == set(cells)
        and all(score in scores for scores in table.scores.values())
    ]
    return min(fitting, key=lambda table: table.published is not published, default=None)


def paper_table(comparison: Comparison, score: str = "accuracy") -> PaperTable | None:
    """The paper's table of the same shifts, None where the means are over others."""
    cells = {(shift.corruption, shift.severity) for shift in comparison.common}
    return find_table(comparison.data, comparison.protocol, cells, published=comparison.published, score=score)


def paper_notes(comparison: Comparison, table: PaperTable) -> list[str]:
    """In what the paper's setting differs from that of the records."""
    records = comparison.records
    other = []
    members = max(len(record["members"]) for record in records)
    images = max(record["images"] for record in records)
    if members != MEMBERS:
        other.append(f"{MEMBERS} members (here {members})")
    if images != table.images:
        other.append(f"{table.images:,} images per shift (here {images:,})")
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
        names = sorted({f"{method} ({kind}, {quantity(epochs, 'epoch')})" for method, kind, epochs in missing})
        notes.append(f"Rows of the paper that were not run: {', '.join(names)}.")
    return notes


def _keys(comparison: Comparison) -> set[Key]:
    return {(entry.method, entry.kind, entry.variant.epochs) for entry in comparison.entries}


def _other_settings(comparison: Comparison, table: PaperTable) -> list[str]:
    """Hyperparameters that the paper states and that a row here has otherwise."""
    small = table.network == "ResNet26"
    found: dict[str, list[str]] = {}
    for entry in comparison.combined:
        if not entry.variant.epochs or not entry.has_objective_of_method:
            continue
        stated = {"batch_size": 128 if small else 64, "learning_rate": 1e-3, "objective_temperature": 1.0}
        if entry.method == "bacs":
            stated |= {"learning_rate": 1e-3 if small else 1e-4, "posterior_weight": 1e-4 if small else 3e-4}
        settings = json.loads(entry.variant.settings)
        for name, value in stated.items():
            if name in settings and settings[name] != value:
                text = f"{name.replace('_', ' ')} {value:g} (here {settings[name]:g})"
                found.setdefault(text, []).append(entry.label)
    return [f"{text} for {', '.join(labels)}" for text, labels in found.items()]
