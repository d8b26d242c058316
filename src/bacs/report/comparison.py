"""The records of one data set and protocol, arranged as rows of the paper over shifts.

A row is a method with its epochs and settings, once as single models and once as ensemble. Rows are only ever compared
on the shifts that all of them have.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from bacs.benchmark.cell import STREAMED
from bacs.corruptions import TEST, VALIDATION
from bacs.errors import RunError
from bacs.methods.catalogue import METHODS, PROTOCOLS, label_of
from bacs.methods.settings import OF_STREAMS, settings_used
from bacs.report.names import KINDS, of_data, quantity, slug
from bacs.report.records import Record

CORRUPTIONS = (*TEST, *VALIDATION)


class Shift(NamedTuple):
    name: str
    corruption: str | None
    severity: int | None


class Variant(NamedTuple):
    """What makes two records cells of the same row."""

    method: str
    epochs: int | float
    settings: str  # JSON of those that the method uses


@dataclass(frozen=True)
class Entry:
    """One row: its label, and the record of each shift."""

    label: str
    variant: Variant
    kind: str  # one of KINDS
    records: dict[str, Record]

    @property
    def method(self) -> str:
        return self.variant.method

    @property
    def has_objective_of_method(self) -> bool:
        """Whether it minimises what its method's row in the catalogue says; else it is not the paper's row."""
        row = METHODS.get(self.method)
        return row is None or json.loads(self.variant.settings).get("objective", row.objective) == row.objective

    def score(self, shift: str, name: str) -> float:
        """A score on one shift."""
        return self.records[shift][self.kind][name]

    def mean(self, shifts: Sequence[Shift], name: str) -> float:
        """A score averaged over shifts."""
        return float(np.mean([self.score(shift.name, name) for shift in shifts]))


@dataclass(frozen=True)
class Comparison:
    """The rows of one data set and protocol; `shifts` are all that occur, `common` those that every row has."""

    data: str
    protocol: str
    entries: tuple[Entry, ...]
    shifts: tuple[Shift, ...]

    @property
    def name(self) -> str:
        """Data and protocol, as headings say them."""
        return f"{of_data(self.data)}, {self.protocol}"

    @property
    def methods(self) -> dict[str, str]:
        """The method of each row, by its label."""
        return {entry.label: entry.method for entry in self.entries}

    @property
    def common(self) -> tuple[Shift, ...]:
        return tuple(shift for shift in self.shifts if all(shift.name in entry.records for entry in self.entries))

    @property
    def corruptions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(shift.corruption for shift in self.common if shift.corruption))

    @property
    def severities(self) -> tuple[int, ...]:
        return tuple(sorted({shift.severity for shift in self.common if shift.severity}))

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(
            entry.records[shift.name]
            for entry in self.of_kind("single")
            for shift in self.shifts
            if shift.name in entry.records
        )

    @property
    def sequence(self) -> tuple[str, ...]:
        """The shifts that follow each other in a stream of the comparison; none where each shift is met alone."""
        return next((tuple(record["sequence"]) for record in self.records if record.get("sequence")), ())

    @property
    def published(self) -> bool:
        """Whether the images were read from the published files rather than corrupted here."""
        return all("@published" in shift.name for shift in self.shifts)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Single models and ensembles, or the first alone where there is one member: both would be the same row."""
        return tuple(dict.fromkeys(entry.kind for entry in self.entries))

    @property
    def combined(self) -> tuple[Entry, ...]:
        """The rows of all members together."""
        return self.of_kind(self.kinds[-1]) if self.entries else ()

    def of_kind(self, kind: str) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.kind == kind)

    def at_severities(self, severities: Sequence[int]) -> "Comparison":
        """The same rows on the shifts of some severities."""
        shifts = tuple(shift for shift in self.shifts if shift.severity in severities)
        entries = tuple(entry for entry in self.entries if any(shift.name in entry.records for shift in shifts))
        return Comparison(self.data, self.protocol, entries, shifts)


def stem(comparison: Comparison) -> str:
    """What the names of its files begin with."""
    parts = [comparison.data, "published" if comparison.published else "", comparison.protocol]
    return "-".join(slug(part) for part in parts if part)


