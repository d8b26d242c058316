"""Downloads of published files: resumed where they were cut, checked, and renamed only when whole."""

import hashlib
import http.client
import os
import shutil
import tarfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from bacs.errors import DataError, one_line

_CHUNK = 1 << 20
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Remote:
    """A published file: where it is, where it goes below the data folder, its checksum and what it unpacks to."""

    url: str
    path: str
    checksum: str  # "sha256:..." or "md5:..." as its publisher or a maintained reader of it states
    unpacks: tuple[str, ...] = ()  # files or folders that unpacking gives; empty if it is no archive


def fetch(remote: Remote, root: Path, attempts: int = 3) -> Path:
    """`remote` as a checked file below `root`, downloaded unless it is there.

    Bytes collect in `<file>.part`, which a later call carries on with.
    """
    target = root / remote.path
    if target.exists():
        return target
    part = target.with_name(target.name + ".part")
    for attempt in range(1, attempts + 1):
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            _receive(remote.url, part)
            break
        except urllib.error.HTTPError as error:
            raise DataError(f"{remote.url}: the server answered {error.code} {error.reason}") from error
        except (OSError, http.client.HTTPException) as error:
            if attempt == attempts:
                kept = f"; {part.stat().st_size} bytes are kept, a new call resumes" if part.exists() else ""
                raise DataError(f"{remote.url}: download failed ({error}){kept}") from error
    verify(part, remote.checksum, remote.url)
    os.replace(part, target)
    return target


def verify(path: Path, checksum: str, origin: str) -> None:
    """Removes `path` and raises DataError unless its checksum ("sha256:..." or "md5:...") is as given."""
    algorithm, _, expected = checksum.partition(":")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
    if found != expected:
        path.unlink()
        raise DataError(f"{origin}: {algorithm} {found} instead of {expected}; the file was removed")


def _receive(url: str, part: Path) -> None:
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code == 416 and start:  # nothing is left to send: the part is whole, or of another file
            error.close()
            return
        raise
    with response:
        if response.status != 206:  # the server sends everything from the start
            start = 0
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else None
        with part.open("ab" if start else "wb") as file, _progress() as progress:
            task = progress.add_task(url.rsplit("/", 1)[-1], total=total, completed=start)
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                progress.advance(task, len(chunk))
    if total is not None and part.stat().st_size < total:
        raise ConnectionError(f"cut after {part.stat().st_size} of {total} bytes")


def _progress() -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    return Progress(*columns, console=Console(stderr=True))


def unpack(archive: Path, folder: Path, unpacks: tuple[str, ...]) -> None:
    """Puts what `archive` holds below `folder`, whole or not at all; only plain files, only below `folder`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".unpacking-", dir=folder) as temporary:
            _extract(archive, Path(temporary).resolve())
            for entry in unpacks:
                if not (Path(temporary) / entry).exists():
                    raise DataError(f"{archive}: {entry} is not in it")
            for entry in unpacks:
                if not (folder / entry).exists():
                    os.replace(Path(temporary) / entry, folder / entry)
    except DataError:
        raise
    except Exception as error:  # of tar, of three ways to compress, of the disk, and of headers that are no text
        raise DataError(f"{archive}: cannot be unpacked into {folder} ({one_line(error)})") from error


def _extract(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            if not member.isfile():
                continue
            target = (folder / member.name).resolve()
            if not target.is_relative_to(folder):
                raise DataError(f"{archive}: {member.name} points outside the archive")
            target.parent.mkdir(parents=True, exist_ok=True)
            packed = tar.extractfile(member)
            assert packed is not None  # it is a plain file
            with packed, target.open("wb") as file:
                shutil.copyfileobj(packed, file)
