"""`bacs.adapt`: the offline protocol over an ensemble. Passes that adapt, and an ensemble that predicts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bacs import inputs
from bacs.adaptation import loop, statistics
from bacs.adaptation.statistics import SOURCE, Statistics
from bacs.engine import Place
from bacs.ensemble import Ensemble, Member
from bacs.inputs import Images, Reader
from bacs.methods.calibrate import calibrate
from bacs.methods.catalogue import Method, find
from bacs.methods.prepare import (
    check_choice,
    copy_member,
    groups_of,
    mover_for,
    with_class_mask,
    working_copy,
    write_back,
)
from bacs.methods.settings import AGREEMENT, Settings, check_epochs
from bacs.threads import OnBatch, Threads, can_share


def adapt(
    ensemble: Ensemble,
    images: Images,
    method: str | Method = "auto",
    *,
    epochs: int | float = 1,
    batch_size: int = 128,
    learning_rate: float = 1e-3,
    posterior_weight: float = 1e-4,
    momentum: float = 0.9,
    optimizer: str = "sgd",
    posterior_step: str = "proximal",
    min_variance: float = 1e-12,
    objective: str | None = None,
    objective_temperature: float = 1.0,
    batch_weight: float | None = None,
    statistics: str = "source",
    view: str = "mirrored",
    temperature: float | str | None = None,
    class_mask: Tensor | None = None,
    seed: int = 0,
    device: torch.device | str | None = None,
    compile: bool = False,
    on_batch: OnBatch = lambda count: None,
) -> Ensemble:
    """An ensemble adapted to unlabelled images, ready to predict; the one given stays as it is, bit for bit.

    Args:
        images: a tensor or array (floats as the model takes them, or uint8 NHWC), a Dataset or a DataLoader.
        method: a name in `bacs.METHODS`, or a `bacs.Method` of your own. `auto` chooses all settings without labels and
            takes back what did not help; the paper's method is `bacs`.
        epochs: passes over the images that adapt; 0.5 adapts to half of them, chosen at random.
        posterior_weight: beta, how strongly log q holds the weights, relative to each member's `posterior_scale`.
        posterior_step: `proximal` (stable for every variance) or `gradient` (as the paper's optimiser does).
        min_variance: floor of the posterior's variances.
        objective: a name in `bacs.objectives.OBJECTIVES` or a weighted sum of them; None for the method's own.
        objective_temperature: T of the objective T f(z / T). Above 1, networks that are too sure of themselves have
            something to descend.
        batch_weight: r, the share of the batch in batch norm's statistics, from 0 to 1; None for the method's own.
        statistics: what the share 1 - r comes from: `source`, or `running` averages that begin there and follow the
            images. `accumulated` adapts as `source` does, then gathers statistics over all images in one more pass.
            After `running` and `accumulated`, predictions depend on no batch, and single images can be predicted.
        view: how objectives that compare two views make the second: `mirrored` or `shifted`.
        temperature: of the predictions; `agreement` chooses it without labels, None leaves the ensemble's own.
        class_mask: True for each class that can occur; the others get probability 0.
        seed: order of the images. Equal calls give equal results.
        compile: run the steps through `torch.compile`; equal members compile once (docs/performance.md).
        on_batch: hears the number of images of every step, for progress bars.
    """
    chosen = Settings(
        learning_rate=learning_rate,
        posterior_weight=posterior_weight,
        momentum=momentum,
        optimizer=optimizer,
        posterior_step=posterior_step,
        min_variance=min_variance,
        objective=objective,
        objective_temperature=objective_temperature,
        batch_weight=batch_weight,
        statistics=statistics,
        view=view,
        temperature=temperature,
    )
    work = prepare(
        ensemble,
        images,
        method,
        chosen,
        epochs=epochs,
        batch_size=batch_size,
        class_mask=class_mask,
        seed=seed,
        device=device,
        compile=compile,
    )
    return work.whole(images, on_batch)


@dataclass(frozen=True)
class Offline:
    """One offline adaptation, with nothing left open."""

    source: Ensemble
    name: str
    method: Method
    settings: Settings
    epochs: int | float
    batch_size: int
    seed: int
    device: torch.device | str | None
    compiled: bool

    @property
    def groups(self) -> list[list[int]]:
        return groups_of(len(self.source), self.method, self.settings)

    def threads(self, images: Images) -> Threads:
        """A pool for the members, if they may share one."""
        models = [member.model for member in self.source.members]
        return Threads(len(self.source), allowed=can_share(images, models, self.device))

    def whole(self, images: Images, on_batch: OnBatch) -> Ensemble:
        """The adapted ensemble."""
        views = inputs.views_of(images, len(self.source))
        # All at once, before any adapts: results laid down between activations would break up the memory that these
        # free, and every member would need more.
        homes = [copy_member(member, self.device) for member in self.source.members]
        with self.threads(images) as threads:

            def adapt_group(group: list[int], on_batch: OnBatch) -> list[Member]:
                return self.group([homes[i] for i in group], [views[i] for i in group], on_batch, threads)

            members = [
                member for group in threads.imap(adapt_group, self.groups, on_batch=on_batch) for member in group
            ]
        result = self.result(members)
        if self.settings.temperature == AGREEMENT:
            result = calibrate(result, images, batch_size=self.batch_size, seed=self.seed)
        return result

    def group(
        self, homes: Sequence[Member], views: Sequence[Images], on_batch: OnBatch, threads: Threads | None = None
    ) -> list[Member]:
        """Adapts working copies of a group, and writes their weights and statistics into the members themselves.

        The order of the images depends on the seed alone, not on a member's place in the ensemble.
        """
        copies = [working_copy(home) for home in homes]
        mask, how = self.source.class_mask, {"compiled": self.compiled, "seed": self.seed}
        movers = [mover_for(own, self.method, self.settings, mask, **how) for own in copies]
        reader = Reader(views, self.batch_size, seed=self.seed)
        follows = self.settings.statistics == "running" and self.settings.batch_weight
        if self.method.adapts is not None or follows:
            own_threads = threads if len(homes) > 1 else None
            loop.adapt(movers, reader, epochs=self.epochs, on_batch=on_batch, threads=own_threads)
        for place, (home, own) in enumerate(zip(homes, copies, strict=True)):
            if self.statistics.reference == "accumulated":
                batches = (own.prepare(parts[place]) for _, parts in reader.batches())
                statistics.accumulate(own.model, batches)
            write_back(home.model, own.model)
            statistics.use(home.model, SOURCE)
        return list(homes)

    @property
    def statistics(self) -> Statistics:
        """What the adapted ensemble predicts with: gathered averages, or the mixture that it adapted under."""
        assert self.settings.batch_weight is not None
        if self.settings.batch_weight == 0:
            return SOURCE
        if self.settings.statistics == "source":
            return Statistics(self.settings.batch_weight)
        return Statistics(0.0, self.settings.statistics)

    def result(self, members: Sequence[Member]) -> Ensemble:
        """The ensemble of adapted members."""
        how = {"method": self.name, "protocol": "offline", "epochs": self.epochs, "batch_size": self.batch_size}
        own = self.source.temperature
        return replace(
            self.source,
            members=members,
            statistics=self.statistics,
            temperature=self.settings.temperature if isinstance(self.settings.temperature, (int, float)) else own,
            adaptation=how | {"seed": self.seed} | self.settings.as_json(),
        )


def prepare(
    ensemble: Ensemble,
    images: Images,
    method: str | Method,
    settings: Settings,
    *,
    epochs: int | float = 1,
    batch_size: int = 128,
    class_mask: Tensor | None = None,
    seed: int = 0,
    device: torch.device | str | None = None,
    compile: bool = False,
) -> Offline:
    """The adaptation, after everything that could be wrong with it was looked at."""
    name, row = find(method)
    check_epochs(epochs)
    if settings.reset_every is not None:
        raise ValueError(f"reset_every must be left out offline: it is for streams, got {settings.reset_every}")
    inputs.check_seed(seed)
    if device is not None:
        Place(device=str(device)).check()
    source = with_class_mask(ensemble, class_mask)
    source.check_inputs(images, batch_size)
    work = Offline(source, name, row, settings.of(row), epochs, batch_size, seed, device, compile)
    check_choice(
        source, row, work.settings, [inputs.first_batch(view) for view in inputs.views_of(images, len(source))]
    )
    return work
