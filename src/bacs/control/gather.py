"""Batches that are no evidence by themselves: answered by the statistics of a memory of images, which is stepped on.

A batch of four images says nothing of means and variances, nor of how often members agree; a batch of one class says
the wrong thing. So such batches are answered by the statistics of images drawn from a memory, of as many classes as
were named lately, and it is these that are stepped on. Whether that is better than source statistics is asked of the
last images as they came: a draw has as many mistakes in it as there are labels, and would give a wrong impression.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bacs.adaptation.forward import forward, logits_of, probabilities, restrict
from bacs.adaptation.loop import Mover
from bacs.adaptation.statistics import Mixtures, mixtures_of, normalising_by, reference_of
from bacs.control import probe as probing
from bacs.control.probe import Votes
from bacs.ensemble import Member
from bacs.predictive import average
from bacs.threads import Threads

SMALL = 32
"""Images below which a batch is gathered."""

DRAW = 64
"""Images that are drawn at a time, whenever so many have come."""

RECENT = 256
"""Images over which those that are asked about are spread: the last ones alone may be of one class."""

CAPACITY = 512


class Gathered:
    """The memory, and what members normalise by meanwhile; None is as they came."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.mixtures: list[Mixtures] | None = None
        self.forget()

    def forget(self) -> None:
        """Empties the memory; statistics stay until there are others."""
        self.views: list[Tensor] = []  # one per member, or one for all of them; the oldest first
        self.labels = torch.empty(0, dtype=torch.int64)
        self.new, self.draws, self.asked = 0, 0, 0

    def add(self, images: Sequence[Tensor], labels: Tensor) -> None:
        """Takes images in, with the labels that they were given; the oldest of the most frequent label go."""
        one_for_all = all(view is images[0] for view in images)
        views = [view.clone() for view in (images[:1] if one_for_all else images)]  # a camera may use its buffer again
        if [view.shape[1:] for view in views] != [view.shape[1:] for view in self.views]:
            self.forget()  # pictures of another size do not fit into one batch
        self.views = [torch.cat(pair) for pair in zip(self.views, views, strict=True)] if self.views else views
        self.labels = torch.cat([self.labels, labels.cpu()])
        self.new += len(labels)
        kept = torch.ones(len(self.labels), dtype=torch.bool)
        for _ in range(len(self.labels) - CAPACITY):
            most = self.labels[kept].bincount().argmax()
            kept[(kept & (self.labels == most)).nonzero()[0]] = False
        if not kept.all():
            self.views, self.labels = [view[kept] for view in self.views], self.labels[kept]

    def draw(self, members: int) -> list[Tensor] | None:
        """Images of all labels in turn, one view per member, once enough new ones have come; else None."""
        if self.new < DRAW:
            return None
        self.new = 0
        self.draws += 1
        generator = torch.Generator().manual_seed(self.seed + self.draws)
        shuffled = torch.randperm(len(self.labels), generator=generator)
        rank = torch.empty_like(self.labels)  # of each image among those of its label
        for label in self.labels.unique():
            own = shuffled[self.labels[shuffled] == label]
            rank[own] = torch.arange(len(own))
        chosen = shuffled[rank[shuffled].argsort(stable=True)][:DRAW]
        views = [view[chosen] for view in self.views]
        return views if len(views) == members else views * members

    @property
    def is_telling(self) -> bool:
        """Whether images are enough to speak for more than the class that came last."""
        return len(self.labels) >= RECENT

    @property
    def is_full(self) -> bool:
        return len(self.labels) == CAPACITY

    @property
    def has_grown(self) -> bool:
        """Whether there are so many more images than when they were last asked about that their statistics differ."""
        return any(self.asked < size <= len(self.labels) for size in (RECENT, CAPACITY))

    def recent(self, members: int, some: int) -> list[Tensor]:
        """Some of the last images as they came, one view per member."""
        count = len(self.labels)
        places = torch.linspace(max(0, count - RECENT), count - 1, min(some, count)).round().long()
        views = [view[places] for view in self.views]
        return views if len(views) == members else views * members

    def normalise_as(self, movers: Sequence[Mover], images: Sequence[Tensor], threads: Threads) -> None:
        """From now on members normalise as they would these images."""
        share = movers[0].statistics.batch_weight
        if share == 0:
            self.mixtures = None
            return
        pairs = list(zip(movers, images, strict=True))
        self.mixtures = threads.map(lambda pair: mixtures_of(pair[0].model, share, pair[0].prepare(pair[1]))[0], pairs)

    def answer(self, movers: Sequence[Mover], images: Sequence[Tensor], threads: Threads) -> list[Tensor]:
        """Each member's float64 probabilities of a batch, at temperature 1; nothing changes."""

        def rows_of(index: int) -> Tensor:
            mover = movers[index]
            mixtures = reference_of(mover.model) if self.mixtures is None else self.mixtures[index]
            return rows_by(mover, mixtures, images[index], mover.class_mask)

        return threads.map(rows_of, range(len(movers)))

    def ask(
        self,
        members: Sequence[Member],
        batch_weight: float,
        drawn: Sequence[Tensor],
        asked: Sequence[Tensor],
        class_mask: Tensor | None,
        threads: Threads,
    ) -> tuple[Votes, Votes | None]:
        """What members say of images asked about, and of drawn ones, by this share of the drawn ones' statistics.

        Of drawn ones nothing at share 0, for which they need not be seen.
        """

        def rows_of(index: int) -> list[Tensor]:
            member = members[index]
            if batch_weight == 0:
                mixtures, of_drawn = reference_of(member.model), []
            else:
                mixtures, said = mixtures_of(member.model, batch_weight, member.prepare(drawn[index]))
                of_drawn = [probabilities(restrict(logits_of(said), class_mask), class_mask).cpu()]
            views = [asked[index]]
            if len(members) == 1:  # and so has nobody else to agree with
                views.append(probing.mirror(asked[0]))
            return [*(rows_by(member, mixtures, images, class_mask) for images in views), *of_drawn]

        rows = threads.map(rows_of, range(len(members)))
        views = [average(list(view)) for view in zip(*rows, strict=True)]
        seen = probing.votes_in(views.pop()) if batch_weight else None
        return probing.votes_in(*views, trusting=True), seen

    def describe(self) -> dict[str, int]:
        return {"views": len(self.views), "new": self.new, "draws": self.draws, "asked": self.asked}

    def pack(self) -> dict[str, Tensor]:
        group = {f"views/{i}": view for i, view in enumerate(self.views)}
        if self.views:
            group["labels"] = self.labels
        for i, mixtures in enumerate(self.mixtures or []):
            for j, (mean, variance) in enumerate(mixtures):
                group |= {f"mixtures/{i}/{j}/mean": mean, f"mixtures/{i}/{j}/variance": variance}
        return group

    def unpack(self, about: dict[str, int], group: dict[str, Tensor], movers: Sequence[Mover]) -> None:
        """Takes over what was described and packed."""
        self.forget()
        self.new, self.draws, self.asked = about["new"], about["draws"], about["asked"]
        self.views = [group[f"views/{i}"] for i in range(about["views"])]
        self.labels = group.get("labels", self.labels)
        self.mixtures = None
        if "mixtures/0/0/mean" in group:
            self.mixtures = [
                [
                    (group[f"mixtures/{i}/{j}/mean"].to(mean), group[f"mixtures/{i}/{j}/variance"].to(variance))
                    for j, (mean, variance) in enumerate(reference_of(mover.model))
                ]
                for i, mover in enumerate(movers)
            ]


@torch.no_grad()
def rows_by(who: Mover | Member, mixtures: Mixtures, images: Tensor, class_mask: Tensor | None) -> Tensor:
    """Float64 probabilities at temperature 1, normalised by given statistics."""
    with normalising_by(who.model, mixtures):
        return probabilities(forward(who.model, who.prepare(images), class_mask), class_mask).cpu()
