"""What a stream remembers of its looks: the ensemble as it came under every share, and weights that left home."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from bacs.control import candidates as trying
from bacs.control import probe as probing
from bacs.control.candidates import anchor_of
from bacs.control.class_runs import UNEVEN, unevenness
from bacs.control.probe import Votes

NEAR = 1024
"""Images within which looks are compared with each other: by and by, the world changes what home calls things."""

CLEARLY = 3.0
"""Standard errors by which a single look, or adapted weights that agree less, decide at once."""


class Look(NamedTuple):
    """What is said of one batch."""

    image: int  # how many had come when it was asked
    home: dict[float, Votes]  # by the ensemble as it came, under every share of batch statistics
    away: Votes | None  # by adapted weights, whether they answer at present or are set aside
    drawn: dict[float, Votes] | None = (
        None  # by the ensemble as it came, of what is stepped on, if that is not the batch
    )

    @property
    def kind(self) -> tuple[bool, float]:
        """What looks must have in common to be counted together: whose statistics, and held to which classes."""
        return self.drawn is None, anchor_of(self.home)

    @property
    def images(self) -> int:
        return self.home[0.0].labels.shape[1]


class Gain(NamedTuple):
    """How much better one scores than another, and the standard error of that."""

    better: float
    error: float

    def __str__(self) -> str:
        return f"{self.better:+.3f} ± {self.error:.3f}"


class Looks:
    """The last looks at the present world: not too old, and together of at most `window` images."""

    def __init__(self, window: int, age: int) -> None:
        self.window, self.age = window, age
        self.all: list[Look] = []
        self.classes = 0

    def add(self, look: Look) -> None:
        """Takes in a look. Those at a memory and those at batches as they come are not to be compared."""
        self.classes = look.home[0.0].classes
        alike = [each for each in self.all if each.kind == look.kind and look.image - each.image < self.age]
        self.all = [*alike, look]
        while len(self.all) > 1 and sum(each.images for each in self.all) > self.window:
            self.all.pop(0)

    def leave_away_out(self) -> None:
        """Forgets what adapted weights said: they are others now."""
        self.all = [look._replace(away=None) for look in self.all]

    def home(self) -> dict[float, Votes]:
        """All looks together, by share."""
        return join_home(self.all)

    def gain_of_away(self, batch_weight: float) -> Gain | None:
        """How much better adapted weights score than home under this share, on the batches that both were asked of."""
        both = [look for look in self.all if look.away is not None]
        if not both:
            return None
        home = {r: seen._replace(trust=None) for r, seen in join_home(both).items()}  # by labels: see `probe`
        away = probing.join([look.away for look in both if look.away is not None])._replace(trust=None)
        return Gain(*probing.gain(away, home[anchor_of(home)], home[batch_weight]))

    def contradict(self, batch_weight: float) -> bool:
        """Whether in the last look by itself another share is clearly better than this one."""
        last = self.all[-1].home
        if batch_weight not in last:
            return False
        gains = [Gain(*probing.gain(seen, last[anchor_of(last)], last[batch_weight])) for seen in last.values()]
        return any(gain.better > CLEARLY * gain.error for gain in gains)

    def show_runs(self) -> bool:
        """Whether the last batches that were looked at, as home calls them, differ as they do in runs of classes."""
        near = [look.home[0.0] for look in self.all if self.all[-1].image - look.image < NEAR and look.drawn is None]
        return len(near) > 1 and unevenness(torch.stack([count_labels(seen) for seen in near])) > UNEVEN

    def classes_per_batch(self, batch_weight: float, possible: int) -> tuple[float, float]:
        """Counted classes in the mean batch, as a part of equally frequent ones and as a number.

        Of each batch by itself, for a window of many may be of sorted ones; of what is drawn, if anything is.
        """
        found = [look.drawn for look in self.all if look.drawn] or [look.home for look in self.all]
        batches = [trying.basis_of_count(seen, batch_weight) for seen in found]
        parts = [trying.part_of_even(seen, possible) for seen in batches]
        return sum(parts) / len(parts), sum(seen.counted_classes for seen in batches) / len(batches)

    def describe(self) -> dict[str, Any]:
        """Numbers of all looks, for a manifest."""
        return {
            "classes": self.classes,
            "when": [look.image for look in self.all],
            "shares": [list(look.home) for look in self.all],
            "confidences": [{key: seen.confidence for key, seen in _flat(look)} for look in self.all],
        }

    def pack(self) -> dict[str, Tensor]:
        """Labels of all looks, and what trust there is in them."""
        group = {}
        for i, look in enumerate(self.all):
            for key, seen in _flat(look):
                group[f"looks/{i}/{key}"] = seen.labels
                if key.startswith("home-") and seen.trust is not None:
                    group[f"looks/{i}/{key}/trust"] = seen.trust
        return group

    def unpack(self, about: dict[str, Any], group: dict[str, Tensor]) -> None:
        """Takes over what was described and packed."""
        self.all, self.classes = [], about["classes"]
        for i, (image, shares) in enumerate(zip(about["when"], about["shares"], strict=True)):
            seen = {}
            for key, value in about["confidences"][i].items():
                place = f"looks/{i}/{key}"
                seen[key] = Votes(group[place], about["classes"], value, group.get(f"{place}/trust"))
            home = {r: seen[f"home-{r}"] for r in shares}
            drawn = {r: seen[f"drawn-{r}"] for r in shares if f"drawn-{r}" in seen} or None
            self.all.append(Look(image, home, seen.get("away"), drawn))


def count_labels(seen: Votes) -> Int64[Tensor, "classes"]:
    """How often the first voter names each class: every image once."""
    return seen.labels[0].bincount(minlength=seen.classes)


def _flat(look: Look) -> list[tuple[str, Votes]]:
    """All that a look holds, by name."""
    parts = [(f"home-{r}", seen) for r, seen in look.home.items()]
    parts += [(f"drawn-{r}", seen) for r, seen in (look.drawn or {}).items()]
    return parts + ([] if look.away is None else [("away", look.away)])


def is_clear(home: Mapping[float, Votes]) -> bool:
    """Whether source statistics are clearly better than all others, or another share clearly better than these."""
    source = home[0.0]
    gains = [Gain(*probing.gain(seen, home[anchor_of(home)], source)) for r, seen in home.items() if r > 0]
    best = max(gains, key=lambda gain: gain.better)
    return abs(best.better) > CLEARLY * best.error


def join_home(looks: Sequence[Look]) -> dict[float, Votes]:
    """What home says of the batches of several looks, together, by the shares that all of them were asked about."""
    common = [r for r in looks[0].home if all(r in look.home for look in looks)]
    return {r: probing.join([look.home[r] for look in looks]) for r in common}
