"""A cell over several shifts: one stream of all members meets them one after the other, without a reset.

Of each shift the images and the members' predictions are in memory only while it passes.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bacs.agreement import observe
from bacs.benchmark import scores
from bacs.benchmark.cell import Cell
from bacs.benchmark.clock import Clock
from bacs.benchmark.scores import Judged, judge
from bacs.data import StreamBatch, stream_batches
from bacs.data.image_set import ImageSet
from bacs.drivers import stream
from bacs.ensemble import Ensemble
from bacs.methods import Stream
from bacs.methods.catalogue import METHODS
from bacs.metrics import mean_scores
from bacs.predictive import average
from bacs.threads import OnBatch

OBSERVED = ("agreement", "confidence", "effective_classes")
"""What a window keeps of all that is seen without labels."""


def follow(
    cell: Cell,
    ensemble: Ensemble,
    shifts: Iterable[ImageSet],
    names: list[str],
    clock: Clock,
    on_batch: OnBatch,
    **options: Any,
) -> dict[str, Any]:
    """The scores, curves and windows of a record; `shifts` are those of the cell's sequence."""
    running = stream(ensemble, METHODS[cell.method], seed=cell.seed, **cell.stream_settings, **options)
    batches = stream_batches(shifts, batch_size=cell.settings["batch_size"], order="shuffled", seed=cell.seed)
    windows: list[dict[str, Any]] = []
    members: list[list[Judged]] = []  # by window and member
    means: list[Judged] = []
    seen: list[np.ndarray] = []  # labels, by shift
    classes = 0
    for name, arriving in groupby(batches, key=lambda batch: batch.shift):
        rows, labels = step_through(running, arriving, clock, on_batch)
        passed = sum(map(len, seen))
        for start, end in window_bounds(len(labels), cell.window or len(labels)):
            scored = score_window(name, passed + start, [own[start:end] for own in rows], labels[start:end])
            windows.append(scored.window)
            members.append(scored.members)
            means.append(scored.mean)
        seen.append(labels)
        classes = rows[0].shape[1]
        clock.lap("scores")
    whole = [scores.join(parts).scores for parts in zip(*members, strict=True)]
    return scores.summary(whole, scores.join(means), np.concatenate(seen), names, classes) | {"windows": windows}


class Scored(NamedTuple):
    window: dict[str, Any]  # as a record has it
    members: list[Judged]
    mean: Judged


def score_window(shift: str, first: int, rows: Sequence[Tensor], labels: np.ndarray) -> Scored:
    """The scores of a window, from the probabilities of each member, and what is seen in it without labels."""
    predictive = average(rows)
    members = [judge(own, labels) for own in rows]
    mean = judge(predictive.probabilities, labels)
    figures = observe(predictive)._asdict()
    window = {
        "shift": shift,
        "first": first,
        "images": len(labels),
        "single": mean_scores([member.scores for member in members]),
        "ensemble": mean.scores,
        "observed": {figure: figures[figure] for figure in OBSERVED},
    }
    return Scored(window, members, mean)


def step_through(
    running: Stream, batches: Iterable[StreamBatch], clock: Clock, on_batch: OnBatch
) -> tuple[list[Tensor], np.ndarray]:
    """The probabilities [images, classes] of each member for the images of one shift, and their labels."""
    steps, labels = [], []
    for batch in batches:
        steps.append(running.step_members(batch.images))
        assert batch.labels is not None  # images without labels are refused where they are shared
        labels.append(batch.labels)
        on_batch(len(batch.labels) * len(running.members))
        clock.lap("passes")
    return [torch.cat(parts) for parts in zip(*steps, strict=True)], np.concatenate(labels)


def window_bounds(images: int, size: int) -> list[tuple[int, int]]:
    """Where the windows of a shift begin and end; a rest smaller than half a window goes to the one before.

    >>> window_bounds(2500, 1000), window_bounds(2499, 1000)
    ([(0, 1000), (1000, 2000), (2000, 2500)], [(0, 1000), (1000, 2499)])
    """
    starts = list(range(0, images, size))
    if len(starts) > 1 and images - starts[-1] < size / 2:
        starts.pop()
    return list(zip(starts, [*starts[1:], images], strict=True))
