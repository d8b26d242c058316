"""Progress of a verb: bars on a terminal, a line per step elsewhere, so that a log shows what goes on."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


class Bars:
    """Steps of the work, one bar each."""

    def __init__(self, console: Console, progress: Progress) -> None:
        self._console, self._progress = console, progress

    def step(self, name: str) -> Callable[[int, int | None], None]:
        """Begins a step; what it returns hears how much was done, and of how much, where that is known."""
        task = self._progress.add_task(name, total=None)
        if not self._console.is_terminal:
            self._console.print(f"{name} ...", highlight=False)
        return lambda done, total: self._progress.update(task, advance=done, total=total)


@contextmanager
def bars(console: Console) -> Iterator[Bars]:
    """Bars, with the library's own warnings held back: the summary has them."""
    logger = logging.getLogger("bacs.methods")
    level = logger.level
    logger.setLevel(logging.ERROR)
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    try:
        with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
            yield Bars(console, progress)
    finally:
        logger.setLevel(level)
