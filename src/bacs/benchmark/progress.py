"""What a person sees of a sweep: a bar over all cells on a terminal, a line per cell elsewhere.

Cells at work say how far they are in small files, so it is the same for cells in this process, in others or on other
machines. The bar and the time left count forward passes, not cells: five epochs take longer than none.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from bacs.benchmark.cell import Cell
from bacs.progress import Heartbeat, clock_text, look_often, say


def progress_file(working: Path, cell: Cell) -> Path:
    return working / "progress" / cell.id


@contextmanager
def heartbeat(working: Path, cell: Cell, *, images: int, members: int) -> Iterator[Heartbeat]:
    """Says which share of a cell is done; its file is gone once the cell is."""
    file, whole = progress_file(working, cell), images * members * cell.passes
    try:
        yield Heartbeat(file, lambda done: str(min(1.0, done / whole)))
    finally:
        file.unlink(missing_ok=True)


class SweepProgress:
    """Hears of finished cells, and knows how much is done and left."""

    def __init__(self, working: Path, cells: Sequence[Cell], console: Console) -> None:
        self.working, self.console = working, console
        self.left = {cell.id: cell for cell in cells}
        self.count, self.whole = len(cells), sum(cell.cost for cell in cells)
        self.failed = 0
        self.began = time.monotonic()

    def done(self) -> float:
        """The share of all work that is done."""
        waiting = sum(cell.cost * (1 - self._share(cell)) for cell in list(self.left.values()))
        return 1 - waiting / self.whole if self.whole else 1.0

    def text(self) -> str:
        """Cells done and failed, and the time left at the speed so far."""
        done = self.done()
        failed = f", {self.failed} failed" if self.failed else ""
        left = f"  {clock_text((time.monotonic() - self.began) * (1 - done) / done)} left" if 0 < done < 1 else ""
        return f"{self.count - len(self.left)}/{self.count} cells{failed}{left}"

    def finish(self, cell: Cell, error: str | None) -> None:
        """Takes note of a cell that has come to its end."""
        self.left.pop(cell.id, None)
        self.failed += error is not None
        if error is not None:
            say(f"{cell}: {error}", self.console)
        elif not self.console.is_terminal:
            say(f"{self.text()}  {cell}", self.console)

    def _share(self, cell: Cell) -> float:
        try:
            return float(progress_file(self.working, cell).read_text() or 0)
        except FileNotFoundError:
            return 0.0


@contextmanager
def show_progress(working: Path, cells: Sequence[Cell], console: Console) -> Iterator[SweepProgress]:
    """Shows the progress of these cells for a while."""
    progress = SweepProgress(working, cells, console)
    if not console.is_terminal or not cells:
        yield progress
        return
    columns = (BarColumn(bar_width=30), TextColumn("{task.percentage:>3.0f} %  {task.description}"))
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(progress.text(), total=1.0)
        with look_often(lambda: bar.update(task, completed=progress.done(), description=progress.text())):
            yield progress
