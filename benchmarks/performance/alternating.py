"""Two or more sides in turn in one process, so that all meet the same machine; ratios are taken turn by turn."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Seconds = dict[str, list[float]]


class Ratio(NamedTuple):
    """One side's time over another's: the median of the turns, and the least and greatest of them."""

    median: float
    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.median:.3f} (turns {self.least:.3f} to {self.greatest:.3f})"


def alternate(
    sides: Mapping[str, Callable[[], Any]],
    *,
    turns: int,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Seconds:
    """Seconds of every side in every turn; `warm_up` runs of each go before and are not counted.

    Every other turn goes backwards (A B, B A, ...): what one side leaves behind, in caches or as heat, then falls on
    each of its neighbours as often.
    """
    if len(sides) < 2 or turns < 1:
        raise ValueError(f"alternate needs at least 2 sides and 1 turn, got {len(sides)} and {turns}")
    for run in sides.values():
        for _ in range(warm_up):
            run()
    seconds: Seconds = {name: [] for name in sides}
    order = list(sides)
    for _ in range(turns):
        for name in order:
            began = clock()
            sides[name]()
            seconds[name].append(clock() - began)
        order.reverse()
    return seconds


def ratio(over: Sequence[float], under: Sequence[float]) -> Ratio:
    """`over` / `under`, each turn's with its own."""
    return summary([mine / theirs for mine, theirs in zip(over, under, strict=True)])


def summary(values: Sequence[float]) -> Ratio:
    return Ratio(statistics.median(values), min(values), max(values))


def medians(seconds: Seconds) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in seconds.items()}
