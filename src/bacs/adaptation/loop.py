"""The loop that everything drives: a step is taken by a group of members, batch after batch.

Members that need nothing of each other are groups of one; they move on their own, side by side. Members whose objective
looks at their peers are one group and move in lockstep: all see the batch before any of them moves.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bacs.adaptation.descend import Descent
from bacs.adaptation.forward import forward, probabilities
from bacs.adaptation.statistics import Statistics, keep_running
from bacs.adaptation.views import second_view
from bacs.inputs import Images, Reader
from bacs.objectives import Seen
from bacs.threads import OnBatch, Threads

Prepare = Callable[[Tensor], Tensor]  # a stored batch -> what the model takes


@dataclass
class Mover:
    """A model on its way. Without a descent no parameter changes; statistics may."""

    model: nn.Module
    prepare: Prepare
    statistics: Statistics  # that the model uses
    descent: Descent | None = None
    objective: Callable[[Seen], Tensor] | None = None
    needs: frozenset[str] = frozenset()
    view: str = "mirrored"
    class_mask: Tensor | None = None
    compiled: bool = False
    seed: int = 0
    steps: int = 0

    def see(self, inputs: Tensor) -> Seen:
        """What the objective may look at. Nothing has changed when this raises."""
        with torch.set_grad_enabled(self.descent is not None):
            logits = self._forward(inputs)
            if "view" not in self.needs:
                return Seen(logits)
            return Seen(logits, view=self._forward(second_view(inputs, self.view, seed=self.seed, step=self.steps)))

    def move(self, seen: Seen) -> None:
        """Takes one step on what was seen."""
        if self.descent is not None:
            assert self.objective is not None
            self.descent.descend(self.objective(seen))
        if self.statistics.reference == "running":
            keep_running(self.model)
        self.steps += 1

    def _forward(self, inputs: Tensor) -> Tensor:
        return forward(self.model, inputs, self.class_mask, compiled=self.compiled)


Permit = Callable[[list[Tensor]], bool]  # the members' logits of a batch -> whether they may move on it


def step(
    group: Sequence[Mover], batches: Sequence[Tensor], threads: Threads | None = None, permit: Permit | None = None
) -> list[Tensor]:
    """The logits of every member for its batch, from before the step that it then takes, if it is permitted."""
    run = map if threads is None else threads.map
    # The inputs live until the step is over. If they went with the forward pass, the C library would give a worker's
    # memory back after every step and ask for it anew: a fifth more time for members side by side.
    inputs = list(run(lambda pair: pair[0].prepare(pair[1]), list(zip(group, batches, strict=True))))
    seen = list(run(lambda pair: pair[0].see(pair[1]), list(zip(group, inputs, strict=True))))
    own = [each.logits.detach() for each in seen]
    if permit is not None and not permit(own):
        return own
    if "peers" in group[0].needs:
        seen = [each._replace(peers=torch.stack([*own[:place], *own[place + 1 :]])) for place, each in enumerate(seen)]
    list(run(lambda pair: pair[0].move(pair[1]), list(zip(group, seen, strict=True))))
    return own


def adapt(
    group: Sequence[Mover], reader: Reader, *, epochs: int | float, on_batch: OnBatch, threads: Threads | None = None
) -> None:
    """Steps a group through `epochs` passes in the reader's order, the last one over a part of the images if need be.

    `on_batch` hears how many images each step took, those of all members of the group together.
    """
    for done in range(math.ceil(epochs)):
        for _, batches in reader.batches(share=min(1.0, epochs - done)):
            step(group, batches, threads)
            on_batch(sum(map(len, batches)))


@torch.no_grad()
def predict(
    model: nn.Module,
    images: Images,
    *,
    batch_size: int,
    seed: int | None,
    prepare: Prepare,
    class_mask: Tensor | None,
    temperature: float,
    on_batch: OnBatch,
) -> Tensor:
    """Float64 probabilities [images, classes] in the order of the images, read in a seeded random one if not None."""
    positions, rows = [], []
    for where, (batch,) in Reader([images], batch_size, seed=seed).batches():
        logits = forward(model, prepare(batch), class_mask)
        rows.append(probabilities(logits, class_mask, temperature=temperature).cpu())
        positions.append(where)
        on_batch(len(batch))
    ordered = torch.empty_like(joined := torch.cat(rows))
    ordered[torch.cat(positions)] = joined
    return ordered
