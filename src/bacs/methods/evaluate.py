"""Scores of a method on labelled shifted data: the single rows and the ensemble row of one run.

Labels are met here for the first time, after every prediction has been made.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bacs import metrics
from bacs.ensemble import Ensemble, Member
from bacs.errors import unknown_name
from bacs.inputs import Images, batches
from bacs.methods.catalogue import Method
from bacs.methods.offline import adapt
from bacs.methods.online import stream
from bacs.side_by_side import OnBatch, safe, side_by_side

PROTOCOLS = ("offline", "online")
SCORES: dict[str, Callable[[Tensor, Tensor], float]] = {
    "accuracy": metrics.accuracy,
    "nll": metrics.nll,
    "brier": metrics.brier,
    "ece": metrics.ece,
}


class Evaluation(NamedTuple):
    members: list[dict[str, float]]  # scores of each member alone
    ensemble: dict[str, float]  # scores of the averaged probabilities
    probabilities: Tensor  # [images, classes], averaged

    @property
    def single(self) -> dict[str, float]:
        """The mean of the members' scores: the paper's rows without "ensemble"."""
        return {name: float(np.mean([scores[name] for scores in self.members])) for name in SCORES}


def evaluate(
    ensemble: Ensemble,
    images: Images,
    labels: Tensor | np.ndarray,
    method: str | Method = "bacs",
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
    labels = torch.as_tensor(labels)
    scores, total = [], None
    sizes = {"batch_size": batch_size, "predict_batch_size": predict_batch_size}
    for rows in member_probabilities(ensemble, images, method, protocol=protocol, **sizes, **arguments):
        scores.append({name: score(rows, labels) for name, score in SCORES.items()})
        total = rows.clone() if total is None else total.add_(rows)
    assert total is not None
    mean = total / len(ensemble)
    return Evaluation(scores, {name: score(mean, labels) for name, score in SCORES.items()}, mean)


def member_probabilities(
    ensemble: Ensemble,
    images: Images,
    method: str | Method = "bacs",
    *,
    protocol: str = "offline",
    batch_size: int = 128,
    predict_batch_size: int | None = None,
    **arguments: Any,
) -> Iterator[Tensor]:
    """Float64 probabilities [images, classes] of one adapted member after another; arguments as in `evaluate`."""
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    if protocol == "online":
        if predict_batch_size is not None:
            raise _offline_only("predict_batch_size")
        return _online(ensemble, images, method, batch_size, arguments)
    predicting = predicted_at_once(batch_size, predict_batch_size)
    return _offline(ensemble, images, method, batch_size, predicting, arguments)


def predicted_at_once(batch_size: int, predict_batch_size: int | None) -> int:
    """Images of each batch that is predicted: as many as adapt in a step, unless said otherwise."""
    if predict_batch_size is not None and predict_batch_size < 1:
        raise ValueError(f"predict_batch_size must be at least 1, got {predict_batch_size}")
    return batch_size if predict_batch_size is None else predict_batch_size


def _offline_only(name: str) -> ValueError:
    return ValueError(f"{name} belongs to protocol='offline': online, one pass both adapts and predicts")


def _offline(
    ensemble: Ensemble,
    images: Images,
    method: str | Method,
    batch_size: int,
    predicting: int,
    arguments: dict[str, Any],
) -> Iterator[Tensor]:
    """Probabilities of one member after another; an adapted member is dropped before the next begins."""
    ensemble.check_inputs(images, batch_size)
    seed = arguments.get("seed", 0)

    def rows(member: Member, on_batch: OnBatch) -> Tensor:
        alone = Ensemble([member], ensemble.class_names, ensemble.class_mask, ensemble.statistics)
        adapted = adapt(alone, images, method, batch_size=batch_size, on_batch=on_batch, **arguments)
        return adapted.predict_member(0, images, batch_size=predicting, seed=seed, on_batch=on_batch)

    return _each(rows, ensemble, images, arguments)


def _online(
    ensemble: Ensemble, images: Images, method: str | Method, batch_size: int, arguments: dict[str, Any]
) -> Iterator[Tensor]:
    for name in ("epochs", "predict_statistics"):
        if name in arguments:
            raise _offline_only(name)
    arguments.pop("seed", None)  # the order of the images is the stream's own: nothing is drawn

    def rows(member: Member, on_batch: OnBatch) -> Tensor:
        alone = Ensemble([member], ensemble.class_names, ensemble.class_mask, ensemble.statistics)
        running = stream(alone, method, **arguments)
        steps = []
        for _, batch in batches(images, batch_size):
            steps.append(running.step_members(batch)[0])
            on_batch(len(batch))
        return torch.cat(steps)

    return _each(rows, ensemble, images, arguments)


def _each(
    rows: Callable[[Member, OnBatch], Tensor], ensemble: Ensemble, images: Images, arguments: dict[str, Any]
) -> Iterator[Tensor]:
    together = safe(images, [member.model for member in ensemble.members], arguments.get("device"))
    on_batch = arguments.pop("on_batch", lambda count: None)
    return side_by_side(rows, ensemble.members, on_batch=on_batch, allowed=together)
