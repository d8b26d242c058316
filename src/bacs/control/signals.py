"""Whether the world has changed: what is usual for a stream's batches, and how far the next one is from it.

Signals are numbers per image: how far members agree, how sure they are, and of the images themselves their mean, their
spread and how much neighbours differ. A batch is surprising if the mean of any signal leaves the mean of the last
batches by SURPRISE standard errors. These come from how much batches differ among themselves, not images: where
classes arrive in runs, batches differ much, and that is usual then.
"""

import itertools

import torch
from jaxtyping import Float64
from torch import Tensor

from bacs.agreement import per_image

NAMES = ("agreement", "confidence", "brightness", "contrast", "roughness")
OF_IMAGES = slice(2, None)
"""Those of NAMES that no network is asked for."""

SURPRISE = 5.0
MEMORY = 16
"""Batches that make up what is usual."""

ENOUGH = 6
"""Batches before anything can surprise."""

LATEST = 4
"""Batches that are compared together as well: where batches differ much, no single one surprises."""

JUMP = 10.0
"""Standard errors between the batches before a change and those after it, by images alone. Of batches of one class and
those of the next, 1 of 12 in a sorted stream are so far from each other; of two corruptions, 2 of 3."""

YOUNG = ENOUGH + LATEST
"""Batches up to which a world may have changed unnoticed: some were before it, and what follows is usual then."""


def signals_of(images: Tensor, rows: list[Tensor]) -> Float64[Tensor, "signals images"]:
    """Each signal of each image; one network agrees with itself."""
    labels = torch.stack([own.argmax(dim=1) for own in rows]).cpu()
    agreement = per_image(labels) if len(rows) > 1 else torch.ones(len(rows[0]), dtype=torch.float64)
    confidence = torch.stack(rows).mean(dim=0).max(dim=1).values.double().cpu()
    return torch.stack([agreement, confidence, *image_signals(images)])


def image_signals(images: Tensor) -> list[Float64[Tensor, "images"]]:
    """Mean, spread and difference of neighbours of each image; zeros of what has no size, as tokens."""
    if images.dtype != torch.uint8 and not images.is_floating_point():
        return [torch.zeros(len(images), dtype=torch.float64)] * 3
    wide = images.detach().cpu().double()
    flat = wide.flatten(1)
    across = -2 if images.dtype == torch.uint8 else -1  # NHWC, or NCHW
    steps = wide.diff(dim=across) if wide.ndim > 2 else flat.diff(dim=1)
    return [flat.mean(dim=1), flat.std(dim=1, unbiased=False), steps.abs().flatten(1).mean(dim=1)]


class Usual:
    """The means of the last batches, and signals of images that wait until they are enough to be compared."""

    def __init__(self) -> None:
        self.means: list[Tensor] = []
        self.waiting: Tensor | None = None

    @property
    def is_blind(self) -> bool:
        """Whether the last batch was among the first of a world, of which none can surprise by itself."""
        return len(self.means) <= ENOUGH

    def gather(self, signals: Float64[Tensor, "signals images"], least: int) -> Tensor | None:
        """The signals, with those that waited; None while they are of fewer than `least` images, and wait."""
        together = signals if self.waiting is None else torch.cat([self.waiting, signals], dim=1)
        self.waiting = together if together.shape[1] < least else None
        return None if self.waiting is not None else together

    def surprise_in(self, signals: Float64[Tensor, "signals images"]) -> str | None:
        """What left its usual value, in words; None if nothing did."""
        means = [*self.means, signals.mean(dim=1)]
        own = spread_of_mean(signals)
        for latest in (1, LATEST):
            before, now = means[:-latest], torch.stack(means[-latest:]).mean(dim=0)
            if len(before) < ENOUGH:
                return None
            usual = torch.stack(before)
            # Batches may have been alike by chance, or their values at a bound; then the spread inside of one counts.
            spread = torch.maximum(usual.var(dim=0), own)
            errors = (spread * (1 / latest + 1 / len(before))).sqrt().clamp_min(1e-9)
            jumps = (now - usual.mean(dim=0)) / errors
            place = int(jumps.abs().argmax())
            if (jump := abs(float(jumps[place]))) > SURPRISE:
                return _in_words(NAMES[place], float(usual[:, place].mean()), float(now[place]), jump)
        return None

    def jump_to(self, signals: Float64[Tensor, "signals images"]) -> str | None:
        """Which image signal was one value in the first batches of a young world and another since; None if none was.

        The batch in which the world changes, of both, may be left out.
        """
        if not 1 <= len(self.means) < YOUNG - 1:
            return None
        means = torch.stack([*self.means, signals.mean(dim=1)])[:, OF_IMAGES]
        own = spread_of_mean(signals)[OF_IMAGES]
        found = []
        for first, skipped in itertools.product(range(1, len(means)), (0, 1)):
            before, after = means[:first], means[first + skipped :]
            if len(after) == 0:
                continue
            within = torch.cat([before - before.mean(dim=0), after - after.mean(dim=0)]).square().sum(dim=0)
            spread = torch.maximum(within / max(len(before) + len(after) - 2, 1), own)
            errors = (spread * (1 / len(before) + 1 / len(after))).sqrt().clamp_min(1e-9)
            jumps = (after.mean(dim=0) - before.mean(dim=0)).abs() / errors
            place = int(jumps.argmax())
            found.append((float(jumps[place]), place, float(before[:, place].mean()), float(after[:, place].mean())))
        jump, place, was, now = max(found)
        return _in_words(NAMES[OF_IMAGES][place], was, now, jump) if jump > JUMP else None

    def add(self, signals: Float64[Tensor, "signals images"]) -> None:
        self.means = [*self.means, signals.mean(dim=1)][-MEMORY:]

    def pack(self) -> dict[str, Tensor]:
        usual = {"usual": torch.stack(self.means)} if self.means else {}
        return usual | ({} if self.waiting is None else {"fresh": self.waiting})

    def unpack(self, group: dict[str, Tensor]) -> None:
        self.means = list(group["usual"]) if "usual" in group else []
        self.waiting = group.get("fresh")


def spread_of_mean(signals: Float64[Tensor, "signals images"]) -> Float64[Tensor, "signals"]:
    """The variance of a batch's mean, by how much its images differ."""
    return signals.var(dim=1) / signals.shape[1] if signals.shape[1] > 1 else torch.zeros(len(signals))


def _in_words(name: str, was: float, now: float, jump: float) -> str:
    return f"{name} went from {was:.3g} to {now:.3g} ({jump:.0f} standard errors)"
