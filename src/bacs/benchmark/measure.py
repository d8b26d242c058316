"""One cell as an independent job: adapts, predicts, scores and stores its record."""

import platform
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bacs import data, metrics
from bacs.benchmark import images, source, store
from bacs.benchmark.cell import Cell
from bacs.benchmark.watch import Heartbeat
from bacs.data import Shift
from bacs.ensemble import Ensemble
from bacs.methods.catalogue import METHODS
from bacs.methods.evaluate import member_probabilities
from bacs.metrics import mean_scores, scores_of
from bacs.predictive import average

CURVE = 50
"""Points that are kept of a risk-coverage curve."""


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
    if store.is_finished(job.out, job.cell):  # a machine was lost after its last deed
        return None
    try:
        record = measured(job)
    except Exception as error:
        return failed(job, error)
    store.write(job.out, record)
    return None


def failed(job: CellJob, error: BaseException) -> dict[str, Any]:
    """The record of a cell that could not be finished."""
    text = " ".join(str(error).split())
    trace = "".join(traceback.format_exception(error))
    return _common(job) | {"error": f"{type(error).__name__}: {text}", "traceback": trace}


def measured(job: CellJob) -> dict[str, Any]:
    """The record of a cell. Labels are met after the predictions of each member have been made."""
    clock = Clock()
    ensemble = source.opened(job.run, job.about_run["sha256"])
    clock.lap("load")
    shift = shifted(job)
    clock.lap("data")
    labels = torch.as_tensor(shift.labels)
    members: list[dict[str, float]] = []
    with Heartbeat(job.working, job.cell, images=len(labels), members=len(ensemble)) as beat:
        rows = passes(job, ensemble, shift, beat)
        mean = average(scored_members(rows, labels, members, clock)).probabilities
    names = list(shift.classes if ensemble.class_names is None else ensemble.class_names)
    found = scored(members, mean, labels, names)
    clock.lap("scores")
    work = len(labels) * len(ensemble)
    return _common(job) | {
        "images": len(labels),
        **found,
        "seconds": clock.seconds | {"total": clock.total()},
        "images_per_second": work / clock.seconds["passes"],
        "error": None,
    }


def shifted(job: CellJob) -> Shift:
    """The cell's images, as all cells of its shift share them."""
    cell = job.cell
    return images.shared(
        images.folder(job.working, cell.shift),
        lambda: data.shift(cell.shift, data_dir=job.data_dir, seed=cell.seed, limit=cell.limit),
    )


def passes(job: CellJob, ensemble: Ensemble, shift: Shift, beat: Any) -> Iterator[Tensor]:
    """The probabilities of one member after another."""
    cell = job.cell
    offline: dict[str, Any] = {"epochs": cell.epochs, "seed": cell.seed} if cell.protocol == "offline" else {}
    return member_probabilities(
        ensemble,
        shift.images,
        METHODS[cell.method],
        protocol=cell.protocol,
        class_mask=None if shift.class_mask is None else torch.as_tensor(shift.class_mask),
        device=job.device,
        compile=job.compile,
        on_batch=beat,
        **offline,
        **cell.settings,
    )


def scored(members: list[dict[str, float]], mean: Tensor, labels: Tensor, names: list[str]) -> dict[str, Any]:
    """The scores and curves of a record from those of the members and the averaged probabilities."""
    reliability = metrics.reliability_curve(mean, labels)
    risk = metrics.risk_coverage(mean, labels)
    kept = np.unique(np.linspace(0, len(labels) - 1, CURVE).round().astype(int))
    right = mean.argmax(dim=1) == labels
    by_class = [right[labels == number] for number in range(mean.shape[1])]
    return {
        "members": members,
        "single": mean_scores(members),
        "ensemble": scores_of(mean, labels),
        "class_names": names,
        "class_accuracy": [float(rows.double().mean()) if len(rows) else None for rows in by_class],
        "reliability": {"confidence": reliability.confidence.tolist(), "accuracy": reliability.accuracy.tolist()},
        "risk_coverage": {"coverage": risk.coverage[kept].tolist(), "risk": risk.risk[kept].tolist()},
    }


class Clock:
    """Seconds by what they were spent on; each lap since the last one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.began = self.last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self.last
        self.last = now

    def total(self) -> float:
        return time.perf_counter() - self.began


def scored_members(
    rows: Iterable[Tensor], labels: Tensor, scores: list[dict[str, float]], clock: Clock
) -> Iterator[Tensor]:
    """The same probabilities; the scores of each member are put into `scores` as it goes by."""
    for each in rows:
        clock.lap("passes")
        scores.append(scores_of(each, labels))
        clock.lap("scores")
        yield each


def _common(job: CellJob) -> dict[str, Any]:
    versions = {package: version(package) for package in ("bacs", "torch", "numpy")}
    return job.cell.identity() | {
        "versions": versions | {"python": platform.python_version()},
        "run": job.about_run,
        "device": job.device,
        "compile": job.compile,
    }
