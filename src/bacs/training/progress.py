"""What a person sees of a run: a progress line per member on a terminal, a text line per epoch elsewhere.

Everything is read from the run's folder, so it is the same for members that train here, in other processes or on
other machines.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from bacs.progress import clock_text, look_often, say
from bacs.schema import Count, mismatch
from bacs.training import run_folder


class Now(TypedDict):
    """Where a member is in its epoch."""

    epoch: Count
    images: Count
    of: Count


@contextmanager
def show_progress(out: Path, members: list[int], epochs: int, console: Console) -> Iterator[None]:
    """Shows the progress of these members for a while."""
    if not console.is_terminal:
        said = {index: len(run_folder.read_log(out, index)) for index in members}
        with look_often(partial(_say_epochs, out, said, epochs, console)):
            yield
        return
    columns = (TextColumn("member {task.fields[member]}"), BarColumn(bar_width=20), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as progress:
        tasks = {index: progress.add_task("waiting", total=epochs, member=index) for index in members}
        with look_often(partial(_move_bars, out, tasks, epochs, progress)):
            yield


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


def _move_bars(out: Path, tasks: dict[int, TaskID], epochs: int, progress: Progress) -> None:
    """Brings every member's bar to where its files say that it is."""
    for index, task in tasks.items():
        log = run_folder.read_log(out, index)
        now = _now(out, index)
        if run_folder.is_finished(out, index):
            progress.update(task, completed=epochs, description=describe_epoch(log, epochs))
        elif log or now:
            inside = now.get("images", 0) / now["of"] if now.get("epoch") == len(log) else 0.0
            progress.update(task, completed=len(log) + inside, description=describe_epoch(log, epochs))


def _say_epochs(out: Path, said: dict[int, int], epochs: int, console: Console) -> None:
    """A line for every epoch that is new; `said` counts those of each member."""
    for index, before in said.items():
        log = run_folder.read_log(out, index)
        for count in range(before, len(log)):
            say(f"member {index}  {describe_epoch(log[: count + 1], epochs)}", console)
        said[index] = max(before, len(log))


def _now(out: Path, index: int) -> dict[str, Any]:
    """Where a member is at this moment, as far as it has said so."""
    try:
        now = json.loads(run_folder.now_file(out, index).read_text())
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return now if mismatch(now, Now, "now") is None and now["of"] > 0 else {}
