"""What an ensemble shows of itself on a probe of the images, and how that is scored.

The score is agreement, held back by drift:

    score = agreement - PENALTY * KL( shares || shares of the anchor )

Agreement alone is fooled by collapse: members that call everything a frog agree. Agreement beyond chance is fooled by
the opposite, a folder that does hold one class. What tells the two apart is whether the classes stay when statistics
change a little: under a small share of batch statistics (the anchor) a folder of trucks is still mostly trucks, and a
collapse has spread over all classes. So candidates pay for predicting other classes than the anchor does.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from bacs import inputs
from bacs.agreement import Figures, class_shares, observe, per_image
from bacs.ensemble import Ensemble
from bacs.inputs import Images, PerMember
from bacs.predictive import Predictive

PENALTY = 0.2
NEAR_COPIES = 0.998
"""Members that agree more often than this on any candidate are near copies: their agreement tells nothing."""


class Seen(NamedTuple):
    """Predictions of the probe, and what they show. A single network is a pair: each picture and its mirror image."""

    predictive: Predictive  # labels are those that are asked whether they agree
    figures: Figures
    shares: Tensor  # of the classes, among the labels

    @property
    def agreement_per_image(self) -> Tensor:
        return per_image(self.predictive.labels)


def look(ensemble: Ensemble, probe: Images, *, batch_size: int, seed: int, mirrored: bool) -> Seen:
    """What the ensemble shows on the probe; `mirrored` asks each member and its view of mirrored pictures."""
    options = {"batch_size": batch_size, "seed": seed}
    predictive = ensemble.predictive(probe, **options)
    if mirrored:
        other = ensemble.predictive(mirror(ensemble, probe), **options)
        both = torch.cat([predictive.labels, other.labels])
        predictive = Predictive(predictive.probabilities, predictive.expected_entropy, both)
    shares = class_shares(predictive.labels, predictive.probabilities.shape[1])
    return Seen(predictive, observe(predictive), shares)


def mirror(ensemble: Ensemble, probe: Images) -> PerMember:
    """The probe mirrored left to right: uint8 NHWC, or floats NCHW."""
    views = inputs.views_of(probe, len(ensemble))
    flipped = {id(view): _flipped(view) for view in views}
    return PerMember(flipped[id(view)] for view in views)


def _flipped(view: Images) -> Tensor:
    images = torch.cat([batch for _, batch in inputs.batches(view, 256)])
    return images.flip(-2 if images.dtype == torch.uint8 else -1)


def can_be_mirrored(probe: Images) -> bool:
    """Whether the probe is of pictures, which have a mirror image; rows of a table and tokens have none."""
    batch = inputs.first(probe[0] if isinstance(probe, PerMember) else probe)
    return batch.ndim == 4 and (batch.is_floating_point() or batch.dtype == torch.uint8)


def drift(seen: Seen, anchor: Seen) -> float:
    """KL( shares || shares of the anchor ) in nats; a class that the anchor never names counts as half an image."""
    held = anchor.shares + 0.5 / anchor.predictive.labels.shape[1]
    return float(torch.special.xlogy(seen.shares, seen.shares / (held / held.sum())).sum())


def score(seen: Seen, anchor: Seen) -> float:
    """Agreement less PENALTY times drift."""
    assert seen.figures.agreement is not None
    return seen.figures.agreement - PENALTY * drift(seen, anchor)


def gain(seen: Seen, anchor: Seen, over: Seen) -> tuple[float, float]:
    """How much better one scores than another, and the standard error of that over images."""
    differences = seen.agreement_per_image - over.agreement_per_image
    count = len(differences)
    error = float(differences.std()) / count**0.5 if count > 1 else float("inf")
    return score(seen, anchor) - score(over, anchor), max(error, 0.5 / count)
