"""What a guarded stream remembers in numbers, and how they change; it is saved with all of them, under these names."""

from dataclasses import dataclass, replace

from bacs.control.candidates import MIXED, STREAM_WEIGHTS

FIRST = 256
"""Images that are looked at before weights may move."""

AGAIN = 128
"""Images that are looked at after a change of the world: the time for more is not earned before the next one."""

SHARE = 0.15
"""What looks may cost, as a part of all other passes."""

PASSES_PER_STEP = 3
"""Of a step that moves weights, counted in forward passes: one forward, one backward of about two."""

GRACE = FIRST * (2 * len(STREAM_WEIGHTS) - 1)
"""Passes of one image that looks may take before any are earned: those of the first images."""

RESERVE = 4 * AGAIN
"""Passes that are kept for the looks at a new world; short questions, which would take all, leave them alone."""

MEMORY = 8
"""Batches of mixed classes after which they are taken one by one again."""


@dataclass(frozen=True)
class Standing:
    """Where a stream stands."""

    images: int = 0  # that have come
    credit: float = float(GRACE)  # passes of one image that looks may take
    asked: int = 0  # after how many images home was asked a short question last
    picked: float = 0.0  # share of batch statistics that is best at home
    few: bool = False  # whether batches hold few classes each
    runs: bool = False  # whether these were seen to change from batch to batch
    mixed: tuple[float, ...] = ()  # of the last batches, how mixed
    settled: int = 0  # images looked at in this world, and in those before it what need not be seen again
    refused: bool = False  # whether adapted weights were given up in it
    halved: bool = False  # whether they went half of the way home
    holds: bool = False  # whether they wait until enough of it was seen

    @property
    def knows_world(self) -> bool:
        """Whether enough of the present world was looked at."""
        return self.settled >= FIRST

    @property
    def errors_of_chance(self) -> float:
        """Standard errors that a look may be wrong by; the first images of a new world are of few runs of classes."""
        return 2.0 if self.few and not self.knows_world else 1.0


def begin_world(now: Standing, *, holds: bool) -> Standing:
    """Too little is known of a new world until AGAIN images were looked at; weights that moved before hold still."""
    return replace(now, settled=FIRST - AGAIN, refused=False, halved=False, holds=holds)


def earn(now: Standing, passes: int, images: int) -> Standing:
    """Looks may take a share of the time of all other passes."""
    return replace(now, credit=now.credit + SHARE * passes * images)


def pay(now: Standing, passes: int) -> Standing:
    """Looks took so many passes. Debts are let go: who rests at home could look at nothing while it pays them."""
    return replace(now, credit=max(now.credit - passes, 0.0))


def count_look(now: Standing, images: int, *, clear: bool = False) -> Standing:
    """So many images more were looked at; weights need not wait any longer once these are enough."""
    settled = now.settled + images
    if clear and AGAIN <= settled < FIRST:
        settled = FIRST
    return replace(now, settled=settled, holds=now.holds and settled < FIRST)


def count_classes(now: Standing, part: float, *, even: bool) -> Standing:
    """How mixed a batch was; lets go of the memory when batches have been mixed, and all alike, for a while."""
    mixed = (*now.mixed, part)[-MEMORY:]
    if now.few and even and len(mixed) == MEMORY and sum(mixed) / MEMORY >= MIXED:
        return let_go(now)
    return replace(now, mixed=mixed)


def let_go(now: Standing) -> Standing:
    """Batches are of mixed classes, and taken one by one."""
    return replace(now, few=False, runs=False, mixed=())
