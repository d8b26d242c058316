"""A sweep's folder as the report reads it: what was asked for, the records of finished cells, the failed ones."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bacs.benchmark import store
from bacs.errors import RunError
from bacs.metrics import SCORES
from bacs.report.rows import KINDS

Record = dict[str, Any]

IDENTITY = {"shift": str, "data": str, "method": str, "protocol": str, "epochs": (int, float), "settings": dict}


@dataclass(frozen=True)
class Sweep:
    """`records` are finished cells; `failed` are those whose `error` says why there are no scores."""

    folder: Path
    recipe: dict[str, Any]
    run: dict[str, Any]
    records: tuple[Record, ...]
    failed: tuple[Record, ...]

    @property
    def title(self) -> str:
        return str(self.recipe.get("title") or self.folder.resolve().name)


def read(folder: Path) -> Sweep:
    """The sweep in a folder, also while it is running."""
    if not (folder / "records").is_dir():
        what = "it has no folder records/" if folder.is_dir() else "there is no such folder"
        raise RunError(f"{folder} is not the folder of a sweep: {what}")
    records = [_checked(folder, record) for record in store.records(folder)]
    finished = tuple(record for record in records if record.get("error") is None)
    failed = tuple(record for record in records if record.get("error") is not None)
    if not finished:
        why = f"all {len(failed)} failed, the first with {failed[0]['error']}" if failed else "there are no records yet"
        raise RunError(f"{folder} has no finished cell: {why}")
    about = _manifest(folder / store.MANIFEST)
    return Sweep(folder, about["recipe"], about["run"], finished, failed)


def _manifest(file: Path) -> dict[str, Any]:
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(about["recipe"], dict) or not isinstance(about["run"], dict):
            raise TypeError("recipe and run must be tables")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{file} is not what a sweep writes: {type(error).__name__} {error}") from error
    return about


def _checked(folder: Path, record: Record) -> Record:
    """The record, if it has what tables are made of."""
    where = f"a record of {folder} ({record.get('id', 'without an id')})"
    for name, kind in IDENTITY.items():
        if not isinstance(record.get(name), kind):
            wanted = "a number" if isinstance(kind, tuple) else kind.__name__
            raise RunError(f"{where}: {name} must be {wanted}, got {record.get(name)!r}")
    if record.get("error") is not None:
        return record
    try:
        scored = {kind: _numbers(record[kind]) for kind in KINDS}
        members = [_numbers(member) for member in record["members"]]
        return record | scored | {"members": members, "images": int(record["images"])}
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{where} is not whole: {type(error).__name__} {error}") from error


def images_per_shift(record: Record) -> int:
    """The images of a record's shift; of a stream, of each of its shifts."""
    return record["images"] // len(record.get("sequence") or [record["shift"]])


def _numbers(scores: dict[str, Any]) -> dict[str, float]:
    return {name: float(scores[name]) for name in SCORES}
