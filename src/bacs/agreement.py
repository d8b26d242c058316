"""What can be seen of predictions without a label: agreement, confidence, entropies, effective classes.

One function, `observe`, computes it from the members' predictions; streams, summaries and figures read it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from bacs.predictive import Predictive, effective_classes, predictive_entropy


class Figures(NamedTuple):
    """Of one set of predictions. Entropies are means over images, in nats."""

    agreement: float | None  # share of images and pairs of members with one label; None for a single member
    confidence: float  # mean probability of the predicted class
    predictive_entropy: float
    expected_entropy: float
    effective_classes: float  # exp H[mean p], from 1 to the number of classes


def observe(predictive: Predictive) -> Figures:
    """What the predictions show of themselves."""
    return Figures(
        agreement=of_labels(predictive.labels),
        confidence=float(predictive.probabilities.max(dim=-1).values.mean()),
        predictive_entropy=float(predictive_entropy(predictive).mean()),
        expected_entropy=float(predictive.expected_entropy.mean()),
        effective_classes=effective_classes(predictive.probabilities),
    )


def pairwise(member_probabilities: Sequence[Float[Tensor, "batch classes"]]) -> float:
    """Mean over images and pairs of members of [argmax p_i = argmax p_j], from 0 to 1.

    Of networks that were trained apart it estimates the accuracy of one (Jiang et al. 2022).
    """
    agreement = of_labels(torch.stack([torch.as_tensor(rows).argmax(dim=-1) for rows in member_probabilities]))
    if agreement is None:
        raise ValueError("member_probabilities must be those of two members or more: one has nobody to agree with")
    return agreement


def of_labels(labels: Int64[Tensor, "members batch"]) -> float | None:
    """The pairwise agreement of predicted labels; None for one member, which has nobody to agree with.

    1 / (k (k - 1)) sum_{i != j} [l_i = l_j], averaged over images.
    """
    members = len(labels)
    if members < 2:
        return None
    same = (labels[:, None] == labels[None]).sum(dim=(0, 1)) - members
    return float((same.double() / (members * (members - 1))).mean())
