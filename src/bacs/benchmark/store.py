"""The folder of a sweep, and what is where in it.

sweep.json           the recipe as it was resolved, and the run
records/<cell>.json  one per cell, written whole the moment it is finished
streams/<cell>/      a long stream on its way, saved every so often; gone when it is finished
working/             images and progress of the cells at work; gone at the end
"""

import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, NotRequired, TypedDict
from uuid import uuid4

from bacs import checkpoints, files, schema
from bacs.benchmark.cell import Cell
from bacs.benchmark.record import FORMAT, READABLE, check_record
from bacs.errors import RunError
from bacs.files import is_sealed, read_json, seal
from bacs.methods.catalogue import METHODS
from bacs.methods.settings import settings_used
from bacs.schema import Count

MANIFEST = "sweep.json"
SCORED = ("members", "single", "ensemble", "windows", "tempered")


class Run(TypedDict):
    sha256: str
    members: Count
    name: NotRequired[str]


class SweepManifest(TypedDict):
    format: int
    kind: str
    recipe: dict[str, Any]
    run: Run


def record_file(out: Path, cell: str) -> Path:
    return out / "records" / f"{cell}.json"


def stream_folder(out: Path, cell: Cell) -> Path:
    return out / "streams" / cell.id


def forget_stream(out: Path, cell: Cell) -> None:
    """Removes the state of a stream that has come to its end."""
    shutil.rmtree(stream_folder(out, cell), ignore_errors=True)
    with suppress(OSError):  # others are on their way
        (out / "streams").rmdir()


@contextmanager
def working_folder(out: Path) -> Iterator[Path]:
    """A folder of this very call for what its cells share; gone at the end, with what killed calls left behind.

    Of this very call, since jobs may outlive a killed sweep for a moment and still be writing in theirs.
    """
    place = out / "working"
    shutil.rmtree(place, ignore_errors=True)
    try:
        yield place / uuid4().hex[:12]
    finally:
        shutil.rmtree(place, ignore_errors=True)


def lock_folder(out: Path) -> AbstractContextManager[None]:
    """Sole right to sweep into this folder."""
    return files.lock(out / ".lock", f"{out} is being filled")


def write(out: Path, record: Mapping[str, Any]) -> None:
    """Stores the record of a cell, whole or not at all."""
    scores = {key: _swap(record[key], math.inf, "inf") for key in SCORED if key in record}
    fields = seal({"format": FORMAT, **record, **scores})
    lines = [f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in fields.items()]
    _replace(record_file(out, record["id"]), "{" + ",\n ".join(lines) + "}\n")


def read(file: Path) -> dict[str, Any]:
    """The record in a file."""
    try:
        record = read_json(file)
        check_record(file, record)
        return record | {key: _swap(record[key], "inf", math.inf) for key in SCORED if key in record}
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise RunError(f"{file} is damaged ({error}); remove it and its cell is made again") from error


def records(out: str | Path) -> list[dict[str, Any]]:
    """Every record of a folder, by name; a failed cell's has `error` and no scores."""
    return [read(file) for file in sorted((Path(out) / "records").glob("*.json"))]


def is_finished(out: Path, cell: Cell) -> bool:
    """Whether this cell has a record with scores."""
    file = record_file(out, cell.id)
    return file.exists() and read(file)["error"] is None


