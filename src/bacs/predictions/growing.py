"""A table that grows batch by batch, and can be cut back to where a saved state left it."""

import io
import os
from pathlib import Path
from typing import Any

from bacs import files
from bacs.errors import RunError
from bacs.predictions.writers import APPENDERS, Columns


def check_growing(path: Path) -> None:
    """Raises for a format that cannot be written row by row."""
    if path.suffix not in APPENDERS:
        raise ValueError(
            f"out must end in {' or '.join(APPENDERS)} where rows are written as they come (Parquet is written whole, "
            f"at the end: leave state out), got {path}"
        )


class GrowingTable:
    """CSV or JSON lines by the ending of its name; `bytes` says how long it is."""

    def __init__(self, path: Path, size: int) -> None:
        """Opens the table with its first `size` bytes; what it has beyond them is made again by who goes on."""
        there = path.stat().st_size if path.exists() else 0
        if there < size:
            raise RunError(f"{path} has {there} bytes and its state goes with {size}: put the table back")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = path.open("r+b" if path.exists() else "w+b", buffering=0)
        self._file.truncate(size)
        self._file.seek(size)
        self.bytes = size

    def append(self, columns: Columns) -> None:
        """Adds a row per image. A kill may leave the last one incomplete: whoever goes on cuts it off."""
        rows = io.BytesIO()
        APPENDERS[self._path.suffix](rows, columns, header=self.bytes == 0)
        data = memoryview(rows.getvalue())
        with files.explain_failure(self._path, "; the same command goes on"):
            while data:  # a disk that is almost full takes a part before it says so
                written = self._file.write(data)
                data = data[written:]
                self.bytes += written

    def sync(self) -> None:
        """Brings all rows to the disk, before a state is saved that counts on them."""
        os.fsync(self._file.fileno())

    def __enter__(self) -> "GrowingTable":
        return self

    def __exit__(self, *details: Any) -> None:
        self._file.close()
