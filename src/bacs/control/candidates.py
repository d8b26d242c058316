"""Shares of batch statistics that are tried, and which of them the members' own word speaks for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from bacs.adaptation.statistics import Statistics
from bacs.control import probe as probing
from bacs.control.probe import Votes
from bacs.ensemble import Ensemble
from bacs.inputs import Images
from bacs.parameters import batch_norm_layers

WEIGHTS = (0.0, 0.1, 0.25, 0.5, 1.0)
ANCHOR = 0.25
STREAM_WEIGHTS = (0.0, ANCHOR, 1.0)
REST_WEIGHTS = (0.0, ANCHOR)
RUN_WEIGHTS = (0.0, 0.5)
"""Of streams, whose looks must be quick; of one that rests at source statistics in a world that it knows; and of one
of few classes at a time, where half of a memory's statistics was about as good as the best share throughout."""

MIXED = 0.7
"""Classes are mixed if at least this part of what equally frequent ones would give is counted."""


@dataclass(frozen=True)
class Candidate:
    """One share of batch statistics, and what the probe showed under it."""

    batch_weight: float
    agreement: float
    collapse: float
    score: float
    counted_classes: float
    confidence: float


class Picked(NamedTuple):
    """The share that is best by more than chance, 0 if none is, and why."""

    batch_weight: float
    reason: str


def nothing_to_try(ensemble: Ensemble) -> str | None:
    """Why there are no statistics to choose, if there are none."""
    layers = [layer for member in ensemble.members for layer in batch_norm_layers(member.model)]
    if not layers:
        return "there are no batch-norm layers, so there are no statistics to choose"
    if any(layer.running_mean is None for layer in layers):
        return "batch norm has no statistics from training, so there is nothing to choose"
    return None


def try_weights(
    ensemble: Ensemble,
    images: Images,
    weights: Sequence[float] = WEIGHTS,
    *,
    batch_size: int,
    seed: int,
    mirrored: bool,
    trusting: bool = False,
) -> dict[float, Votes]:
    """What the ensemble shows of itself under every share."""
    how: dict[str, Any] = {"batch_size": batch_size, "seed": seed, "mirrored": mirrored, "trusting": trusting}
    return {r: probing.look(replace(ensemble, statistics=Statistics(r)), images, **how) for r in weights}


def are_near_copies(found: Mapping[float, Votes]) -> bool:
    return all(seen.agreement > probing.NEAR_COPIES for seen in found.values())


def candidates_of(found: Mapping[float, Votes]) -> tuple[Candidate, ...]:
    """The figures of every share, as a table has them."""
    anchor = found[anchor_of(found)]
    return tuple(
        Candidate(
            weight,
            seen.agreement,
            probing.collapse(seen, anchor),
            probing.score(seen, anchor),
            seen.counted_classes,
            seen.confidence,
        )
        for weight, seen in found.items()
    )


def pick(found: Mapping[float, Votes], *, mirrored: bool, errors: float = 1.0) -> Picked:
    """The share with the best score; source statistics unless it is better by more than so many standard errors."""
    anchor, source = found[anchor_of(found)], found[0.0]
    weight, best = max(found.items(), key=lambda item: probing.score(item[1], anchor))
    better, error = probing.gain(best, anchor, source)
    who = "views of a picture" if mirrored else "members"
    if weight == 0:
        return Picked(0.0, f"source statistics: {who} agree best under them, in {100 * best.agreement:.1f} %")
    if better <= errors * error:
        return Picked(
            0.0,
            f"source statistics: {who} agree better under {weight:g} of the batch's, but by no more than chance "
            f"({better:+.3f} ± {error:.3f})",
        )
    return Picked(
        weight,
        f"{weight:g} of batch statistics: {who} agree in {100 * best.agreement:.1f} % (naming "
        f"{best.counted_classes:.1f} classes) instead of {100 * source.agreement:.1f} % ({source.counted_classes:.1f})",
    )


def possible_classes(ensemble: Ensemble, classes: int) -> int:
    return classes if ensemble.class_mask is None else int(ensemble.class_mask.sum())


def basis_of_count(found: Mapping[float, Votes], batch_weight: float) -> Votes:
    """Where classes are counted: under the chosen share, but not under less than the anchor."""
    return found[max(anchor_of(found), batch_weight)]


def anchor_of(found: Mapping[float, Votes]) -> float:
    """The share whose classes the others are held to: ANCHOR, or the smallest that was tried instead of it."""
    return ANCHOR if ANCHOR in found else min(r for r in found if r > 0)


def part_of_even(seen: Votes, possible: int) -> float:
    """The counted classes, as a part of what equally frequent ones would give."""
    return seen.counted_classes / probing.count_if_even(seen.labels.shape[1], possible)
