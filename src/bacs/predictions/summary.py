"""What adaptation did to the predictions, and when to distrust it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from bacs.agreement import Estimate, Figures, estimate, estimate_others, observe
from bacs.ensemble import Ensemble
from bacs.methods.catalogue import METHODS
from bacs.parameters import batch_norm_layers
from bacs.predictive import Predictive

FEW = 32
"""Images below which batch statistics are so noisy that the summary warns."""
RUNS = 0.7
"""Classes in a batch, as a part of those in a shuffled one, below which they come in runs: as in `control`."""
FAR = 5.0
"""Posterior standard deviations, of which draws have 1. On noisy CIFAR-10 images, networks that moved by 3.4 were as
right as before, and those that moved by 6.5 had lost two fifths of it."""


@dataclass(frozen=True)
class ClassCount:
    index: int
    name: str | None
    before: int  # images predicted to be of it before adaptation
    after: int


@dataclass(frozen=True)
class Summary:
    images: int
    classes: tuple[ClassCount, ...]  # those predicted at all, the most frequent first
    before: Figures
    after: Figures
    moved: tuple[float | None, ...]  # by member, in posterior standard deviations
    warnings: tuple[str, ...]
    estimated: "Estimates | None" = None  # where probabilities are honest enough to say

    def as_json(self) -> dict[str, Any]:
        figures = {"before": self.before._asdict(), "after": self.after._asdict()}
        guesses = None if self.estimated is None else {n: e._asdict() for n, e in self.estimated._asdict().items()}
        return asdict(self) | figures | {"estimated": guesses}


class Estimates(NamedTuple):
    """Accuracy without labels."""

    before: Estimate
    after: Estimate


def estimate_both(ensemble: Ensemble, before: Predictive, after: Predictive) -> Estimates | None:
    """How often predictions before and after are right, those after being as confident as they are right.

    None for a single member, which has nobody to agree with.
    """
    if len(ensemble) < 2:
        return None
    guess = estimate(observe(after), len(after.probabilities), len(after.labels), ensemble.reference)
    return Estimates(estimate_others(before, after, calibrated=guess.calibrated), guess)


def summarise(
    ensemble: Ensemble,
    before: Predictive,
    after: Predictive,
    moved: Sequence[float | None],
    *,
    method: str,
    batch_size: int,
    batch_weight: float | None = None,
    honest: bool = False,
    in_order: bool = False,
) -> Summary:
    """The summary of one adaptation of `ensemble`, from the predictions before and after it.

    `batch_weight` is the share of the batch in batch norm's statistics, the method's own if None; `honest` says that
    the temperature of the predictions is by agreement, so that accuracy can be estimated; `in_order` that batches are
    of neighbouring images, as they are online.
    """
    weight = METHODS[method].batch_weight if batch_weight is None else batch_weight
    width = before.probabilities.shape[1]
    counts = [
        np.bincount(made.probabilities.argmax(dim=1).numpy(), minlength=width).tolist() for made in (before, after)
    ]
    names = ensemble.class_names
    classes = [
        ClassCount(number, None if names is None else names[number], *pair)
        for number, pair in enumerate(zip(*counts, strict=True))
        if any(pair)
    ]
    classes.sort(key=lambda row: (-row.after, -row.before, row.index))
    images, first, second = len(before.probabilities), observe(before), observe(after)
    warnings = [
        *(
            _collapse_warnings(first, second, counts, images, adapts=weight > 0)
            or _member_warnings(before, after, width)
        ),
        *_distance_warnings(moved),
        *_spread_warnings(first, second),
        *(_batch_warnings(ensemble, images, batch_size=batch_size) if weight > 0 else ()),
        *(_run_warnings(before.probabilities.argmax(dim=1).numpy(), batch_size) if weight > 0 and in_order else ()),
    ]
    if METHODS[method].chooses:  # it has decided by the same figures, and guards against all of these
        warnings = []
    guesses = estimate_both(ensemble, before, after) if honest else None
    return Summary(images, tuple(classes), first, second, tuple(moved), tuple(warnings), guesses)


def _collapse_warnings(
    before: Figures, after: Figures, counts: Sequence[Sequence[int]], images: int, *, adapts: bool
) -> list[str]:
    """Adaptation that fell onto few classes: half of them are gone, or less than two are left.

    Counted are probabilities and labels: members that are sure of different wrong classes have a mean that is spread
    over all of these, though nearly every image gets one label.
    """
    kinds = (
        ("effective", before.effective_classes, after.effective_classes),
        ("counted", _effective_count(counts[0]), _effective_count(counts[1])),
    )
    for kind, old, new in kinds:
        if new < old / 2:
            return [
                f"predictions collapsed onto few classes: from {old:.1f} {kind} classes to {new:.1f}; try a smaller "
                "learning_rate, fewer epochs or method bn"
            ]
    for kind, _, new in kinds:
        if adapts and new < 2 < len(counts[0]) and images >= FEW:
            return [
                f"nearly all images are predicted to be of one class ({new:.1f} {kind} classes); if that is so, batch "
                "statistics do not suit them: use method vanilla"
            ]
    return []


def _member_warnings(before: Predictive, after: Predictive, classes: int) -> list[str]:
    """Members that fell by themselves while their mean, which the others hold up, still shows most classes."""
    old, new = (
        [_effective_count(labels.bincount(minlength=classes).tolist()) for labels in made.labels]
        for made in (before, after)
    )
    fallen = [number for number, (had, has) in enumerate(zip(old, new, strict=True)) if has < had / 2]
    if not fallen:
        return []
    first = fallen[0]
    names = f"member {first}" if len(fallen) == 1 else f"members {', '.join(map(str, fallen))}"
    return [
        f"{names} collapsed onto few classes: member {first} from {old[first]:.1f} counted classes to "
        f"{new[first]:.1f}; try a smaller learning_rate, fewer epochs or method bn"
    ]


def _distance_warnings(moved: Sequence[float | None]) -> list[str]:
    """Weights where training never was, whatever the predictions look like."""
    farthest = max((distance for distance in moved if distance is not None), default=0.0)
    if not farthest > FAR:
        return []
    return [
        f"weights moved by {farthest:.3g} posterior standard deviations, of which draws have 1: they are no longer the "
        "trained ones; try a smaller learning_rate, fewer epochs or method bacs"
    ]


def _effective_count(counts: Sequence[int]) -> float:
    """exp H of the shares: how many classes the labels are spread over."""
    shares = np.array([count for count in counts if count]) / sum(counts)
    return float(np.exp(-(shares * np.log(shares)).sum()))


def _spread_warnings(before: Figures, after: Figures) -> list[str]:
    """Batch statistics of few classes: they make equal what sets these classes apart, and the others appear.

    On shifted images of all classes, adaptation finds more of them too, but is about as sure as before;
    docs/measurements/adapt.md has the figures behind the two numbers.
    """
    more = after.effective_classes > 1.5 * before.effective_classes
    if not (more and after.confidence < before.confidence - 0.05):
        return []
    return [
        f"predictions spread from {before.effective_classes:.1f} effective classes to {after.effective_classes:.1f} "
        "and became less sure: if the images are of few classes, batch statistics do harm, use method vanilla; if they "
        "are not of the size that the model was trained at, size mends it"
    ]


def _run_warnings(labels: np.ndarray, batch_size: int) -> list[str]:
    """Images sorted by class, or in runs: neighbours share one far more often than in a shuffled order."""

    def classes_per_batch(ordered: np.ndarray) -> float:
        batches = [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]
        return float(np.mean([_effective_count(np.bincount(batch).tolist()) for batch in batches]))

    found, mixed = classes_per_batch(labels), classes_per_batch(np.random.default_rng(0).permutation(labels))
    if found >= RUNS * mixed:
        return []
    return [
        f"classes come in runs: {found:.1f} in a batch, of {mixed:.1f} if they were mixed. Batch statistics take that "
        "for a shift and do harm; method auto sees to it, or shuffle the images"
    ]


def _batch_warnings(ensemble: Ensemble, images: int, *, batch_size: int) -> list[str]:
    """Where batch norm sees too little of the data, or is not there at all."""
    without = [member for member in ensemble.members if not batch_norm_layers(member.model)]
    said = []
    if without:
        name = type(without[0].model).__name__
        said.append(f"{name} has no batch-norm layers: there are no batch statistics to adapt, only weights")
    if len(without) == len(ensemble):
        return said
    left_over = images % batch_size
    if min(images, batch_size) < FEW:
        what = f"{images} images" if images < batch_size else f"batches of {batch_size}"
        said.append(f"batch statistics of {what} are noisy: give at least {FEW}, or use method vanilla")
    elif images > batch_size and 0 < left_over < FEW:
        even = -(-images // -(-images // batch_size))
        said.append(
            f"the last batch has only {max(left_over, 2)} images, and its statistics are noisy: batch_size {even} "
            "divides them evenly"
        )
    return said
