"""What a look is to ask, and what that costs: pure functions of where a stream stands and of what is in force."""

from typing import NamedTuple

from bacs.control.candidates import REST_WEIGHTS, RUN_WEIGHTS, STREAM_WEIGHTS
from bacs.control.decide import Choices
from bacs.control.gather import DRAW, SMALL
from bacs.control.standing import Standing


class BatchPlan(NamedTuple):
    """Of a look at a batch as it came."""

    shares: tuple[float, ...]  # of batch statistics, that home is asked about
    said: float | None  # the one among them under which home has answered already
    away: bool  # whether weights that are set aside must be asked; those that answer have said it

    def passes(self, images: int) -> int:
        """Of one image each."""
        return (len(self.shares) - (self.said is not None) + self.away) * images


class MemoryPlan(NamedTuple):
    """Of a look at a memory."""

    shares: tuple[float, ...]  # of its statistics, that home is asked about
    images: int  # that are asked about
    away: bool  # whether adapted weights are asked too

    def passes(self) -> int:
        """Over drawn images, whose statistics no share of 0 needs, and over those that are asked about."""
        return (len(self.shares) - 1 + self.away) * DRAW + (len(self.shares) + self.away) * self.images


def plan_batch(now: Standing, chosen: Choices, members: int) -> BatchPlan:
    """Two shares where home rests in a world that it knows, three elsewhere; one network answers without its mirror."""
    shares = REST_WEIGHTS if chosen.is_home and now.knows_world else STREAM_WEIGHTS
    answered = not chosen.adapts and chosen.statistics == "source" and members > 1 and chosen.batch_weight in shares
    return BatchPlan(shares, chosen.batch_weight if answered else None, chosen.aside)


def plan_memory(now: Standing, chosen: Choices, *, grown: bool) -> MemoryPlan:
    """Of few classes at a time, half of the statistics or none.

    Where home rests a few images are asked about, but often: it must notice what changes by and by. Weights that are
    set aside are not asked before home itself is in need of the memory.
    """
    rests = now.few and now.knows_world and chosen.is_home and not grown
    away = chosen.adapts or (chosen.aside and (chosen.batch_weight != 0 or not now.few))
    return MemoryPlan(RUN_WEIGHTS if now.few else STREAM_WEIGHTS, SMALL if rests else DRAW, away)
