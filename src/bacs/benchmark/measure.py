"""One cell as an independent job: adapts, predicts, scores and stores its record."""

import platform
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import bacs
from bacs import data
from bacs.agreement import observe
from bacs.benchmark import images, run_checksum, store
from bacs.benchmark.cell import Cell
from bacs.benchmark.clock import Clock
from bacs.benchmark.follow import follow
from bacs.benchmark.lasting import pass_through
from bacs.benchmark.progress import heartbeat
from bacs.benchmark.scores import judge, summary
from bacs.benchmark.tempered import Tempered
from bacs.data import ImageSet
from bacs.drivers.evaluate import member_probabilities
from bacs.ensemble import Ensemble
from bacs.methods.catalogue import METHODS
from bacs.metrics import scores_of
from bacs.predictive import average
from bacs.threads import OnBatch


@dataclass(frozen=True)
class CellJob:
    """All that a process anywhere needs to run one cell."""

    cell: Cell
    out: Path
    working: Path  # for what is shared while cells are at work
    run: Path
    about_run: dict[str, Any]
    data_dir: Path
    device: str = "cpu"
    compile: bool = False


def run_cell(job: CellJob) -> dict[str, Any] | None:
    """None once the cell is finished and its record stored, else the record of its failure.

    That one is for the sweep to store: a job that outlives its sweep must not write over what a later one finished.
    """
    if store.is_finished(job.out, job.cell):  # by a machine that was lost before it could say so
        return None
    try:
        record = measure(job)
    except Exception as error:
        return describe_failure(job, error)
    store.write(job.out, record)
    store.forget_stream(job.out, job.cell)
    return None


def describe_failure(job: CellJob, error: BaseException) -> dict[str, Any]:
    """The record of a cell that could not be finished."""
    text = " ".join(str(error).split())
    trace = "".join(traceback.format_exception(error))
    return _common(job) | {"error": f"{type(error).__name__}: {text}", "traceback": trace}


def measure(job: CellJob) -> dict[str, Any]:
    """The record of a cell."""
    cell, clock = job.cell, Clock()
    ensemble = run_checksum.open_unchanged(job.run, job.about_run["sha256"])
    clock.lap("load")
    first = shared_shift(job, cell.shifts[0])
    clock.lap("data")
    count = len(first) * len(cell.shifts)  # corruptions are of the same images
    if cell.world is not None:
        assert cell.world.images is not None
        count = cell.world.images
    names = list(first.classes if ensemble.class_names is None else ensemble.class_names)
    mask = None if first.class_mask is None else torch.as_tensor(first.class_mask)
    how = {"class_mask": mask, "device": job.device, "compile": job.compile}
    with heartbeat(job.working, cell, images=count, members=len(ensemble)) as beat:
        if cell.world is not None:
            state = {"folder": store.stream_folder(job.out, cell), "about": state_of(job)}
            fields = pass_through(cell, ensemble, first, names, clock, beat, **state, **how)
        elif cell.sequence:
            fields = follow(cell, ensemble, shared_shifts(job, clock), names, clock, beat, **how)
        else:
            fields = adapt_to(cell, ensemble, first, names, clock, beat, **how)
    clock.lap("scores")
    return _common(job) | {
        "images": count,
        **fields,
        "seconds": clock.seconds | {"total": clock.total()},
        "images_per_second": count * len(ensemble) / clock.seconds["passes"],
        "error": None,
    }


def state_of(job: CellJob) -> dict[str, Any]:
    """What a saved stream must have in common with a cell to go on with it."""
    return {"cell": job.cell.identity(), "run": job.about_run["sha256"], "device": job.device, "compile": job.compile}


def shared_shift(job: CellJob, name: str) -> ImageSet:
    """The images of a shift, as all cells that meet it share them."""
    seed, limit = job.cell.seed, job.cell.limit
    return images.make_once(
        images.folder(job.working, name), lambda: data.shift(name, data_dir=job.data_dir, seed=seed, limit=limit)
    )


def shared_shifts(job: CellJob, clock: Clock) -> Iterator[ImageSet]:
    """The shifts of a cell's sequence, each made or opened when the one before it has passed."""
    for name in job.cell.sequence:
        shift = shared_shift(job, name)
        clock.lap("data")
        yield shift


def adapt_to(
    cell: Cell, ensemble: Ensemble, shift: ImageSet, names: list[str], clock: Clock, on_batch: OnBatch, **options: Any
) -> dict[str, Any]:
    """The scores and curves of a record of one shift; members are predicted and scored one after another."""
    offline: dict[str, Any] = {"epochs": cell.epochs, "seed": cell.seed} if cell.protocol == "offline" else {}
    how = offline | cell.settings | options
    labels, scores, tempered = np.asarray(shift.labels), [], Tempered()

    def scored() -> Iterator[Tensor]:
        method, protocol = METHODS[cell.method], cell.protocol
        for rows in member_probabilities(ensemble, shift.images, method, protocol=protocol, on_batch=on_batch, **how):
            clock.lap("passes")
            scores.append(scores_of(rows, labels))
            tempered.add(rows)
            clock.lap("scores")
            yield rows

    predictive = average(scored())
    mean = predictive.probabilities
    found = summary(scores, judge(mean, labels), labels, names, mean.shape[1])
    return found | {"observed": observe(predictive)._asdict(), "tempered": tempered.scores(labels)}


def _common(job: CellJob) -> dict[str, Any]:
    versions = {"bacs": bacs.__version__} | {package: version(package) for package in ("torch", "numpy")}
    return job.cell.identity() | {
        "versions": versions | {"python": platform.python_version()},
        "run": job.about_run,
        "device": job.device,
        "compile": job.compile,
    }
