"""What a person sees of a run: a progress line per member on a terminal, a text line per epoch elsewhere.

Everything is read from the run's folder, so it is the same for members that train here, in other processes or on
other machines.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypedDict

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from bacs import files
from bacs.schema import Count, mismatch
from bacs.training import run_folder

INTERVAL = 0.5
"""Seconds between two looks at what the members say of themselves, and between two times that they say it."""


class Now(TypedDict):
    """Where a member is in its epoch."""

    epoch: Count
    images: Count
    of: Count


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
def show_progress(out: Path, members: list[int], epochs: int, console: Console) -> Iterator[None]:
    """Shows the progress of these members for a while."""
    stop = threading.Event()
    show = _bars if console.is_terminal else _lines
    thread = threading.Thread(target=show, args=(out, members, epochs, console, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def describe_epoch(log: list[dict[str, Any]], epochs: int) -> str:
    """Epoch, learning rate, loss, accuracy, speed and time left after the last logged epoch."""
    if not log:
        return f"epoch 0/{epochs}"
    last = log[-1]
    left = (epochs - last["epoch"]) * last["seconds"]
    return (
        f"epoch {last['epoch']}/{epochs}  lr {last['learning_rate']:.4g}  loss {last['loss']:.3f}  "
        f"accuracy {last['accuracy']:.3f}  {last['images_per_second']:.0f} images/s  {clock_text(left)} left"
    )


def clock_text(seconds: float) -> str:
    """Hours, minutes and seconds: 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _bars(out: Path, members: list[int], epochs: int, console: Console, stop: threading.Event) -> None:
    columns = (TextColumn("member {task.fields[member]}"), BarColumn(bar_width=20), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as progress:
        tasks = {index: progress.add_task("waiting", total=epochs, member=index) for index in members}
        while True:
            ending = stop.wait(INTERVAL)
            for index, task in tasks.items():
                log = run_folder.read_log(out, index)
                now = _now(out, index)
                if run_folder.is_finished(out, index):
                    progress.update(task, completed=epochs, description=describe_epoch(log, epochs))
                elif log or now:
                    inside = now.get("images", 0) / now["of"] if now.get("epoch") == len(log) else 0.0
                    progress.update(task, completed=len(log) + inside, description=describe_epoch(log, epochs))
            if ending:
                return


def _lines(out: Path, members: list[int], epochs: int, console: Console, stop: threading.Event) -> None:
    shown = {index: len(run_folder.read_log(out, index)) for index in members}
    while True:
        ending = stop.wait(INTERVAL)
        for index in members:
            log = run_folder.read_log(out, index)
            for count in range(shown[index], len(log)):
                console.print(
                    f"member {index}  {describe_epoch(log[: count + 1], epochs)}",
                    soft_wrap=True,
                    markup=False,
                    highlight=False,
                )
            shown[index] = max(shown[index], len(log))
        if ending:
            return


def _now(out: Path, index: int) -> dict[str, Any]:
    """Where a member is at this moment, as far as it has said so."""
    try:
        now = json.loads(run_folder.now_file(out, index).read_text())
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return now if mismatch(now, Now, "now") is None and now["of"] > 0 else {}
