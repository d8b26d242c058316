"""The images of a world, batch by batch, from any place on: what is held is one batch and one order of the set.

Whatever is left to chance follows from the world's seed and the place in the stream, so that a stream that begins in
the middle shows the same pixels as one that came by.
"""

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from bacs.corruptions import corrupt
from bacs.data.corrupted import constants_for
from bacs.data.image_set import Images, Labels
from bacs.data.streams.orders import order_of
from bacs.data.streams.worlds import CLEAN, Part, World
from bacs.inputs import next_batch_size

Pixels = UInt8[np.ndarray, "batch height width channels"]


class WorldBatch(NamedTuple):
    """One arrival: the place of its first image in the stream, the images, and the labels to score them with."""

    first: int
    images: Pixels
    labels: Labels | None


def world_batches(
    world: World, images: Images, labels: Labels | None = None, *, batch_size: int = 64, start: int = 0
) -> Iterator[WorldBatch]:
    """Batches of clean `images` as the world shows them, from image number `start` of the stream on.

    Segments may change within a batch. The last batch may be smaller, but is not of one image alone.

    >>> clean = np.zeros((10, 8, 8, 3), np.uint8)
    >>> from bacs.data import plan_segments
    >>> world = World(plan_segments("abrupt", ["fog", "snow"], images=25), images=1000)
    >>> print(*((batch.first, len(batch.images)) for batch in world_batches(world, clean, start=900)))
    (900, 64) (964, 36)
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be >= 1, got {batch_size}")
    if start < 0 or (world.images is not None and start > world.images):
        raise ValueError(f"start must be a place in the stream of {world.images} images, got {start}")
    if labels is None and world.order != "shuffled":
        raise ValueError(f"order must be 'shuffled' for images without labels, got {world.order!r}")
    numbers = image_numbers(world, len(images), labels, start)
    while world.images is None or start < world.images:
        size = batch_size if world.images is None else next_batch_size(world.images - start, batch_size)
        chosen = np.array(list(islice(numbers, size)))
        clean = np.asarray(images[chosen])
        shown = [
            show(world, part, clean[part.first - start : part.first - start + part.images])
            for part in world.parts(start, start + size)
        ]
        yield WorldBatch(start, np.concatenate(shown), None if labels is None else labels[chosen])
        start += size


def image_numbers(world: World, count: int, labels: Labels | None, start: int = 0) -> Iterator[int]:
    """Which image of a set of so many stands at each place of the stream from `start` on, without end."""
    turn, place = divmod(start, count)
    while True:
        how = {"alpha": world.alpha, "slot_size": world.slot_size, "seed": (world.seed, turn)}
        yield from order_of(world.order, count, labels, **how)[place:].tolist()
        turn, place = turn + 1, 0


def show(world: World, part: Part, clean: Pixels) -> Pixels:
    """The clean images of one part as the world shows them."""
    places = part.begin + np.arange(part.images)
    levels = _round_by_chance(part.segment.severity_at(places), world.seed, part.first)
    layers = [_corrupt_runs(clean, name, levels, world.seed, part.first) for name in part.segment.corruptions]
    if len(layers) == 1:
        return layers[0]
    weight = part.segment.shares(places).astype(np.float32)[:, None, None, None]
    return np.rint((1 - weight) * layers[0] + weight * layers[1]).astype(np.uint8)


def _round_by_chance(severities: np.ndarray, seed: int, first: int) -> np.ndarray:
    """Severities that there are: those between two of them by a chance that follows from the place."""
    if (severities == np.floor(severities)).all():
        return severities.astype(int)
    chances = [np.random.default_rng((seed, first + turn, 1)).random() for turn in range(len(severities))]
    return np.floor(severities + chances).astype(int)


def _corrupt_runs(clean: Pixels, name: str, levels: np.ndarray, seed: int, first: int) -> Pixels:
    """Images under one corruption; each run of equal levels at once."""
    out = clean.copy()
    constants = constants_for(clean)
    ends = [0, *(np.flatnonzero(np.diff(levels)) + 1).tolist(), len(levels)]
    for begin, end in pairwise(ends):
        if name != CLEAN and levels[begin] > 0:
            how = {"seed": seed, "constants": constants, "first_index": first + begin}
            out[begin:end] = corrupt(clean[begin:end], name, int(levels[begin]), **how)
    return out
