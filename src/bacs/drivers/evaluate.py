"""Scores of a method on labelled shifted data: the single rows and the ensemble row of one run.

Labels are met here for the first time, after every prediction has been made.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from bacs import inputs, models
from bacs.control import adapt_by_choice
from bacs.drivers.stream import stream
from bacs.ensemble import Ensemble, check_ensemble
from bacs.errors import unknown_name
from bacs.inputs import Images, PerMember, Reader
from bacs.methods import offline
from bacs.methods.catalogue import Method, find
from bacs.methods.online import Stream, complete_settings
from bacs.methods.prepare import copy_member, groups_of
from bacs.methods.settings import AGREEMENT, NAMES, Settings
from bacs.metrics import mean_scores, scores_of
from bacs.predictive import average
from bacs.threads import OnBatch, Threads, can_share

PROTOCOLS = ("offline", "online")
KNOWN = (*NAMES, "epochs", "class_mask", "seed", "device", "compile", "guard")
"""Arguments of `bacs.adapt` and `bacs.stream` that may be passed on."""


class Evaluation(NamedTuple):
    members: list[dict[str, float]]  # scores of each member alone
    ensemble: dict[str, float]  # scores of the averaged probabilities
    probabilities: Tensor  # [images, classes], averaged

    @property
    def single(self) -> dict[str, float]:
        """The mean of the members' scores: the paper's rows without "ensemble"."""
        return mean_scores(self.members)


def evaluate(
    ensemble: Ensemble,
    images: Images,
    labels: Tensor | np.ndarray,
    method: str | Method = "auto",
    *,
    protocol: str = "offline",
    batch_size: int = 128,
    predict_batch_size: int | None = None,
    **arguments: Any,
) -> Evaluation:
    """Adapts and predicts by `method`, then scores every member and their mean in one run.

    Offline: `epochs` passes that adapt, one that predicts, in batches of `predict_batch_size` (as those that adapt
    if None). Online: one pass in the order of the images. Other arguments as in `bacs.adapt` and `bacs.stream`.
    Beyond the members, memory holds predictions of the members at work and their running sum.
    """
    check_ensemble(ensemble)
    labels, scores = _check_labels(labels, images, ensemble), []
    sizes = {"batch_size": batch_size, "predict_batch_size": predict_batch_size}

    def score_each() -> Iterator[Tensor]:
        for rows in member_probabilities(ensemble, images, method, protocol=protocol, **sizes, **arguments):
            scores.append(scores_of(rows, labels))
            yield rows

    mean = average(score_each()).probabilities
    return Evaluation(scores, scores_of(mean, labels), mean)


def _check_labels(labels: Any, images: Images, ensemble: Ensemble) -> Tensor:
    """The labels, looked at before any work is done; how many a DataLoader needs is known only afterwards."""
    try:
        known = torch.as_tensor(labels)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"labels must be class numbers, one per image, got {type(labels).__name__}") from None
    if known.ndim != 1 or known.dtype == torch.bool or known.is_floating_point() or known.is_complex():
        kind = str(known.dtype).removeprefix("torch.")
        raise ValueError(f"labels must be class numbers, one per image, got {kind} of shape {list(known.shape)}")
    if not isinstance(images, DataLoader) and len(known) != inputs.count(images):
        raise ValueError(f"labels must be one per image: {inputs.count(images)} images, got {len(known)} labels")
    classes = models.classes_of(ensemble.members[0].model)
    if len(known) and (known.min() < 0 or (classes is not None and known.max() >= classes)):
        rule = "at least 0" if classes is None else f"0..{classes - 1}"
        raise ValueError(f"labels must be {rule}, got {known.min()}..{known.max()}")
    return known


def member_probabilities(
    ensemble: Ensemble,
    images: Images,
    method: str | Method = "auto",
    *,
    protocol: str = "offline",
    batch_size: int = 128,
    predict_batch_size: int | None = None,
    on_batch: OnBatch = lambda count: None,
    **arguments: Any,
) -> Iterator[Tensor]:
    """Float64 probabilities [images, classes] of one adapted member after another; arguments as in `evaluate`."""
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    for name in arguments:
        if name not in KNOWN:
            raise TypeError(f"evaluate() got an unexpected keyword argument {name!r}; it takes {', '.join(KNOWN)}")
    if protocol == "online":
        for name in ("epochs", "predict_batch_size"):
            if name in arguments or (name == "predict_batch_size" and predict_batch_size is not None):
                raise ValueError(f"{name} belongs to protocol='offline': online, one pass both adapts and predicts")
        return _online(ensemble, images, method, batch_size, on_batch, arguments)
    if predict_batch_size is not None:
        inputs.check_batch_size(predict_batch_size, "predict_batch_size")
    return _offline(ensemble, images, method, batch_size, predict_batch_size or batch_size, on_batch, arguments)


def _offline(
    ensemble: Ensemble,
    images: Images,
    method: str | Method,
    batch_size: int,
    predict_batch_size: int,
    on_batch: OnBatch,
    arguments: dict[str, Any],
) -> Iterator[Tensor]:
    """Each group of members adapts, is predicted, and is dropped before the next begins."""
    views = inputs.views_of(images, len(ensemble))
    if find(method)[1].chooses:
        chosen = adapt_by_choice(ensemble, images, batch_size=batch_size, on_batch=on_batch, **arguments)
        shared: dict[str, Any] = {"batch_size": predict_batch_size, "seed": arguments.get("seed", 0)}
        yield from (chosen.predict_member(i, view, **shared, on_batch=on_batch) for i, view in enumerate(views))
        return
    settings = Settings(**{name: arguments.pop(name) for name in NAMES if name in arguments})
    work = offline.prepare(ensemble, images, method, settings, batch_size=batch_size, **arguments)
    how = {"batch_size": predict_batch_size, "seed": work.seed}
    if settings.temperature == AGREEMENT:  # which is known only when all have adapted
        adapted = work.whole(images, on_batch)
        yield from (adapted.predict_member(i, view, **how, on_batch=on_batch) for i, view in enumerate(views))
        return
    with work.threads(images) as threads:

        def rows(group: list[int], on_batch: OnBatch) -> list[Tensor]:
            homes = [copy_member(work.source.members[i], work.device) for i in group]
            own = [views[i] for i in group]
            adapted = work.result(work.group(homes, own, on_batch, threads))
            return [adapted.predict_member(i, view, **how, on_batch=on_batch) for i, view in enumerate(own)]

        for group in threads.imap(rows, work.groups, on_batch=on_batch):
            yield from group


def _online(
    ensemble: Ensemble,
    images: Images,
    method: str | Method,
    batch_size: int,
    on_batch: OnBatch,
    arguments: dict[str, Any],
) -> Iterator[Tensor]:
    """Each group of members follows the images as a stream of its own, and is dropped before the next begins."""
    row = find(method)[1]
    if row.chooses or arguments.get("guard") or arguments.get("temperature") == AGREEMENT:  # members go together
        yield from _follow(stream(ensemble, method, **arguments), images, batch_size, on_batch)
        return
    settings = complete_settings(
        ensemble, row, Settings(**{name: arguments[name] for name in NAMES if name in arguments})
    )
    views = inputs.views_of(images, len(ensemble))

    def rows(group: list[int], on_batch: OnBatch) -> list[Tensor]:
        running = stream(replace(ensemble, members=[ensemble.members[i] for i in group]), method, **arguments)
        return _follow(running, PerMember(views[i] for i in group), batch_size, on_batch)

    groups = groups_of(len(ensemble), row, settings)
    models = [member.model for member in ensemble.members]
    with Threads(len(ensemble), allowed=can_share(images, models, arguments.get("device"))) as threads:
        for group in threads.imap(rows, groups, on_batch=on_batch):
            yield from group


def _follow(running: Stream, images: Images, batch_size: int, on_batch: OnBatch) -> list[Tensor]:
    """The probabilities of every member of a stream, for the images in their order."""
    steps = []
    for _, batches in Reader(inputs.views_of(images, len(running.members)), batch_size, seed=None).batches():
        steps.append(running.step_members(PerMember(batches)))
        on_batch(sum(map(len, batches)))
    return [torch.cat(parts) for parts in zip(*steps, strict=True)]
