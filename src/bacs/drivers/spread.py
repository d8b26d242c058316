"""What `compare` does, as jobs for several machines: members that adapt, and portions of predictions.

The rows are those of one machine. A member's way depends on the images and the seed, not on where it is; a portion is
cut from the same order of the images, between the same batches, so that batch statistics are of the same images.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from bacs import inputs
from bacs.control import adapt_by_choice
from bacs.drivers.compare import BeforeAndAfter
from bacs.engine import Held, Outcome, Place
from bacs.ensemble import Ensemble, Member
from bacs.inputs import Images
from bacs.methods import offline
from bacs.methods.calibrate import calibrate
from bacs.methods.catalogue import Method, find
from bacs.methods.offline import Offline
from bacs.methods.prepare import copy_member
from bacs.methods.settings import AGREEMENT, NAMES, Settings
from bacs.posteriors.flat import Flat
from bacs.predictive import Predictive, average, join, select
from bacs.threads import OnBatch

PORTION = 256
"""Images of a portion: a second's work of a network at least, and few enough that the last ones keep nobody waiting."""


class Group(NamedTuple):
    """A job: members that adapt together, each to its view of the images."""

    work: Held  # an Offline over these members alone
    views: Sequence[Held]
    passes: int  # images that pass through members, for progress


class Portion(NamedTuple):
    """A job: some of the images, predicted by every member."""

    members: Sequence[Held]  # an ensemble of each member alone
    views: Sequence[Held]
    positions: Tensor
    batch_size: int
    device: str

    @property
    def passes(self) -> int:
        return len(self.positions) * len(self.members)


def run_job(job: Group | Portion) -> list[nn.Module] | Predictive:
    """Adapted models, or predictions; either on the processor, from where they may travel."""
    if isinstance(job, Group):
        work = job.work.get()
        homes = [copy_member(member, work.device) for member in work.source.members]
        moved = work.group(homes, [view.get() for view in job.views], lambda count: None)
        return [member.model.to("cpu") for member in moved]

    def rows() -> Iterator[Tensor]:
        for held, view in zip(job.members, job.views, strict=True):
            alone = held.get()
            alone.members[0].model.to(job.device)
            images = torch.from_numpy(view.get()[job.positions.numpy()])
            yield alone.predict_member(0, images, batch_size=job.batch_size, seed=None)

    return average(rows())


@dataclass(frozen=True)
class Spread:
    """Images that are held for jobs, and where these run."""

    place: Place
    images: Images
    views: Sequence[Held]
    count: int
    seed: int
    on_batch: OnBatch

    def run(self, jobs: Sequence[Group | Portion]) -> list[Any]:
        def hear(outcome: Outcome) -> None:
            self.on_batch(jobs[outcome.index].passes)

        return self.place.run(run_job, jobs, on_result=hear)

    def groups(self, work: Offline) -> list[Group]:
        """The jobs of an adaptation: one for each member, or one for all if they look at each other."""
        jobs = []
        for group in work.groups:
            members = [work.source.members[i] for i in group]
            alone = replace(work, source=replace(work.source, members=members), device=self.place.device)
            passes = round(work.epochs * self.count) * len(group) if work.method.adapts is not None else 0
            jobs.append(Group(self.place.hold(alone), [self.views[i] for i in group], passes))
        return jobs

    def portions(self, ensemble: Ensemble, batch_size: int) -> list[Portion]:
        """The jobs of predictions for all images."""
        held = [self.place.hold(replace(ensemble, members=[_without_posterior(member)])) for member in ensemble.members]
        order = self.order(ensemble)
        return [
            Portion(held, self.views, positions, batch_size, self.place.device)
            for positions in order.split(portion_sizes(self.count, batch_size))
        ]

    def order(self, ensemble: Ensemble) -> Tensor:
        """That of `Ensemble.predict`: random where statistics of the batch count."""
        mixed = ensemble.statistics.batch_weight > 0
        return inputs.order_of(self.count, torch.Generator().manual_seed(self.seed) if mixed else None)

    def gather(self, ensemble: Ensemble, parts: Sequence[Predictive]) -> Predictive:
        """The portions' predictions in the order of the images."""
        return select(join(parts), self.order(ensemble).argsort())

    def predict(self, ensemble: Ensemble, batch_size: int) -> Predictive:
        return self.gather(ensemble, self.run(self.portions(ensemble, batch_size)))

    def assemble(self, work: Offline, models: Sequence[Sequence[nn.Module]]) -> Ensemble:
        """The ensemble of the adapted models."""
        pairs = zip(work.source.members, (model for group in models for model in group), strict=True)
        result = work.result([replace(member, model=model) for member, model in pairs])
        if work.settings.temperature == AGREEMENT:
            result = calibrate(result, self.images, batch_size=work.batch_size, seed=self.seed)
        return result

    def adapt(self, ensemble: Ensemble, images: Images, method: str | Method, **arguments: Any) -> Ensemble:
        """`methods.adapt` by jobs."""
        settings = Settings(**{name: arguments.pop(name) for name in NAMES if name in arguments})
        arguments.pop("on_batch", None)  # jobs tell how far they are
        work = offline.prepare(ensemble, images, method, settings, **arguments)
        return self.assemble(work, self.run(self.groups(work)))


def compare(
    place: Place,
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
    """As `drivers.compare`, where `place` says and while it is connected. Images are arrays.

    Every machine holds the images once. What `auto` decides on, a probe of the images, is looked at here.
    """
    views = inputs.views_of(images, len(ensemble))
    ensemble.check_inputs(images, batch_size)
    kept = {id(view): place.hold(np.asarray(view)) for view in views}
    spread = Spread(place, images, [kept[id(view)] for view in views], inputs.count(images), seed, on_batch)
    predicting = predict_batch_size or batch_size
    if find(method)[1].chooses:
        before = spread.predict(ensemble, predicting)
        how: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "seed": seed, "on_batch": on_batch}
        adapted = adapt_by_choice(ensemble, images, adapt=spread.adapt, **how)
        return BeforeAndAfter(before, spread.predict(adapted, predicting), adapted)
    work = offline.prepare(ensemble, images, method, settings, epochs=epochs, batch_size=batch_size, seed=seed)
    groups = spread.groups(work)  # the long ones first; portions fill the gaps
    done = spread.run([*groups, *spread.portions(ensemble, predicting)])
    adapted = spread.assemble(work, done[: len(groups)])
    return BeforeAndAfter(spread.gather(ensemble, done[len(groups) :]), spread.predict(adapted, predicting), adapted)


def portion_sizes(count: int, batch_size: int) -> list[int]:
    """Sizes of portions that end where batches end.

    A single image left over goes with the portion before, of whose last batch it takes one (`inputs.batch_sizes`).

    >>> portion_sizes(1000, 128), portion_sizes(513, 128), portion_sizes(1000, 600)
    ([256, 256, 256, 232], [256, 257], [600, 400])
    """
    whole = max(1, PORTION // batch_size) * batch_size
    sizes = [whole] * (count // whole) + [count % whole] * (count % whole > 0)
    if sizes[-1:] == [1] and len(sizes) > 1:
        sizes[-2:] = [whole + 1]
    return sizes


def _without_posterior(member: Member) -> Member:
    """The member without what predictions do not need: a posterior is larger than its model."""
    return replace(member, posterior=Flat(dict(member.model.named_parameters())))
