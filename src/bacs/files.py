"""Files that survive kills, other processes and strangers.

They are written whole or not at all, by one process at a time, where a file can be made; JSON is read within bounds,
and has a checksum of what it says.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from bacs.errors import RunError

LARGEST_JSON = 1 << 26
"""Bytes. Hundreds of times what a run of a hundred members says of itself; parsing takes about ten times as much."""
SEAL = "sha256"


def write(file: Path, data: bytes, *, durable: bool = True) -> None:
    """Writes a file whole or not at all; without `durable`, a power cut may lose it."""
    with stage(file, lambda handle: handle.write(data), durable=durable):
        pass


@contextmanager
def stage(file: Path, fill: Callable[[BinaryIO], object], *, durable: bool = True) -> Iterator[None]:
    """Fills a temporary neighbour, which takes the file's place when the block has gone well.

    So what belongs to the file can be done in the block: if that fails, what was there before stays.
    """
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as handle:
            fill(handle)
            handle.flush()
            if durable:
                os.fsync(handle.fileno())
        yield
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def explain_failure(file: Path, remark: str = "") -> Iterator[None]:
    """Makes the file's folder; what the disk says against either becomes a RunError, which ends in the remark."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise RunError(f"could not write {file}: {error.strerror or error}{remark}") from error


def is_stray(file: Path) -> bool:
    """Whether a file is what a kill in the middle of writing left behind."""
    return re.fullmatch(r"\..+\.\d+\.tmp", file.name) is not None


def remove_strays(folder: Path) -> None:
    """Removes what kills left behind in a folder and below it, which nobody else may be writing to."""
    for file in filter(is_stray, folder.rglob(".*.tmp")):
        file.unlink(missing_ok=True)


def check_writable(argument: str, path: Path) -> None:
    """Raises a RunError if no file could be made at `path`, or in it if it is a folder; leaves nothing behind.

    Rights, read-only disks and files where folders should be all show when a file is tried in the nearest folder that
    exists. How much fits is not known before it is written.
    """
    place = path if path.is_dir() else path.parent
    while not os.path.lexists(place):
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise RunError(f"{argument} {path} cannot be written: {place}: {error.strerror or error}") from error


def check_folder(argument: str, path: Path) -> None:
    """The same for a folder of files, where a file may lie in the way."""
    if path.is_file():
        raise RunError(f"{argument} must be a folder, {path} is a file")
    check_writable(argument, path)


@contextmanager
def lock(file: Path, what: str, *, wait: bool = False) -> Iterator[None]:
    """Sole right to something; the file is gone afterwards. The system takes it back from a process that dies.

    If another process has it, waits, or raises a RunError: `what` (is done) by another process.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = _open_locked(file, what, wait)
    while not _is_at(file, handle):  # the owner before us has removed it since we opened it
        handle.close()
        handle = _open_locked(file, what, wait)
    with handle:
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no file that is open
                file.unlink()


def _open_locked(file: Path, what: str, wait: bool) -> IO[str]:
    handle = file.open("a+")
    try:
        import fcntl
    except ImportError:  # Windows: two processes at once are not noticed
        return handle
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        handle.seek(0)
        owner = handle.read().strip() or "unknown"
        handle.close()
        raise RunError(f"{what} by another process (pid {owner})") from error
    return handle


def _is_at(file: Path, handle: IO[str]) -> bool:
    """Whether the path still leads to the file that is open."""
    try:
        return os.path.samestat(file.stat(), os.fstat(handle.fileno()))
    except FileNotFoundError:
        return False


def read_json(file: Path) -> Any:
    """What the file says. Raises OSError if it cannot be read, and ValueError for whatever is no JSON."""
    size = file.stat().st_size
    if size > LARGEST_JSON:
        raise ValueError(f"{size} bytes are too many, {LARGEST_JSON} are allowed")
    try:
        return json.loads(file.read_bytes().decode("utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def seal(table: dict[str, Any]) -> dict[str, Any]:
    """The table as JSON gives it back, with a checksum of all the rest."""
    plain = json.loads(json.dumps(table))
    return plain | {SEAL: _checksum(plain)}


def is_sealed(table: dict[str, Any]) -> bool:
    """Whether a table says what it said when it was sealed."""
    return table.get(SEAL) == _checksum({key: value for key, value in table.items() if key != SEAL})


def _checksum(table: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()
