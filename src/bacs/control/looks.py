"""What a stream remembers of its looks: the ensemble as it came under every share, and weights that left home."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from bacs.control import candidates as trying
from bacs.control import probe as probing
from bacs.control.candidates import ANCHOR
from bacs.control.probe import Votes


class Look(NamedTuple):
    """What is said of one batch."""

    image: int  # how many had come when it was asked
    home: dict[float, Votes]  # by the ensemble as it came, under every share of batch statistics
    away: Votes | None  # by adapted weights, whether they answer at present or are set aside
    drawn: dict[float, Votes] | None = (
        None  # by the ensemble as it came, of what is stepped on, if that is not the batch
    )

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
    """The last looks at the present world: of one kind, not too old, and together of at most `window` images."""

    def __init__(self, window: int, age: int) -> None:
        self.window, self.age = window, age
        self.all: list[Look] = []
        self.classes = 0

    def add(self, look: Look) -> None:
        self.classes = look.home[ANCHOR].classes
        kept = [
            each for each in self.all if look.image - each.image < self.age and each.home.keys() == look.home.keys()
        ]
        self.all = [*kept, look]
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
        home = join_home(both)
        away = probing.join([look.away for look in both if look.away is not None])
        return Gain(*probing.gain(away, home[ANCHOR], home[batch_weight]))

    def classes_per_batch(self, batch_weight: float, possible: int) -> tuple[float, float]:
        """Counted classes in the mean batch, as a part of equally frequent ones and as a number.

        Of each batch by itself, for a window of many may be of sorted ones.
        """
        batches = [trying.basis_of_count(look.drawn or look.home, batch_weight) for look in self.all]
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
        """Labels of all looks."""
        return {f"looks/{i}/{key}": seen.labels for i, look in enumerate(self.all) for key, seen in _flat(look)}

    def unpack(self, about: dict[str, Any], group: dict[str, Tensor]) -> None:
        """Takes over what was described and packed."""
        self.all, self.classes = [], about["classes"]
        for i, (image, shares) in enumerate(zip(about["when"], about["shares"], strict=True)):
            numbers = about["confidences"][i].items()
            seen = {key: Votes(group[f"looks/{i}/{key}"], about["classes"], value) for key, value in numbers}
            home = {r: seen[f"home-{r}"] for r in shares}
            drawn = {r: seen[f"drawn-{r}"] for r in shares} if f"drawn-{ANCHOR}" in seen else None
            self.all.append(Look(image, home, seen.get("away"), drawn))


def _flat(look: Look) -> list[tuple[str, Votes]]:
    """All that a look holds, by name."""
    parts = [(f"home-{r}", seen) for r, seen in look.home.items()]
    parts += [(f"drawn-{r}", seen) for r, seen in (look.drawn or {}).items()]
    return parts + ([] if look.away is None else [("away", look.away)])


def join_home(looks: Sequence[Look]) -> dict[float, Votes]:
    """What home says of the batches of several looks, together."""
    return {r: probing.join([look.home[r] for look in looks]) for r in looks[0].home}
