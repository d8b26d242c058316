"""Shifts one after the other as one stream of batches. Labels travel along for scoring alone."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import UInt8

from bacs.corruptions import TEST
from bacs.data.image_set import ImageSet, Labels
from bacs.data.streams.orders import batched, order_of
from bacs.errors import unknown_name

ORDERS = ("shuffled", "correlated", "stored")


class StreamBatch(NamedTuple):
    """One arrival: the shift it belongs to, its images, and the labels to score them with."""

    shift: str
    images: UInt8[np.ndarray, "batch height width channels"]
    labels: Labels | None


def stream_batches(
    shifts: Iterable[ImageSet],
    *,
    batch_size: int = 64,
    order: Literal["shuffled", "correlated", "stored"] = "shuffled",
    alpha: float = 0.1,
    seed: int = 0,
) -> Iterator[StreamBatch]:
    """The batches of one shift after the other, each image once; the last batch of a shift may be smaller.

    Give `shifts` as a generator, and each is made when the one before it has passed:

    Examples:
        >>> from bacs.data import shift
        >>> names = gradual_names("fashion-mnist-part-c", ["fog", "snow"])
        >>> first = next(stream_batches(shift(name, limit=100) for name in names))
        >>> first.shift, len(first.images)
        ('fashion-mnist-part-c/fog/1', 64)
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be >= 1, got {batch_size}")
    if order not in ORDERS:
        raise unknown_name("order", order, ORDERS)
    for number, each in enumerate(shifts):
        if order == "correlated" and each.labels is None:
            raise ValueError(f"order must not be 'correlated' for {each.name}: it has no labels")
        how = {"alpha": alpha, "slot_size": batch_size, "seed": (seed, number)}
        for rows in batched(order_of(order, len(each), each.labels, **how), batch_size):
            yield StreamBatch(each.name, each.images[rows], None if each.labels is None else each.labels[rows])


def continual_names(
    corrupted_set: str, corruptions: Sequence[str] = TEST, *, severity: int = 5, suffix: str = ""
) -> list[str]:
    """Names of one shift after the other at one severity, for a run without reset.

    Examples:
        >>> continual_names("cifar10-c", ["fog", "snow"])
        ['cifar10-c/fog/5', 'cifar10-c/snow/5']
    """
    return [f"{corrupted_set}/{corruption}/{severity}{suffix}" for corruption in corruptions]


def gradual_names(corrupted_set: str, corruptions: Sequence[str] = TEST, *, suffix: str = "") -> list[str]:
    """Names of shifts whose severity rises and falls, 1-2-3-4-5-4-3-2-1, through each corruption.

    Examples:
        >>> gradual_names("cifar10-c", ["fog"])[:3]
        ['cifar10-c/fog/1', 'cifar10-c/fog/2', 'cifar10-c/fog/3']
    """
    severities = (1, 2, 3, 4, 5, 4, 3, 2, 1)
    return [f"{corrupted_set}/{corruption}/{severity}{suffix}" for corruption in corruptions for severity in severities]
