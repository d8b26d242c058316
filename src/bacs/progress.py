"""What all displays of progress share: lines, looks, and files in which jobs anywhere say how far they are."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bacs import files

if TYPE_CHECKING:
    from rich.console import Console

INTERVAL = 0.5
"""Seconds between two looks at what jobs say of themselves, and between two times that they say it."""


class Heartbeat:
    """Says about twice a second how far a job is; other processes, on other machines too, read it from the file."""

    def __init__(self, file: Path, describe: Callable[[int], str]) -> None:
        self.file, self.describe = file, describe
        self.done, self.written = 0, 0.0

    def __call__(self, count: int) -> None:
        """Counts what is done, and writes what `describe` makes of the number."""
        self.done += count
        if time.monotonic() - self.written > INTERVAL:
            self.written = time.monotonic()
            with suppress(OSError):  # nobody's result depends on it
                self.file.parent.mkdir(parents=True, exist_ok=True)
                files.write(self.file, self.describe(self.done).encode(), durable=False)


@contextmanager
def look_often(look: Callable[[], None]) -> Iterator[None]:
    """Calls `look` from a thread of its own while the block lasts, and once more at its end."""
    stop = threading.Event()

    def keep_looking() -> None:
        ending = False
        while not ending:
            ending = stop.wait(INTERVAL)
            look()

    thread = threading.Thread(target=keep_looking, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def say(text: str, console: "Console") -> None:
    """A line as it is, however narrow the terminal."""
    console.print(text, soft_wrap=True, markup=False, highlight=False)


def clock_text(seconds: float) -> str:
    """Hours, minutes and seconds: 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
