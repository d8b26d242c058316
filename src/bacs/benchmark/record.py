"""What the record of a cell may say: checked field by field when it is read, before anything is made of it.

Keys that are not listed are left alone: nothing looks them up.
"""

from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from bacs.errors import RunError
from bacs.files import is_sealed
from bacs.methods.catalogue import METHODS
from bacs.methods.settings import settings_used
from bacs.schema import Count, check, known_part

FORMAT = 2  # since a record has a checksum of its own
READABLE = (1, FORMAT)

Scores = dict[str, float | Literal["inf"]]


class ReliabilityRecord(TypedDict):
    confidence: list[float]
    accuracy: list[float]


class RiskCoverageRecord(TypedDict):
    coverage: list[float]
    risk: list[float]


class Record(TypedDict):
    format: int
    id: str
    shift: str
    data: str
    method: str
    protocol: str
    epochs: float
    settings: dict[str, Any]  # as the method's row says
    error: str | None
    corruption: NotRequired[str | None]
    severity: NotRequired[int | None]
    seed: NotRequired[int]
    limit: NotRequired[int | None]
    sequence: NotRequired[list[str]]
    window: NotRequired[int | None]
    versions: NotRequired[dict[str, str]]
    run: NotRequired[dict[str, str | int]]
    images: NotRequired[Count]
    members: NotRequired[list[Scores]]
    single: NotRequired[Scores]
    ensemble: NotRequired[Scores]
    windows: NotRequired[list[dict[str, Any]]]
    class_names: NotRequired[list[str]]
    class_accuracy: NotRequired[list[float | None]]
    reliability: NotRequired[ReliabilityRecord | None]
    risk_coverage: NotRequired[RiskCoverageRecord | None]
    seconds: NotRequired[dict[str, float]]
    images_per_second: NotRequired[float]


def check_record(file: Path, record: Any) -> None:
    """Raises ValueError unless a file's content is a record, RunError if it is one of another version."""
    if not isinstance(record, dict) or "format" not in record:
        raise ValueError("it lacks 'format'")
    if isinstance(record["format"], bool) or record["format"] not in READABLE:
        known = " and ".join(map(str, READABLE))
        raise RunError(f"{file} has format {record['format']}, this version reads {known}; update bacs")
    if record["format"] >= 2 and not is_sealed(record):
        raise ValueError("what it says does not match its checksum")
    check(known_part(record, Record), Record)
    if record["method"] in METHODS:
        settings_used(METHODS[record["method"]], record["settings"])
