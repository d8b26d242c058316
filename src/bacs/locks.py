"""Locks by files: the system takes them back from a process that dies, however it dies."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from bacs.errors import RunError


@contextmanager
def locked(file: Path, what: str, *, wait: bool = False) -> Iterator[None]:
    """Sole right to something; the file is gone afterwards.

    If another process has it, waits, or raises a RunError: `what` (is done) by another process.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = _hold(file, what, wait)
    while not _names(file, handle):  # the owner before us has removed it since we opened it
        handle.close()
        handle = _hold(file, what, wait)
    with handle:
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no file that is open
                file.unlink()


def _hold(file: Path, what: str, wait: bool) -> IO[str]:
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


def _names(file: Path, handle: IO[str]) -> bool:
    """Whether the path still leads to the file that is open."""
    try:
        return os.path.samestat(file.stat(), os.fstat(handle.fileno()))
    except FileNotFoundError:
        return False
