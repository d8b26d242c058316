"""Orders in which the images of a set arrive, as indices."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Int64

from bacs.data.image_set import Labels
from bacs.inputs import batch_sizes

Order = Int64[np.ndarray, "images"]


def batched(order: Order, batch_size: int) -> Iterator[Order]:
    """Successive runs of `batch_size` indices; the last may be shorter, but is not of one image alone."""
    start = 0
    for size in batch_sizes(len(order), batch_size):
        yield order[start : start + size]
        start += size


def shuffled_order(count: int, seed: int | Sequence[int] = 0) -> Order:
    """A random order of `count` images."""
    return np.random.default_rng(seed).permutation(count)


def sorted_order(labels: Labels, seed: int | Sequence[int] = 0) -> Order:
    """A random order of all images, one class after the other."""
    rng = np.random.default_rng(seed)
    groups = [rng.permutation(np.flatnonzero(labels == name)) for name in rng.permutation(np.unique(labels))]
    return np.concatenate([*groups, np.array([], np.int64)])


def correlated_order(
    labels: Labels, *, alpha: float = 0.1, slot_size: int = 64, seed: int | Sequence[int] = 0
) -> Order:
    """A random order of all images in which neighbours tend to share a class.

    For every slot of `slot_size` images, class shares p ~ Dirichlet(alpha K m), where m are the shares of the K
    classes among the images left (so Dirichlet(alpha, ..., alpha) while the classes are equal in number), then
    labels ~ p without replacement. alpha -> 0 gives slots of one class, alpha -> infinity shuffles.
    """
    if not alpha > 0:
        raise ValueError(f"alpha must be > 0, got {alpha}")
    if slot_size < 1:
        raise ValueError(f"slot_size must be >= 1, got {slot_size}")
    rng = np.random.default_rng(seed)
    waiting = [rng.permutation(np.flatnonzero(labels == name)).tolist() for name in np.unique(labels)]
    order: list[int] = []
    while len(order) < len(labels):
        slot: list[int] = []
        room = min(slot_size, len(labels) - len(order))
        left = np.array([len(images) for images in waiting])
        shares = _dirichlet(rng, alpha * len(waiting), left / left.sum())
        while len(slot) < room:
            left = np.array([len(images) for images in waiting])
            weights = shares * (left > 0)
            if not weights.sum() > 0:  # the drawn classes are used up, and the shares of the others rounded to zero
                weights = left
            for images, wanted in zip(waiting, rng.multinomial(room - len(slot), weights / weights.sum()), strict=True):
                slot += [images.pop() for _ in range(min(int(wanted), len(images)))]
        order += rng.permutation(slot).tolist()
    return np.array(order, np.int64)


def order_of(
    order: str, count: int, labels: Labels | None, *, alpha: float, slot_size: int, seed: int | Sequence[int]
) -> Order:
    """The order that a word names: stored, shuffled, sorted or correlated; the last two need labels."""
    if order == "stored":
        return np.arange(count)
    if order == "shuffled":
        return shuffled_order(count, seed)
    assert labels is not None
    if order == "sorted":
        return sorted_order(labels, seed)
    return correlated_order(labels, alpha=alpha, slot_size=slot_size, seed=seed)


def _dirichlet(rng: np.random.Generator, concentration: float, mean: np.ndarray) -> np.ndarray:
    present = np.flatnonzero(mean)
    drawn = rng.dirichlet(concentration * mean[present])
    if not np.isfinite(drawn).all():  # so small a concentration that every draw is zero; the limit is one class
        drawn = np.eye(len(present))[rng.choice(len(present), p=mean[present])]
    shares = np.zeros(len(mean))
    shares[present] = drawn
    return shares
