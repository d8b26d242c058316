"""Where a user's pictures lie: the files of a folder, a glob or a path, or the rows of a Parquet file."""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bacs.data.folder import EXTENSIONS
from bacs.data.formats import arrays, parquet
from bacs.errors import DataError


class Encoded(NamedTuple):
    index: int  # its place in the listing
    name: str
    data: Path | bytes


class Listing(NamedTuple):
    pictures: Iterable[Encoded]
    count: int
    ignored: int = 0  # files of a folder that are no pictures by their names


def list_all(places: Sequence[str | Path]) -> Listing:
    """The encoded pictures of several places one after the other, none of them read yet.

    A place is a folder with its sub-folders, a glob or one file, and comes in the order of its paths, each file once,
    however often it is named; or it is a Parquet file, which comes alone.
    """
    files: dict[Path, None] = {}
    ignored = 0
    for place in places:
        path = Path(place).expanduser()
        if len(places) > 1 and path.suffix in (*arrays.SUFFIXES, ".parquet") and not path.is_dir():
            raise DataError(f"{path} must be given alone: arrays and tables are not joined with pictures")
        if path.suffix == ".parquet" and path.is_file():
            return Listing(_rows(path), parquet.count_rows(path))
        found, others = _list_files(str(place), path)
        files |= dict.fromkeys(found)
        ignored += others
    return Listing((Encoded(i, as_text(file), file) for i, file in enumerate(files)), len(files), ignored)


def _list_files(place: str, path: Path) -> tuple[list[Path], int]:
    """The files to decode in the order of their paths, and how many others a folder has."""
    if path.is_dir():
        files, ignored = pictures_below(path)
        if not files:
            raise DataError(f"{path}: no pictures ({', '.join(EXTENSIONS)}) in it or below it")
        return files, ignored
    if os.path.lexists(path):
        return [path], 0
    if not glob.has_magic(place):
        raise DataError(f"{place} is missing: IMAGES is a folder, a glob in quotes, a picture, or an array file")
    matches = [Path(match) for match in glob.glob(os.path.expanduser(place), recursive=True)]
    files = [match for match in matches if _looks_like_picture(match) or not match.is_dir()]
    if not files:
        raise DataError(f"{place} matches no file")
    return sorted(files), 0


def pictures_below(folder: Path) -> tuple[list[Path], int]:
    """Pictures by their names, folders so named and folders that are closed to us included: decoding names those."""
    files, ignored, seen = [], 0, set()

    def closed(error: OSError) -> None:
        files.append(Path(error.filename))

    for place, folders, names in os.walk(folder, onerror=closed, followlinks=True):
        real = os.path.realpath(place)
        visible = [name for name in folders if not name.startswith(".")]
        # A link to a folder above would never end; a folder named like a picture is an accident that is reported.
        folders[:] = [] if real in seen else sorted(name for name in visible if not _looks_like_picture(Path(name)))
        if real in seen:
            continue
        seen.add(real)
        files += [Path(place, name) for name in visible if name not in folders]
        names = [name for name in names if not name.startswith(".")]
        chosen = [Path(place, name) for name in names if _looks_like_picture(Path(name))]
        files += chosen
        ignored += len(names) - len(chosen)
    return sorted(files), ignored


def _looks_like_picture(path: Path) -> bool:
    return path.suffix.lower() in EXTENSIONS


def _rows(path: Path) -> Iterator[Encoded]:
    for index, row in enumerate(parquet.read_pictures(path)):
        yield Encoded(index, row.path or f"{as_text(path)} row {index}", row.data)


def as_text(path: Path) -> str:
    """The path as text that every format can hold; bytes that are no UTF-8 are written as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
