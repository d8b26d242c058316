"""Learning rates as pure functions of progress (0 at the start of training, 1 at its end): factors of `learning_rate`.

Fractions instead of epochs, so that a short run has the shape of a long one. Any function `float -> float` will do.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

Schedule = Callable[[float], float]


@dataclass(frozen=True)
class Linear:
    """1 until `start`, then straight down to `final` at `end`, flat after that.

    The defaults are the paper's: 0.1 until epoch 150 of 300, 0.01 from epoch 270 on. SWAG's own code stretches the
    same shape over the epochs before the first snapshot: `Linear(start=0.5 * 160 / 300, end=0.9 * 160 / 300)`.
    """

    start: float = 0.5
    end: float = 0.9
    final: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end <= 1:
            raise ValueError(f"schedule needs 0 <= start < end <= 1, got start={self.start}, end={self.end}")
        _check_final(self.final)

    def __call__(self, progress: float) -> float:
        down = min(max((progress - self.start) / (self.end - self.start), 0.0), 1.0)
        return 1 - (1 - self.final) * down


@dataclass(frozen=True)
class Cosine:
    """Straight up from 0 until `warmup`, half a cosine down to 0 at `end`, then constant at `final`.

    ImageNet: 5 of 100 epochs of warm-up, the cosine until 90, then 10 at a small constant rate to collect from.
    """

    warmup: float = 0.05
    end: float = 1.0
    final: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.warmup < self.end <= 1:
            raise ValueError(f"schedule needs 0 <= warmup < end <= 1, got warmup={self.warmup}, end={self.end}")
        _check_final(self.final)

    def __call__(self, progress: float) -> float:
        if progress < self.warmup:
            return progress / self.warmup
        if progress < self.end:
            return 0.5 * (1 + math.cos(math.pi * (progress - self.warmup) / (self.end - self.warmup)))
        return self.final


@dataclass(frozen=True)
class Constant:
    """1 throughout."""

    def __call__(self, progress: float) -> float:
        return 1.0


def _check_final(final: float) -> None:
    if not (final >= 0 and math.isfinite(final)):
        raise ValueError(f"schedule needs a finite final >= 0, got {final}")