def comparisons(records: Sequence[Record]) -> list[Comparison]:
    """One comparison for each data set, in alphabetical order, and protocol, in that of the catalogue."""
    groups: dict[tuple[str, bool, str], list[Record]] = {}
    for record in records:
        groups.setdefault((*_data(record), record["protocol"]), []).append(record)
    for record in filter(_knows_no_protocol, records):
        for (data, published, protocol), group in groups.items():
            same = (data, published) == _data(record) and protocol not in STREAMED
            if same and not any(_same_cell(record, other) for other in group):
                group.append(record)
    known = {protocol: str(place) for place, protocol in enumerate(PROTOCOLS)}
    ordered = sorted(groups, key=lambda key: (*key[:2], known.get(key[2], key[2])))
    return [_comparison(key[0], key[2], groups[key]) for key in ordered]


def _data(record: Record) -> tuple[str, bool]:
    """The data set of a record, and whether its images were read from published files."""
    return record["data"].removesuffix("/clean"), "@published" in record["shift"]


def _knows_no_protocol(record: Record) -> bool:
    """Whether one record stands for offline and online: nothing is adapted, not even statistics."""
    method = METHODS.get(record["method"])
    return method is not None and not method.knows_protocol and record["protocol"] not in STREAMED


def _same_cell(first: Record, second: Record) -> bool:
    return (first["shift"], first["method"]) == (second["shift"], second["method"])


def _comparison(data: str, protocol: str, records: Sequence[Record]) -> Comparison:
    variants: dict[Variant, dict[str, Record]] = {}
    for record in records:
        # Records that differ in nothing their method uses say the same: the first stands for all.
        one = variants.setdefault(_variant(record), {}).setdefault(record["shift"], record)
        if one.get("seed") != record.get("seed"):
            raise RunError(f"records of a folder must have one seed, got {one.get('seed')} and {record.get('seed')}")
    ordered = sorted(variants, key=_rank)
    kinds = KINDS if any(len(record["members"]) > 1 for record in records) else ["single"]
    entries = [
        Entry(_label(variant, ordered, kind), variant, kind, variants[variant]) for kind in kinds for variant in ordered
    ]
    shifts = {Shift(record["shift"], record.get("corruption"), record.get("severity")) for record in records}
    return Comparison(data, protocol, tuple(entries), tuple(sorted(shifts, key=_shift_rank)))


def _variant(record: Record) -> Variant:
    method = METHODS.get(record["method"])
    settings = record["settings"] if method is None else settings_used(method, record["settings"])
    if method and not method.knows_protocol:
        settings = {name: value for name, value in settings.items() if name != "batch_size"}
    if record["protocol"] == "offline":
        settings = {name: value for name, value in settings.items() if name not in OF_STREAMS}
    epochs = 0 if method and method.adapts is None else record["epochs"]
    return Variant(record["method"], epochs, json.dumps(settings, sort_keys=True))


def _rank(variant: Variant) -> tuple[int, str, int | float, list[tuple[str, float, str]]]:
    known = list(METHODS)
    place = known.index(variant.method) if variant.method in known else len(known)
    settings = [
        (name, float(value) if _is_number(value) else 0.0, str(value))
        for name, value in json.loads(variant.settings).items()
    ]
    return place, variant.method, variant.epochs, settings


def setting_text(value: object) -> str:
    """A setting as a reader writes it: 1e+06, not 1000000.0."""
    return f"{value:g}" if _is_number(value) else str(value)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shift_rank(shift: Shift) -> tuple[int, str, int, str]:
    place = CORRUPTIONS.index(shift.corruption) if shift.corruption in CORRUPTIONS else len(CORRUPTIONS)
    return place, shift.corruption or "", shift.severity or 0, shift.name


def _label(variant: Variant, variants: Sequence[Variant], kind: str) -> str:
    """The paper's label; epochs where they differ between rows, settings where they differ within the method."""
    details = []
    if variant.epochs and len({other.epochs for other in variants if other.epochs}) > 1:
        details.append(quantity(variant.epochs, "epoch"))
    own = json.loads(variant.settings)
    others: list[dict[str, Any]] = [
        json.loads(text) for text in {other.settings for other in variants if other.method == variant.method}
    ]
    objectives = {other.get("objective") for other in others}
    if len(objectives) == len(others) > 1:  # what else differs was tuned for the objective
        details.append(str(own["objective"]).replace("_", " "))
        others = []
    for name in own:
        if any(other.get(name) != own[name] for other in others):
            details.extend(_detail(name, own[name]))
    label = label_of(variant.method, kind)
    return f"{label} ({', '.join(details)})" if details else label


def _detail(name: str, value: object) -> list[str]:
    """A setting in a label; of what is left out or switched off, nothing."""
    if value is None or value is False:
        return []
    if name == "reset_every" and _is_number(value):
        return [f"reset every {quantity(value, 'step')}"]
    words = name.replace("_", " ")
    return [words if value is True else f"{words} {setting_text(value)}"]
