"""Whether something can be written, said before the work that makes it."""

import os
import tempfile
from pathlib import Path

from bacs.errors import RunError


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
