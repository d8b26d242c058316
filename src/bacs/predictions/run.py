"""Adapting to images and predicting them, member by member: each may take them at a size of its own."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bacs import inputs
from bacs.ensemble import Ensemble
from bacs.inputs import Images
from bacs.methods.evaluate import predicted_at_once
from bacs.methods.offline import adapt
from bacs.methods.online import Stream
from bacs.predictions.uncertainty import Predictive, accumulate, averaged, joined

OnBatch = Callable[[int], None]


class Outcome(NamedTuple):
    before: Predictive  # of the ensemble as it was
    after: Predictive
    adapted: Ensemble | Stream


def run_offline(
    ensemble: Ensemble,
    views: Sequence[Images],
    method: str,
    *,
    batch_size: int = 128,
    predict_batch_size: int | None = None,
    seed: int = 0,
    on_batch: OnBatch = lambda count: None,
    **arguments: Any,
) -> Outcome:
    """Passes that adapt, then one that predicts; arguments as in `bacs.evaluate`. `views`: images for each member."""
    predicting = predicted_at_once(batch_size, predict_batch_size)
    _check(ensemble, views, batch_size)
    options: dict[str, Any] = {"seed": seed, "on_batch": on_batch}
    before: Predictive | None = None
    after: Predictive | None = None
    finished: list[Ensemble] = []
    for index, view in enumerate(views):
        alone = replace(ensemble, members=[ensemble.members[index]])
        rows = alone.predict_member(0, view, batch_size=predicting, **options)
        before = accumulate(before, rows, members=len(views))
        finished.append(adapt(alone, view, method, batch_size=batch_size, **options, **arguments))
        rows = finished[-1].predict_member(0, view, batch_size=predicting, **options)
        after = accumulate(after, rows, members=len(views))
    assert before is not None
    assert after is not None
    members = [member for one in finished for member in one.members]
    return Outcome(before, after, replace(finished[0], members=members))


def run_online(
    stream: Stream,
    views: Sequence[Images],
    *,
    batch_size: int = 128,
    seed: int = 0,
    on_batch: OnBatch = lambda count: None,
) -> Outcome:
    """One pass in the order of the images, which the stream follows; predictions come from each batch as it arrives."""
    source, count = stream.source, len(views)
    _check(source, views, batch_size)
    before: Predictive | None = None
    for index, view in enumerate(views):
        rows = source.predict_member(index, view, batch_size=batch_size, seed=seed, on_batch=on_batch)
        before = accumulate(before, rows, members=count)
    assert before is not None
    parts = []
    for pieces in zip(*(inputs.batches(view, batch_size) for view in views), strict=True):
        parts.append(averaged(stream.step_each([batch for _, batch in pieces])))
        on_batch(len(pieces[0][1]) * count)
    return Outcome(before, joined(parts), stream)


def _check(ensemble: Ensemble, views: Sequence[Images], batch_size: int) -> None:
    if len(views) != len(ensemble):
        raise ValueError(f"views must be one a member, got {len(views)} for {len(ensemble)} members")
    for view in {id(view): view for view in views}.values():
        inputs.check(view, batch_size=batch_size)
    ensemble.check_each([inputs.first(view) for view in views])
