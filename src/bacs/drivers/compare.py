"""Predictions before and after an adaptation, in one go: what `bacs adapt` shows."""

from itertools import islice
from typing import Any, NamedTuple

from torch import Tensor

from bacs import inputs
from bacs.control import adapt_by_choice
from bacs.ensemble import Ensemble
from bacs.inputs import Images
from bacs.methods import offline
from bacs.methods.catalogue import find
from bacs.methods.online import Stream
from bacs.methods.prepare import copy_member
from bacs.methods.settings import AGREEMENT, Settings
from bacs.predictive import Predictive, average
from bacs.threads import OnBatch


class BeforeAndAfter(NamedTuple):
    before: Predictive  # of the ensemble as it was
    after: Predictive
    adapted: Ensemble | Stream


def compare(
    ensemble: Ensemble,
    images: Images,
    method: str,
    settings: Settings,
    *,
    epochs: int | float = 1,
    batch_size: int = 128,
    predict_batch_size: int | None = None,
    seed: int = 0,
    on_batch: OnBatch = lambda count: None,
) -> BeforeAndAfter:
    """Adapts a copy of the ensemble to the images, and predicts them by both.

    Members adapt side by side, and predictions of the members as they were fill the gaps: five members on two cores
    would else leave one of them idle for a fifth of the time.
    """
    steps: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "seed": seed}
    how: dict[str, Any] = {"batch_size": predict_batch_size or batch_size, "seed": seed}
    work = None if find(method)[1].chooses else offline.prepare(ensemble, images, method, settings, **steps)
    # A choice, a lockstep and a temperature by agreement are of all members: none is done before the others.
    if work is None or len(work.groups) < len(ensemble) or settings.temperature == AGREEMENT:
        before = ensemble.predictive(images, **how, on_batch=on_batch)
        if work is None:
            adapted = adapt_by_choice(ensemble, images, **steps, on_batch=on_batch)
        else:
            adapted = work.whole(images, on_batch)
        return BeforeAndAfter(before, adapted.predictive(images, **how, on_batch=on_batch), adapted)
    views = inputs.views_of(images, len(ensemble))
    homes = [copy_member(member, work.device) for member in work.source.members]

    def rows_of(task: tuple[bool, int], on_batch: OnBatch) -> Tensor:
        adapts, index = task
        if not adapts:
            return ensemble.predict_member(index, views[index], **how, on_batch=on_batch)
        alone = work.result(work.group([homes[index]], [views[index]], on_batch))
        return alone.predict_member(0, views[index], **how, on_batch=on_batch)

    tasks = [(adapts, index) for adapts in (True, False) for index in range(len(ensemble))]  # the long ones first
    with work.threads(images) as threads:
        rows = threads.imap(rows_of, tasks, on_batch=on_batch)
        after = average(islice(rows, len(ensemble)))
        return BeforeAndAfter(average(rows), after, work.result(homes))
