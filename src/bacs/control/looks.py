"""What a stream remembers of its looks: the ensemble as it came under every share, and weights that left home."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from bacs.control import candidates as trying
from bacs.control import probe as probing
from bacs.control.candidates import ANCHOR, WEIGHTS
from bacs.control.probe import Seen


class Look(NamedTuple):
    """What is said of one batch."""

    home: dict[float, Seen]  # by the ensemble as it came, under every share of batch statistics
    away: Seen | None  # by adapted weights, whether they answer at present or are set aside

    @property
    def images(self) -> int:
        return self.home[ANCHOR].labels.shape[1]


class Gain(NamedTuple):
    """How much better one scores than another, and the standard error of that."""

    better: float
    error: float

    def __str__(self) -> str:
        return f"{self.better:+.3f} ± {self.error:.3f}"


class Looks:
    """The last looks at the present world, together at most `window` images."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.all: list[Look] = []

    def add(self, look: Look) -> None:
        self.all.append(look)
        while len(self.all) > 1 and sum(each.images for each in self.all) > self.window:
            self.all.pop(0)

    def leave_away_out(self) -> None:
        """Forgets what adapted weights said: they are others now."""
        self.all = [look._replace(away=None) for look in self.all]

    def home(self) -> dict[float, Seen]:
        """All looks together, by share."""
        return joined(self.all)

    def gain_of_away(self, batch_weight: float) -> Gain | None:
        """How much better adapted weights score than home under this share, on the batches that both were asked of."""
        both = [look for look in self.all if look.away is not None]
        if not both:
            return None
        home = joined(both)
        away = probing.join([look.away for look in both if look.away is not None])
        return Gain(*probing.gain(away, home[ANCHOR], home[batch_weight]))

    def classes_per_batch(self, batch_weight: float, possible: int) -> tuple[float, float]:
        """Counted classes in the mean batch, as a part of equally frequent ones and as a number.

        Of each batch by itself, for a window of many may be of sorted ones.
        """
        batches = [trying.counted_at(look.home, batch_weight) for look in self.all]
        parts = [trying.part_of_even(seen, possible) for seen in batches]
        return sum(parts) / len(parts), sum(seen.counted_classes for seen in batches) / len(batches)

    def describe(self) -> dict[str, Any]:
        """Numbers of all looks, for a manifest."""
        return {
            "classes": self.all[0].home[ANCHOR].classes if self.all else 0,
            "home": [[look.home[r].confidence for r in WEIGHTS] for look in self.all],
            "away": [None if look.away is None else look.away.confidence for look in self.all],
        }

    def pack(self) -> dict[str, Tensor]:
        """Labels of all looks."""
        group = {
            f"looks/{i}/{j}": look.home[r].labels for i, look in enumerate(self.all) for j, r in enumerate(WEIGHTS)
        }
        return group | {f"looks/{i}/away": look.away.labels for i, look in enumerate(self.all) if look.away is not None}

    def unpack(self, about: dict[str, Any], group: dict[str, Tensor]) -> None:
        """Takes over what was described and packed."""
        self.all = []
        for i, (confidences, away) in enumerate(zip(about["home"], about["away"], strict=True)):
            pairs = enumerate(zip(WEIGHTS, confidences, strict=True))
            home = {r: Seen(group[f"looks/{i}/{j}"], about["classes"], confidence) for j, (r, confidence) in pairs}
            own = None if away is None else Seen(group[f"looks/{i}/away"], about["classes"], away)
            self.all.append(Look(home, own))


def joined(looks: Sequence[Look]) -> dict[float, Seen]:
    """What home says of the batches of several looks, together."""
    return {r: probing.join([look.home[r] for look in looks]) for r in WEIGHTS}
