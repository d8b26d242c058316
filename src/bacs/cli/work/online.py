"""`bacs adapt --online --state`: pictures as they come, rows as they come, and a state that survives any end.

A state says how many pictures have arrived and how long the table was; both are saved at once with the stream. What the
table has beyond that is cut off by the next call and made again from the same pictures, to the same rows.
"""

import json as json_format
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bacs.cli import INCOMPLETE
from bacs.cli.adapt import Wishes
from bacs.cli.progress import bars
from bacs.cli.runs import batch_size_for, open_run
from bacs.cli.settings import check_accuracy_of
from bacs.cli.signals import Signals
from bacs.data.arrivals import Arrivals, check_pictures, followed_names, listed_names, read_names
from bacs.data.picture_batches import PictureBatch, check_fits, picture_batches
from bacs.drivers import kept
from bacs.inputs import PerMember
from bacs.methods import Stream
from bacs.methods.settings import Settings
from bacs.predictions.growing import GrowingTable
from bacs.predictions.table import tabulate
from bacs.predictive import confidence_threshold

ARRIVED = "arrived.jsonl"
RECENT = 512
"""Images whose confidence says where to abstain, as in the service."""


def run_lasting(w: Wishes, method: str, settings: Settings) -> int:
    """The exit code."""
    assert w.state is not None
    names = list_names(w)
    with kept.own_folder(w.state), Signals() as signals:
        source, settings = open_run(w, method, settings)
        assert isinstance(source, Stream)
        check_accuracy_of(source.source, w.accuracy)
        check_fits([member.preprocessing for member in source.source.members])
        w = replace(w, batch_size=w.batch_size or batch_size_for(method, source))
        if w.dry_run:
            return rehearse(w, method, source)
        running = resume_or_begin(w, source, settings)
        before = running.beside["rows"]
        with GrowingTable(w.out, running.beside["bytes"]) as table:
            predict_all(w, running, table, names, signals)
    rows, skipped = running.beside["rows"], running.beside["skipped"]
    tell(w, method, running, rows - before)
    if signals.heard is not None and not w.follow:
        print(f"Stopped after {rows} rows; the same command goes on.", file=sys.stderr)
        return 128 + signals.heard
    return INCOMPLETE if skipped else 0


def list_names(w: Wishes) -> Iterator[str] | None:
    """The paths of pictures that are there already; None if they are still to come."""
    if w.images == ("-",):
        return None
    check_pictures(w.images)
    for place in w.images if w.follow else ():
        if not Path(place).expanduser().is_dir():
            raise ValueError(f"IMAGES must be a folder with follow, got {place}")
    return None if w.follow else listed_names(w.images)


def resume_or_begin(w: Wishes, source: Stream, settings: Settings) -> Stream:
    """The stream that the state has, else from its start.

    It is saved at once, so that a folder that cannot be written is an error before any work.
    """
    assert w.state is not None
    asked = describe_wishes(w, settings)
    if not kept.exists(w.state):
        if w.out.exists() and not w.overwrite:
            raise ValueError(f"out must be a new file, {w.out} exists: --overwrite replaces it")
        source.batch_size = w.batch_size
        source.beside = {"asked": asked, "arrived": 0, "rows": 0, "skipped": 0, "bytes": 0, "recent": []}
        kept.write(w.state, source)
        return source
    found = kept.read(w.state, model=w.model, device=w.device)
    kept.check_goes_on(found, source, w.state)
    if "asked" not in found.beside:
        raise ValueError(f"state must be a folder of bacs adapt, {w.state} holds another stream: give it as RUN")
    began = dict(found.beside["asked"])
    began["settings"] = Settings().as_json() | began["settings"]  # older states lack what was not there to be asked for
    for name, there in began.items():
        if asked[name] != there:
            raise ValueError(f"{name} must be {there!r}, as {w.state} began, got {asked[name]!r}")
    return found


