"""Worlds: what becomes of the image at each place of a long stream, and which image it is, as data.

A world is a plan of segments, each with a corruption that stays, or that turns into another, at severities that stay,
rise or fall; and an order in which classes arrive. `world_batches` makes its images when they are asked for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple

import numpy as np

from bacs.corruptions import TEST, VALIDATION
from bacs.errors import unknown_name

CLEAN = "clean"
ARRIVALS = ("shuffled", "correlated", "sorted")
CHANGES = {"abrupt": (5.0,), "gradual": (1.0, 5.0, 1.0), "blended": (5.0,)}
"""How corruptions follow each other, and the severities if none are named."""


@dataclass(frozen=True)
class Segment:
    """So many images of one corruption (or `clean`), or of one that is blended into a second.

    `severities` are reached at equal distances, the first at the first image, the last at the last. An image whose
    severity lies between two whole numbers has one of them by chance, the nearer one more often; 0 is clean.
    """

    images: int
    corruptions: tuple[str, ...] = (CLEAN,)
    severities: tuple[float, ...] = (5.0,)

    def __post_init__(self) -> None:
        if self.images < 1:
            raise ValueError(f"images of a segment must be >= 1, got {self.images}")
        if len(self.corruptions) not in (1, 2):
            raise ValueError(f"corruptions of a segment must be one, or two to blend, got {list(self.corruptions)}")
        for name in self.corruptions:
            if name not in (*TEST, *VALIDATION, CLEAN):
                raise unknown_name("corruptions", name, (*TEST, *VALIDATION, CLEAN))
        if not self.severities or not all(0 <= level <= 5 for level in self.severities):
            raise ValueError(f"severities of a segment must be numbers from 0 to 5, got {list(self.severities)}")

    @property
    def name(self) -> str:
        """
        >>> Segment(100, ("fog",)).name, Segment(100, ("fog", "snow"), (1, 5)).name, Segment(100).name
        ('fog/5', 'fog+snow/1-5', 'clean')
        """
        if set(self.corruptions) == {CLEAN}:
            return CLEAN
        return f"{'+'.join(self.corruptions)}/{'-'.join(f'{level:g}' for level in self.severities)}"

    def shares(self, places: np.ndarray) -> np.ndarray:
        """How much of the segment has passed at these places, from 0 at its first image to 1 at its last."""
        return places / max(1, self.images - 1)

    def severity_at(self, places: np.ndarray) -> np.ndarray:
        """The severity of the images at these places of the segment."""
        return np.interp(self.shares(places), np.linspace(0, 1, len(self.severities)), self.severities)


class Part(NamedTuple):
    """Neighbouring images of one segment, which is number `turn` of those that the stream meets."""

    turn: int
    segment: Segment
    first: int  # place of the first in the stream
    begin: int  # and in the segment
    images: int


@dataclass(frozen=True)
class World:
    """Segments that follow each other, and return until there are `images` (None: without end).

    Every image of a set passes once before any passes again. `order` says how classes arrive: `shuffled`, `correlated`
    in slots of `slot_size` images (see `correlated_order`; the smaller `alpha`, the fewer classes in a slot), or
    `sorted`, one class after the other.
    """

    segments: tuple[Segment, ...]
    images: int | None = None
    order: str = "shuffled"
    alpha: float = 0.1
    slot_size: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.segments:
            raise ValueError("segments must be one or more, got none")
        if self.images is not None and self.images < 1:
            raise ValueError(f"images must be >= 1, got {self.images}")
        if self.order not in ARRIVALS:
            raise unknown_name("order", self.order, ARRIVALS)
        if not self.alpha > 0:
            raise ValueError(f"alpha must be > 0, got {self.alpha}")
        if self.slot_size < 1:
            raise ValueError(f"slot_size must be >= 1, got {self.slot_size}")

    @property
    def round(self) -> int:
        """Images until the first segment returns."""
        return sum(segment.images for segment in self.segments)

    def parts(self, start: int = 0, stop: int | None = None) -> Iterator[Part]:
        """What the images from `start` to `stop` (the end of the stream if None) belong to, piece by piece."""
        ends = [end for end in (stop, self.images) if end is not None]
        end = min(ends) if ends else None
        rounds, place = divmod(start, self.round)
        turn, index = rounds * len(self.segments), 0
        while place >= self.segments[index].images:
            place -= self.segments[index].images
            index += 1
        while end is None or start < end:
            segment = self.segments[index]
            images = segment.images - place if end is None else min(segment.images - place, end - start)
            yield Part(turn + index, segment, start, place, images)
            start, place = start + images, 0
            turn, index = (turn + len(self.segments), 0) if index + 1 == len(self.segments) else (turn, index + 1)


def plan_segments(
    changes: str, corruptions: Sequence[str] = TEST, *, severities: Sequence[float] = (), images: int = 2000
) -> tuple[Segment, ...]:
    """Segments of `images` each, for a world that changes in one of three ways:

    - `abrupt`: one corruption after the other; severities take turns
    - `gradual`: through all severities, up and down, within each corruption
    - `blended`: each corruption turns into the next, the last into the first; severities take turns

    >>> print(*(segment.name for segment in plan_segments("abrupt", ["fog", "snow", "frost"], severities=[5, 3])))
    fog/5 snow/3 frost/5
    >>> print(*(segment.name for segment in plan_segments("blended", ["fog", "snow"])))
    fog+snow/5 snow+fog/5
    """
    if changes not in CHANGES:
        raise unknown_name("changes", changes, tuple(CHANGES))
    if not corruptions:
        raise ValueError("corruptions must be one or more, got none")
    levels = tuple(severities) or CHANGES[changes]
    if changes == "gradual":
        return tuple(Segment(images, (name,), levels) for name in corruptions)
    after = [*corruptions[1:], corruptions[0]]
    names = [(name,) for name in corruptions] if changes == "abrupt" else list(zip(corruptions, after, strict=True))
    return tuple(Segment(images, pair, (level,)) for pair, level in zip(names, cycle(levels), strict=False))
