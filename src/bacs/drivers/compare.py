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
    if find(method)[1].chooses:
        return _by_choice(ensemble, images, epochs, batch_size, predict_batch_size, seed, on_batch)
    work = offline.prepare(ensemble, images, method, settings, epochs=epochs, batch_size=batch_size, seed=seed)
    views = inputs.views_of(images, len(ensemble))
    how: dict[str, Any] = {"batch_size": predict_batch_size or batch_size, "seed": seed}
    lockstep = len(work.groups) < len(ensemble)
    if lockstep or settings.temperature == AGREEMENT:  # which is known only when all have adapted
        before = ensemble.predictive(images, **how, on_batch=on_batch)
        adapted = work.whole(images, on_batch)
        return BeforeAndAfter(before, adapted.predictive(images, **how, on_batch=on_batch), adapted)
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


def _by_choice(
    ensemble: Ensemble,
    images: Images,
    epochs: int | float,
    batch_size: int,
    predict_batch_size: int | None,
    seed: int,
    on_batch: OnBatch,
) -> BeforeAndAfter:
    how: dict[str, Any] = {"batch_size": predict_batch_size or batch_size, "seed": seed, "on_batch": on_batch}
    before = ensemble.predictive(images, **how)
    adapted = adapt_by_choice(ensemble, images, epochs=epochs, batch_size=batch_size, seed=seed, on_batch=on_batch)
    return BeforeAndAfter(before, adapted.predictive(images, **how), adapted)
