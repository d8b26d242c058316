"""Pictures that arrive one after the other, written down in their order before anything is made of them.

So a stream that was killed meets them in the same order again, whatever has come since, and none of them twice. Names
come from folders that are there, from folders that fill up, or line by line from standard input.
"""

import json
import os
import select
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from bacs.data.formats import arrays
from bacs.data.listing import Encoded, as_text, list_all, pictures_below
from bacs.errors import DataError

PAUSE = 1.0
"""Seconds from one look into a folder to the next; more where a look takes long."""
SETTLED = 2.0
"""Seconds since a file was written after which nobody is taken to be writing it."""
STEP = 0.2  # seconds after which a wait looks whether it is to end


class Arrivals:
    """The names of a stream's pictures in a file, one per line. `done` of them belong to the state it goes on from."""

    def __init__(self, file: Path, done: int) -> None:
        self._file, self._done = file, done
        self.seen: set[str] = set()  # each picture once, however often it is named
        self._waiting: list[str] = []
        whole = 0
        with file.open("a+b") as lines:
            lines.seek(0)
            for line in lines:
                if not line.endswith(b"\n"):  # torn by a kill
                    break
                name, whole = json.loads(line), whole + len(line)
                self.seen.add(name)
                self._waiting += [name] if len(self.seen) > done else []
            lines.truncate(whole)
        if len(self.seen) < done:
            raise DataError(f"{file} is damaged: it has {len(self.seen)} names, and {done} pictures were predicted")

    def follow(self, names: Iterable[str], limit: int | None = None) -> Iterator[Encoded]:
        """Those that were written down and not predicted, then the new ones among `names`; up to `limit` in all."""
        count = self._done
        for name in self._waiting[: None if limit is None else max(0, limit - count)]:
            yield _picture_at(count, name)
            count += 1
        with self._file.open("a", encoding="ascii") as lines:
            for name in names if limit is None or count < limit else ():
                if name in self.seen:
                    continue
                self.seen.add(name)
                lines.write(json.dumps(name) + "\n")
                lines.flush()
                yield _picture_at(count, name)
                count += 1
                if count == limit:
                    return

    def sync(self) -> None:
        """Brings all names to the disk, before a state is saved that counts on them."""
        with self._file.open("rb") as lines:
            os.fsync(lines.fileno())


def _picture_at(index: int, name: str) -> Encoded:
    return Encoded(index, as_text(Path(name)), Path(name))


def listed_names(places: Sequence[str | Path]) -> Iterator[str]:
    """The pictures that are there now, in the order of their paths; raises at once if there are none."""
    pictures = list_all(places).pictures
    return (os.fspath(picture.data) for picture in pictures if isinstance(picture.data, Path))


def check_pictures(places: Sequence[str | Path]) -> None:
    """Raises for arrays and tables, which have no names to go on from."""
    for place in places:
        path = Path(place)
        if path.suffix in (*arrays.SUFFIXES, ".parquet") and not path.is_dir():
            raise ValueError(f"state must be left out for arrays and tables, it is for picture files: {path}")


def followed_names(
    folders: Sequence[str | Path], seen: set[str], stopped: Callable[[], bool], *, pause: float = PAUSE
) -> Iterator[str]:
    """Pictures as they come into folders, until it is stopped; of those found at one look in the order of their paths.

    A file is taken when it has not changed from one look to the next, or for two seconds. `seen` are left out.
    """
    before: dict[str, tuple[int, int]] = {}
    while not stopped():
        began, changing = time.monotonic(), {}
        found = [path for folder in folders for path in pictures_below(Path(folder).expanduser())[0]]
        for name in map(os.fspath, found):
            if name in seen:
                continue
            try:
                about = os.stat(name)
            except OSError:  # gone again
                continue
            mark = about.st_size, about.st_mtime_ns
            if before.get(name) == mark or time.time() - about.st_mtime > SETTLED:
                yield name
            else:
                changing[name] = mark
        before = changing
        until = time.monotonic() + max(pause, 4 * (time.monotonic() - began))
        while not stopped() and time.monotonic() < until:
            time.sleep(min(STEP, pause))


def read_names(descriptor: int, stopped: Callable[[], bool]) -> Iterator[str]:
    """Paths of an open file or pipe, one per line, until its end or until it is stopped."""
    rest = b""
    while not stopped():
        if not select.select([descriptor], [], [], STEP)[0]:
            continue
        data = os.read(descriptor, 1 << 16)
        *lines, rest = (rest + data).split(b"\n") if data else (rest, b"")
        for line in lines:
            if name := os.fsdecode(line.rstrip(b"\r")):
                yield name
        if not data:
            return
