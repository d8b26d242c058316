"""Source images and labels: checked, drawn from at random, and what a finished member takes from them."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bacs.adaptation.forward import forward
from bacs.adaptation.statistics import SOURCE, using
from bacs.ensemble import Ensemble, Member
from bacs.inputs import Images, first_batch
from bacs.layout import arrange
from bacs.posteriors import Posterior
from bacs.training.augment import take
from bacs.training.fit import as_labels
from bacs.training.mean import at_mean

REFRESH = 4096
"""Images from which batch-norm statistics are made anew; more change them by less than training batches do."""


def check_source(member: Member, images: Any, labels: Tensor | np.ndarray) -> tuple[Any, Tensor]:
    """Images that positions can be taken from, and int64 labels, both tried on the member."""
    images = as_indexable(images)
    Ensemble([member]).check_inputs(images, batch_size=1)
    return images, as_known_labels(labels, len(images), count_classes(member, images))


def as_indexable(images: Any) -> Any:
    """Images that positions can be taken from: a tensor, an array, or a lazy sequence that indexes like one."""
    if isinstance(images, np.ndarray):
        return torch.from_numpy(images if images.flags.writeable else images.copy())
    if hasattr(images, "shape") and hasattr(images, "__getitem__"):
        return images
    raise TypeError(f"images must be a tensor, an array or images of bacs.data.load, got {type(images).__name__}")


@torch.no_grad()
def count_classes(member: Member, images: Images) -> int:
    """How many classes the member tells apart."""
    with using(member.model, SOURCE):
        return forward(member.model, member.prepare(first_batch(images))).shape[1]


def as_known_labels(labels: Tensor | np.ndarray, count: int, classes: int) -> Tensor:
    """Int64 labels, one per image, each of a class that the model has."""
    targets = as_labels(labels, count)
    if targets.min() < 0 or targets.max() >= classes:
        raise ValueError(f"labels must be 0..{classes - 1}, got {int(targets.min())}..{int(targets.max())}")
    return targets


def draw_positions(count: int, wanted: int, generator: torch.Generator) -> Tensor:
    """`wanted` positions below `count`: whole passes in random order, one after another."""
    passes = math.ceil(wanted / count)
    return torch.cat([torch.randperm(count, generator=generator) for _ in range(passes)])[:wanted]


def sample_positions(count: int, wanted: int | None, seed: int) -> Tensor:
    """At most `wanted` positions below `count`, at random and in order: a sorted folder begins with one class."""
    if wanted is None or wanted >= count:
        return torch.arange(count)
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))[:wanted].sort().values


def sample_images(images: Any, wanted: int | None, seed: int) -> Tensor:
    """At most `wanted` of the images, chosen at random."""
    source = images if isinstance(images, np.ndarray) else as_indexable(images)
    chosen = sample_positions(len(source), wanted, seed)
    # An array is indexed as it is: a memory map must not be copied whole.
    return torch.from_numpy(source[chosen.numpy()]) if isinstance(source, np.ndarray) else take(source, chosen)


def move_to_mean(member: Member, posterior: Posterior, inputs: Tensor) -> Member:
    """The member at its posterior's mean, with batch-norm statistics of `inputs`, in the layout a checkpoint keeps."""
    member.model.zero_grad(set_to_none=True)
    arrange(member.model, torch.contiguous_format)
    done = at_mean(member.model, posterior, inputs, member.preprocessing)
    return replace(member, model=done.model, posterior=done.posterior)
