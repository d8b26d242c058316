"""A sweep's folder as the report reads it: what was asked for, the records of finished cells, the failed ones."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from bacs.benchmark import store
from bacs.benchmark.plan import plan
from bacs.benchmark.recipe import check_sweep_recipe, restore
from bacs.errors import RecipeError, RunError
from bacs.metrics import SCORES
from bacs.report.names import KINDS
from bacs.schema import Count, Positive, check, known_part

Record = dict[str, Any]
SHOWN = 4  # missing cells that are named


class WindowRecord(TypedDict):
    """What the report shows of a part of a stream."""

    first: Count
    images: Positive
    shift: str
    single: dict[str, float]
    ensemble: dict[str, float]


@dataclass(frozen=True)
class Sweep:
    """`records` are finished cells; `failed` are those whose `error` says why there are no scores.

    `missing` are the cells of the recipe that have no record, in words.
    """

    folder: Path
    recipe: dict[str, Any]
    run: dict[str, Any]
    records: tuple[Record, ...]
    failed: tuple[Record, ...]
    missing: tuple[str, ...] = ()

    @property
    def missing_note(self) -> str:
        """A sentence on cells without a record, so that a part is not taken for the whole; empty if there are none."""
        if not self.missing:
            return ""
        rest = len(self.missing) - SHOWN
        some = "; ".join(self.missing[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
        whole = len(self.records) + len(self.failed) + len(self.missing)
        count = f"{len(self.missing)} of {whole} cells have no record yet"
        return f"{count}, the same bacs sweep goes on with them: {some}."

    @property
    def title(self) -> str:
        return str(self.recipe.get("title") or self.folder.resolve().name)


def read(folder: Path) -> Sweep:
    """The sweep in a folder, also while it is running."""
    if not (folder / "records").is_dir():
        what = "it has no folder records/" if folder.is_dir() else "there is no such folder"
        raise RunError(f"{folder} is not the folder of a sweep: {what}")
    records = [_check_whole(folder, record) for record in store.records(folder)]
    finished = tuple(record for record in records if record["error"] is None)
    failed = tuple(record for record in records if record["error"] is not None)
    if not finished:
        why = f"all {len(failed)} failed, the first with {failed[0]['error']}" if failed else "there are no records yet"
        raise RunError(f"{folder} has no finished cell: {why}")
    about = store.read_manifest(folder)
    return Sweep(folder, about["recipe"], about["run"], finished, failed, _missing(about, records))


def _missing(about: dict[str, Any], records: list[Record]) -> tuple[str, ...]:
    """The cells of the recipe that have no record; none where the recipe is not one of this version's sweeps."""
    there = {record["id"] for record in records}
    try:
        cells = plan(check_sweep_recipe(restore(about["recipe"]))) if about["kind"] == "sweep" else []
        return tuple(str(cell) for cell in cells if cell.id not in there)
    except (RecipeError, KeyError, ValueError, TypeError, AttributeError):
        return ()


def _check_whole(folder: Path, record: Record) -> Record:
    """The record, if it has what tables are made of."""
    where = f"a record of {folder} ({record['id']})"
    if record["error"] is not None:
        return record
    if not all({"image", "step"} & event.keys() for event in record.get("events") or ()):
        raise RunError(f"{where}: each of its events must have an image or a step")
    try:
        scored = {kind: _numbers(record[kind]) for kind in KINDS}
        members = [_numbers(member) for member in record["members"]]
        if not members or record["images"] < 1:
            raise ValueError("scores need a member and an image")
        for each in record.get("windows", ()):
            check(known_part(each, WindowRecord), WindowRecord, "windows")
            for kind in KINDS:
                _numbers(each[kind])
        for curve in (record.get("reliability"), record.get("risk_coverage")):
            if curve and len({len(axis) for axis in curve.values()}) != 1:
                raise ValueError("a curve must have as many values of one axis as of the other")
        return record | scored | {"members": members, "images": int(record["images"])}
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{where} is not whole: {type(error).__name__} {error}") from error


def images_per_shift(record: Record) -> int:
    """The images of a record's shift; of a stream, of each of its shifts."""
    return record["images"] // len(record.get("sequence") or [record["shift"]])


def _numbers(scores: dict[str, Any]) -> dict[str, float]:
    return {name: float(scores[name]) for name in SCORES}
