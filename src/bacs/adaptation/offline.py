"""The offline protocol: passes over all test inputs that adapt, then one that predicts."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from bacs.adaptation import norm_statistics
from bacs.adaptation.forward import forward, probabilities
from bacs.adaptation.step import Adapter
from bacs.inputs import Images, batches

Prepare = Callable[[Tensor], Tensor]  # a stored batch -> what the model takes


def adapt_epochs(
    adapter: Adapter,
    images: Images,
    *,
    epochs: int | float,
    batch_size: int,
    generator: torch.Generator,
    prepare: Prepare,
    on_batch: Callable[[int], None],
) -> None:
    """Steps the adapter through `epochs` passes in random order, the last one over a part of the images if need be.

    `on_batch` hears how many images each step took.
    """
    for done in range(math.ceil(epochs)):
        for _, batch in batches(images, batch_size, generator=generator, share=min(1.0, epochs - done)):
            adapter.step(prepare(batch))
            on_batch(len(batch))


def accumulate_statistics(
    model: nn.Module, images: Images, *, batch_size: int, generator: torch.Generator, prepare: Prepare
) -> None:
    """Gives the model running statistics of `images` under its present weights."""
    inputs = (prepare(batch) for _, batch in batches(images, batch_size, generator=generator))
    norm_statistics.accumulate(model, inputs)


@torch.no_grad()
def predict(
    model: nn.Module,
    images: Images,
    *,
    batch_size: int,
    generator: torch.Generator | None,
    prepare: Prepare,
    class_mask: Tensor | None,
    on_batch: Callable[[int], None],
) -> Tensor:
    """Float64 probabilities [images, classes] in the order of the images, whatever order they were read in."""
    positions, rows = [], []
    for where, batch in batches(images, batch_size, generator=generator):
        rows.append(probabilities(forward(model, prepare(batch), class_mask), class_mask).cpu())
        positions.append(where)
        on_batch(len(batch))
    ordered = torch.empty_like(joined := torch.cat(rows))
    ordered[torch.cat(positions)] = joined
    return ordered