def check(out: Path, about: Mapping[str, Any], cells: Sequence[Cell], *, varied: Sequence[str] = ()) -> list[str]:
    """The ids of finished cells in a folder, which need not exist; raises if it is filled with something else.

    A folder has one run, one seed, one limit and one choice of settings per method or variant (but for `varied` ones),
    so that its records can be averaged. Shifts, methods, variants, protocols and epochs may come and go, but not shifts
    within a stream.
    """
    if (out / checkpoints.MANIFEST).exists() or out.is_file():
        raise RunError(f"{out} is a run or a file, not the folder of a sweep; choose another folder")
    ours = (out / MANIFEST).exists() or (out / "records").exists()
    others = [file.name for file in out.iterdir() if not file.name.startswith(".")] if out.is_dir() else []
    if others and not ours:
        raise RunError(f"{out} holds something else, such as {min(others)}; choose a new or empty folder")
    if (out / MANIFEST).exists():
        theirs = read_manifest(out)
        _compare(out, "the kind of run", theirs["kind"], about["kind"])
        for key in ("members", "sha256"):
            _compare(out, f"the run's {key}", theirs["run"][key], about["run"][key])
        for key in ("seed", "limit"):
            _compare(out, key, theirs["recipe"][key], about["recipe"][key])
    planned: dict[tuple[str, str], dict[str, Any]] = {}
    for cell in cells:
        row = cell.method, "" if varied else cell.tag
        planned[row] = planned.get(row, {}) | cell.settings
    streams = {cell.shift: cell for cell in cells if cell.sequence}
    done = [record for record in records(out) if record["error"] is None]
    for record in done:
        _compare(out, "the run's sha256", record.get("run", {}).get("sha256"), about["run"]["sha256"])
        if record["shift"] in streams:
            _compare_streams(out, record, streams[record["shift"]])
        plain = Cell(record["shift"], record["method"], record["protocol"], record["epochs"], {})
        row = record["method"], "" if varied else record["id"].removeprefix(plain.id).removeprefix("--")
        if row not in planned:
            continue
        # An older record says less, and means the defaults.
        there = settings_used(METHODS[record["method"]], record["settings"])
        for name, value in planned[row].items():
            if name not in varied:
                _compare(out, f"{name} of {record['method']}", there.get(name), value)
    return [record["id"] for record in done]


def begin(out: Path, about: Mapping[str, Any]) -> None:
    """Makes `out` the folder of this sweep; to be called after `check`."""
    text = json.dumps(seal({"format": FORMAT, **about}), indent=1) + "\n"
    if not (out / MANIFEST).exists() or (out / MANIFEST).read_text() != text:
        _replace(out / MANIFEST, text)
    files.remove_strays(out / "records")


def read_manifest(out: Path) -> dict[str, Any]:
    """What the folder's sweep.json says: recipe, run and kind, each checked."""
    try:
        manifest = read_json(out / MANIFEST)
        if not isinstance(manifest, dict) or manifest.get("format") not in READABLE:
            raise ValueError(f"this version reads the formats {READABLE}")
        if manifest["format"] >= 2 and not is_sealed(manifest):
            raise ValueError("what it says does not match its checksum")
        schema.check(schema.known_part(manifest, SweepManifest), SweepManifest)
        for key in ("seed", "limit"):
            if key not in manifest["recipe"]:
                raise ValueError(f"recipe lacks {key!r}")
    except (OSError, ValueError) as error:
        raise RunError(f"{out / MANIFEST} is not of a sweep that this version knows: {error}") from error
    return manifest


def _compare_streams(out: Path, record: Mapping[str, Any], cell: Cell) -> None:
    """Raises unless a stream of the same name is of the same shifts, scored in the same windows."""
    _compare(out, f"window of {cell.shift}", record.get("window"), cell.window)
    for place, (there, here) in enumerate(zip_longest(record.get("sequence", []), cell.sequence), start=1):
        _compare(out, f"shift {place} of {cell.shift}", there, here)
    if cell.world is not None:
        for name, value in cell.identity()["world"].items():
            _compare(out, f"{name} of {cell.shift}", record["world"].get(name), value)


def _compare(out: Path, what: str, there: Any, here: Any) -> None:
    if there != here:
        short = [str(value)[:12] if what.endswith("sha256") else value for value in (there, here)]
        raise RunError(
            f"{out} holds another sweep: {what} is {short[0]!r} there and {short[1]!r} here; choose another folder"
        )


def _replace(file: Path, text: str) -> None:
    with files.explain_failure(file, "; finished records are intact"):
        files.write(file, text.encode())


def _swap(value: Any, old: float | str, new: float | str) -> Any:
    """The scores with one value in place of another: JSON has no infinity, and is given the text "inf"."""
    if isinstance(value, dict):
        return {key: _swap(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [_swap(each, old, new) for each in value]
    return new if value == old else value
