"""Batches too small to be evidence: predicted by the statistics of the last images together, stepped on when gathered.

A batch of four images says nothing of means and variances, nor of how often members agree. So each is answered by the
statistics of the images gathered before it, and kept until there are enough to look at, and to step on, at once.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bacs.adaptation.forward import forward, probabilities
from bacs.adaptation.loop import Mover
from bacs.adaptation.statistics import Mixtures, mixtures_of, normalising_by, reference_of
from bacs.threads import Threads

SMALL = 32
"""Images below which a batch is gathered."""

ENOUGH = 64
"""Images that are gathered before they are looked at."""


class Gathered:
    """Images that wait for enough others, and what members normalise by meanwhile; None is as they came."""

    def __init__(self) -> None:
        self.waiting: list[list[Tensor]] = []  # per batch, each member's view
        self.mixtures: list[Mixtures] | None = None

    def add(self, images: Sequence[Tensor]) -> list[Tensor] | None:
        """Takes one more batch; gives all that wait back once they are enough."""
        if self.waiting and any(a.shape[1:] != b.shape[1:] for a, b in zip(self.waiting[0], images, strict=True)):
            self.waiting = []  # pictures of another size: the old ones no longer fit into one batch
        self.waiting.append(list(images))
        if sum(len(batch[0]) for batch in self.waiting) < ENOUGH:
            return None
        together = [torch.cat(views) for views in zip(*self.waiting, strict=True)]
        self.waiting = []
        return together

    def settle(self, movers: Sequence[Mover], images: Sequence[Tensor], threads: Threads) -> None:
        """From now on members normalise as they would these images."""
        share = movers[0].statistics.batch_weight
        if share == 0:
            self.mixtures = None
            return
        pairs = list(zip(movers, images, strict=True))
        self.mixtures = threads.map(lambda pair: mixtures_of(pair[0].model, share, pair[0].prepare(pair[1])), pairs)

    @torch.no_grad()
    def answer(self, movers: Sequence[Mover], images: Sequence[Tensor], threads: Threads) -> list[Tensor]:
        """Each member's float64 probabilities of a small batch, at temperature 1; nothing changes."""

        def rows_of(index: int) -> Tensor:
            mover = movers[index]
            mixtures = reference_of(mover.model) if self.mixtures is None else self.mixtures[index]
            with normalising_by(mover.model, mixtures):
                logits = forward(mover.model, mover.prepare(images[index]), mover.class_mask)
            return probabilities(logits, mover.class_mask).cpu()

        return threads.map(rows_of, range(len(movers)))

    def describe(self) -> dict[str, int]:
        return {"waiting": len(self.waiting)}

    def pack(self) -> dict[str, Tensor]:
        group = {
            f"waiting/{i}/{j}": view.clone() for i, views in enumerate(self.waiting) for j, view in enumerate(views)
        }
        for i, mixtures in enumerate(self.mixtures or []):
            for j, (mean, variance) in enumerate(mixtures):
                group |= {f"mixtures/{i}/{j}/mean": mean, f"mixtures/{i}/{j}/variance": variance}
        return group

    def unpack(self, about: dict[str, int], group: dict[str, Tensor], movers: Sequence[Mover]) -> None:
        """Takes over what was described and packed."""
        members = range(len(movers))
        self.waiting = [[group[f"waiting/{i}/{j}"] for j in members] for i in range(about["waiting"])]
        self.mixtures = None
        if "mixtures/0/0/mean" in group:
            self.mixtures = [
                [
                    (group[f"mixtures/{i}/{j}/mean"].to(mean), group[f"mixtures/{i}/{j}/variance"].to(variance))
                    for j, (mean, variance) in enumerate(reference_of(mover.model))
                ]
                for i, mover in enumerate(movers)
            ]