def describe_wishes(w: Wishes, settings: Settings) -> dict[str, Any]:
    """What a state and the command that goes on with it must have in common, as JSON has it."""
    asked = {
        "out": str(w.out.absolute()),
        "batch_size": w.batch_size,
        "coverage": w.coverage,
        "accuracy": w.accuracy,
        "probabilities": w.probabilities,
        "classes": w.classes,
        "size": w.size,
        "settings": settings.as_json(),
    }
    return json_format.loads(json_format.dumps(asked))


def predict_all(w: Wishes, running: Stream, table: GrowingTable, names: Iterator[str] | None, signals: Signals) -> None:
    """Steps through all that comes, and saves every so many batches and at the end."""
    assert w.state is not None
    assert w.batch_size is not None
    arrivals = Arrivals(w.state / ARRIVED, running.beside["arrived"])
    fits = [member.preprocessing for member in running.source.members]
    if names is None and w.follow:
        names = followed_names(w.images, arrivals.seen, signals.stopped)
    elif names is None:
        names = read_names(sys.stdin.fileno(), signals.stopped)
    pictures = arrivals.follow(names, w.limit)
    with bars(Console(stderr=True)) as progress:
        step = progress.step(f"adapting online (members: {len(fits)})")
        for count, batch in enumerate(picture_batches(pictures, *fits, batch_size=w.batch_size, ends=not w.follow), 1):
            if signals.stopped() and not w.follow:  # a batch cut short differs from that of a whole run
                break
            predict_batch(w, running, table, batch)
            step(len(batch.index), None)
            if count % w.save_every == 0:
                save(w.state, running, table, arrivals)
    save(w.state, running, table, arrivals)


def predict_batch(w: Wishes, running: Stream, table: GrowingTable, batch: PictureBatch) -> None:
    """Predicts and adapts to one batch, and writes its rows; the state learns of it when it is saved."""
    beside = running.beside
    for path, reason in batch.failures:
        print(f"skipped {path}: {reason}", file=sys.stderr)
    recent = beside["recent"]
    if len(batch.index):
        predictive = running.step_predictive(PerMember(batch.views))
        how: dict[str, Any] = {"paths": batch.paths, "class_names": running.source.class_names}
        rows = tabulate(predictive, index=batch.index, **how)
        recent = [*recent, *rows.confidence.tolist()][-max(RECENT, len(rows)) :]
        coverage = 0.9 if w.coverage is None else w.coverage
        least = confidence_threshold(np.array(recent), coverage=coverage, accuracy=w.accuracy)
        rows = replace(rows, abstain=rows.confidence < least)
        table.append(rows.columns(probabilities=w.probabilities))
    running.beside = beside | {
        "arrived": batch.end,
        "rows": beside["rows"] + len(batch.index),
        "skipped": beside["skipped"] + len(batch.failures),
        "bytes": table.bytes,
        "recent": recent,
    }


def save(folder: Path, running: Stream, table: GrowingTable, arrivals: Arrivals) -> None:
    """Rows and names first, then the state that counts on them."""
    table.sync()
    arrivals.sync()
    kept.write(folder, running)


def tell(w: Wishes, method: str, running: Stream, new: int) -> None:
    """Prints what was done."""
    beside = running.beside
    if w.json:
        about = {"out": str(w.out), "state": str(w.state), "method": method, "protocol": "online"}
        counts = {"images": beside["rows"], "new": new, "skipped": beside["skipped"], "steps": running.steps}
        seen = {"members": len(running.source), "temperature": running.temperature}
        history = [event._asdict() for event in running.history]
        print(json_format.dumps(about | counts | seen | {"history": history}))
        return
    print(f"{method}, online, members: {len(running.source)}")
    for event in running.history[-3:]:
        print(f"  after step {event.step}: {event.reason}" if event.reason else f"  after step {event.step}")
    print(f"images: {beside['rows']}, new: {new}, pictures skipped: {beside['skipped']}")
    print(f"table: {w.out}\nstate: {w.state}")


def rehearse(w: Wishes, method: str, source: Stream) -> int:
    """Says what would be done."""
    print(f"{method}, online, members: {len(source.source)}, batches of {w.batch_size}")
    print(f"would {'go on with' if w.state is not None and kept.exists(w.state) else 'begin'} {w.state}")
    print(f"would write: {w.out}")
    return 0
