"""A cell over a world: one stream of all members that is saved on its way, so that a kill costs a few batches.

The state has the stream, what was scored, and the seconds it took. The record is the one of a stream that nobody
stopped, but for the seconds.
"""

import shutil
from pathlib import Path
from typing import Any

from bacs.benchmark.cell import Cell
from bacs.benchmark.clock import Clock
from bacs.benchmark.tally import Tally, bounds_of
from bacs.data import world_batches
from bacs.data.image_set import ImageSet
from bacs.drivers import kept, stream
from bacs.ensemble import Ensemble
from bacs.methods import Stream
from bacs.methods.catalogue import METHODS
from bacs.methods.settings import settings_used
from bacs.threads import OnBatch

SAVE_EVERY = 50
"""Batches from one saved state to the next."""


def pass_through(
    cell: Cell,
    ensemble: Ensemble,
    shift: ImageSet,
    names: list[str],
    clock: Clock,
    on_batch: OnBatch,
    *,
    folder: Path,
    about: dict[str, Any],
    **options: Any,
) -> dict[str, Any]:
    """The scores, curves, windows and events of a record; `shift` are the clean images that the world changes.

    A stream that was kept in `folder` goes on if it is of the same cell: if `about` is what it was.
    """
    assert cell.world is not None
    batch_size = cell.settings["batch_size"]
    # A job that outlives its killed sweep for a moment may still be writing.
    with kept.own_folder(folder, wait=True):
        running, tally = begin_or_resume(cell, ensemble, folder, about, **options)
        clock.go_on(running.beside.get("seconds", {}))
        on_batch(tally.images * len(ensemble))
        how = {"batch_size": batch_size, "start": tally.images}
        for turn, batch in enumerate(world_batches(cell.world, shift.images, shift.labels, **how), start=1):
            clock.lap("data")
            rows = running.step_members(batch.images)
            clock.lap("passes")
            assert batch.labels is not None  # images without labels are refused where they are shared
            tally.add(rows, batch.labels)
            on_batch(len(batch.labels) * len(ensemble))
            clock.lap("scores")
            if turn % SAVE_EVERY == 0:
                tally.save(running, {"about": about, "seconds": clock.seconds})
                clock.lap("state")
        return tally.summary(names) | {"events": events_of(running, batch_size, tally.images)}


def begin_or_resume(
    cell: Cell, ensemble: Ensemble, folder: Path, about: dict[str, Any], **options: Any
) -> tuple[Stream, Tally]:
    """A stream and what was scored of it: from where they were left, else from the start."""
    assert cell.world is not None
    assert cell.window is not None
    tally = Tally(folder, list(bounds_of(cell.world, cell.window, cell.data)), len(ensemble))
    if kept.exists(folder):
        running = kept.read(folder, device=options["device"])
        if is_state_of(cell, running.beside.get("about"), about):
            tally.resume(running)
            return running, tally
    shutil.rmtree(folder, ignore_errors=True)
    running = stream(ensemble, cell.method, seed=cell.seed, **cell.stream_settings, **options)
    tally.save(running, {"about": about, "seconds": {}})
    return running, tally


def is_state_of(cell: Cell, there: dict[str, Any] | None, about: dict[str, Any]) -> bool:
    """Whether a state is of this very cell; an older one says less of its settings, and means the defaults."""
    if there is None or there["cell"]["method"] != cell.method:
        return False
    settings = settings_used(METHODS[cell.method], there["cell"]["settings"])
    return there | {"cell": there["cell"] | {"settings": settings}} == about


def events_of(running: Stream, batch_size: int, images: int) -> list[dict[str, Any]]:
    """Every decision of the stream, with the number of images that had passed."""
    return [event._asdict() | {"image": min(event.step * batch_size, images)} for event in running.history]
