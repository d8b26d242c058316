"""One batch of the queue through the stream: predicted and adapted to, or predicted alone while it is frozen."""

from collections.abc import Sequence

import numpy as np
import torch

from bacs.adaptation.statistics import Statistics
from bacs.ensemble import Ensemble
from bacs.errors import DivergenceError
from bacs.inputs import PerMember
from bacs.methods import Stream
from bacs.predictive import Predictive, average, select
from bacs.preprocessing import geometry
from bacs.serve.queue import Views
from bacs.threads import Threads, can_share

Geometry = tuple[object, ...]

MISFIT = "the model does not take images of this shape and type"
UNANSWERABLE = "the model has no finite prediction for these images"


def geometries(ensemble: Ensemble) -> list[Geometry]:
    """Those that the members ask for, each once."""
    return list(dict.fromkeys(geometry(member.preprocessing) for member in ensemble.members))


def for_members(ensemble: Ensemble, views: Views) -> PerMember:
    """The view of each member; members that share one get the same tensor."""
    tensors = dict(zip(geometries(ensemble), map(torch.from_numpy, views), strict=True))
    return PerMember(tensors[geometry(member.preprocessing)] for member in ensemble.members)


def join_views(parts: Sequence[Views]) -> Views:
    """The images of several requests as one batch."""
    return tuple(np.concatenate(group) for group in zip(*parts, strict=True))


def predict_frozen(stream: Stream, images: PerMember) -> Predictive:
    """What the stream's members predict as they stand; nothing of the stream changes."""
    weight = stream.settings.batch_weight
    assert weight is not None
    ensemble = Ensemble(
        stream.members,
        class_mask=stream.source.class_mask,
        statistics=Statistics(weight, stream.settings.statistics),
        temperature=stream.temperature,
    )

    def rows(index: int) -> torch.Tensor:
        return ensemble.predict_member(index, images[index], batch_size=len(images[index]))

    models = [member.model for member in ensemble.members]
    with Threads(len(ensemble), allowed=can_share(images, models)) as threads:
        return average(threads.map(rows, range(len(ensemble))))


def part_of(predictive: Predictive, start: int, count: int) -> Predictive:
    """The predictions of some images of a batch."""
    return select(predictive, slice(start, start + count))


def why_unfit(stream: Stream, images: PerMember) -> str | None:
    """Why the ensemble as it came cannot answer for these images; None if it can."""
    try:
        stream.source.check_batches(list(images))
    except DivergenceError:
        return UNANSWERABLE
    except (ValueError, TypeError):
        return MISFIT
    return None
