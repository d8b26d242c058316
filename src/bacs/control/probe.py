"""What an ensemble shows of itself on a probe of the images, and how that is scored.

The score is agreement, held back by collapse:

    score = agreement - PENALTY * max(0, log( classes counted under the anchor / classes counted ))

Where there are few images, as in a stream, trust stands in for agreement: the probability that the ensemble gives to
the labels of its members. It says the same with less noise, as long as the weights are the same: weights that were
adapted are more confident, better or not.

Agreement alone is fooled by collapse: members that call everything a frog agree. Agreement beyond chance is fooled by
the opposite, a folder that does hold one class. What tells the two apart is whether the classes stay when statistics
change a little: under a small share of batch statistics (the anchor) a folder of trucks is still mostly trucks, and a
collapse has spread over more classes. So candidates pay for naming fewer classes than the anchor does. For naming more
they pay nothing: where that is wrong, members stop to agree, and where a shift is so strong that the anchor has
collapsed too, it is right.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from bacs import inputs
from bacs.agreement import class_shares, per_image
from bacs.ensemble import Ensemble
from bacs.inputs import Images, PerMember
from bacs.predictive import Predictive

PENALTY = 0.1
TRUST_PENALTY = 0.07
"""Trust varies less than agreement does, and so does what it pays for collapse."""

NEAR_COPIES = 0.998
"""Members that agree more often than this on every candidate are near copies: their agreement tells nothing."""


class Votes(NamedTuple):
    """The labels of those who are asked whether they agree: members, or a network and its view of mirrored pictures."""

    labels: Int64[Tensor, "voters images"]
    classes: int
    confidence: float  # mean, of the ensemble
    trust: Float64[Tensor, "images"] | None = None  # mean over voters of what all together give to their labels

    @property
    def agreement_per_image(self) -> Float[Tensor, "images"]:
        return per_image(self.labels)

    @property
    def agreement(self) -> float:
        return float(self.agreement_per_image.mean())

    @property
    def shares(self) -> Float[Tensor, "classes"]:
        return class_shares(self.labels, self.classes)

    @property
    def counted_classes(self) -> float:
        """exp H of the classes as they are counted."""
        return math.exp(float(torch.special.entr(self.shares).sum()))


def votes_in(*views: Predictive, trusting: bool = False) -> Votes:
    """What voters show of themselves in predictions that were made already, of the images and of views of them."""
    labels, own = torch.cat([view.labels for view in views]), views[0].probabilities
    together = torch.stack([view.probabilities for view in views]).mean(dim=0)
    trust = together.gather(1, labels.T).mean(dim=1) if trusting else None
    return Votes(labels, own.shape[1], float(own.max(dim=1).values.mean()), trust)


def look(
    ensemble: Ensemble, probe: Images, *, batch_size: int, seed: int, mirrored: bool, trusting: bool = False
) -> Votes:
    """What the ensemble shows on the probe; `mirrored` asks its first member twice, also of mirror images."""
    options = {"batch_size": batch_size, "seed": seed}
    if not mirrored:
        return votes_in(ensemble.predictive(probe, **options), trusting=trusting)
    alone = replace(ensemble, members=ensemble.members[:1])
    own = probe[0] if isinstance(probe, PerMember) else probe
    return votes_in(alone.predictive(own, **options), alone.predictive(mirror(own), **options), trusting=trusting)


def join(parts: Sequence[Votes]) -> Votes:
    """What was seen of several batches, together."""
    counts = [part.labels.shape[1] for part in parts]
    confidence = sum(part.confidence * count for part, count in zip(parts, counts, strict=True)) / sum(counts)
    trusts = [part.trust for part in parts if part.trust is not None]
    trust = torch.cat(trusts) if len(trusts) == len(parts) else None
    return Votes(torch.cat([part.labels for part in parts], dim=1), parts[0].classes, confidence, trust)


def mirror(probe: Images) -> Tensor:
    """The probe mirrored left to right: uint8 NHWC, or floats NCHW."""
    images = torch.cat([batch for _, batch in inputs.batches(probe, 256)])
    return images.flip(-2 if images.dtype == torch.uint8 else -1)


def can_be_mirrored(probe: Images) -> bool:
    """Whether the probe is of pictures, which have a mirror image; rows of a table and tokens have none."""
    batch = inputs.first_batch(probe[0] if isinstance(probe, PerMember) else probe)
    return batch.ndim == 4 and (batch.is_floating_point() or batch.dtype == torch.uint8)


def collapse(seen: Votes, anchor: Votes) -> float:
    """max(0, log( counted classes of the anchor / counted classes )), in nats: what is lost, and never what is won."""
    return max(0.0, math.log(anchor.counted_classes / seen.counted_classes))


def score(seen: Votes, anchor: Votes) -> float:
    """Agreement, or trust if it was asked for, less a penalty times collapse."""
    penalty = PENALTY if seen.trust is None else TRUST_PENALTY
    return float(_scored(seen).mean()) - penalty * collapse(seen, anchor)


def _scored(seen: Votes) -> Float64[Tensor, "images"]:
    return seen.agreement_per_image if seen.trust is None else seen.trust


def gain(seen: Votes, anchor: Votes, over: Votes) -> tuple[float, float]:
    """How much better one scores than another, and the standard error of that over images."""
    differences = _scored(seen) - _scored(over)
    count = len(differences)
    error = float(differences.std()) / count**0.5 if count > 1 else float("inf")
    return score(seen, anchor) - score(over, anchor), max(error, 0.5 / count)


@cache
def count_if_even(images: int, classes: int) -> float:
    """The counted classes of so many images if all classes were equally frequent: fewer than there are, as draws vary.

    The mean over 32 seeded draws.

    >>> round(count_if_even(64, 10), 1), round(count_if_even(512, 1000))
    (9.3, 374)
    """
    drawn = torch.randint(classes, (32, 1, images), generator=torch.Generator().manual_seed(0))
    return sum(Votes(labels, classes, 0.0).counted_classes for labels in drawn) / len(drawn)
