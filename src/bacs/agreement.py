"""What can be seen of predictions without a label, and from it an estimate of how often they are right.

One function, `observe`, computes the figures from the members' predictions: agreement, confidence, entropies, classes.
Choices, streams, summaries and reports read them.

The estimate rests on one idea: to networks that were trained apart, the true label looks like the label of one more
member. So members agree with each other about as often as each is right (Jiang et al. 2022), and a member agrees with
what the others vote for about as often as that vote is right, which is one member short of the ensemble.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from bacs.predictive import Predictive, effective_classes, predictive_entropy

ROWS = 4096
"""Images whose votes are counted at a time: each takes a row of all classes, and memory must not grow with images."""


class Figures(NamedTuple):
    """Of one set of predictions. Entropies are means over images, in nats; None where one member is alone."""

    agreement: float | None  # share of images and pairs of members with one label
    vote_agreement: float | None  # share of images and members whose label is what the others vote for
    beyond_chance: float | None  # agreement above what labels of the same shares would have by chance, 1 at most
    confidence: float  # mean probability of the predicted class
    predictive_entropy: float
    expected_entropy: float
    effective_classes: float  # exp H[mean p], from 1 to the number of classes
    counted_classes: float  # the same of the members' labels, as they are counted


def observe(predictive: Predictive) -> Figures:
    """What the predictions show of themselves."""
    shares = class_shares(predictive.labels, predictive.probabilities.shape[-1])
    agreement = of_labels(predictive.labels)
    return Figures(
        agreement=agreement,
        vote_agreement=with_votes(predictive),
        beyond_chance=None if agreement is None else above_chance(agreement, shares),
        confidence=float(predictive.probabilities.max(dim=-1).values.mean()),
        predictive_entropy=float(predictive_entropy(predictive).mean()),
        expected_entropy=float(predictive.expected_entropy.mean()),
        effective_classes=effective_classes(predictive.probabilities),
        counted_classes=math.exp(float(torch.special.entr(shares).sum())),
    )


def pairwise(member_probabilities: Sequence[Float[Tensor, "batch classes"]]) -> float:
    """Mean over images and pairs of members of [argmax p_i = argmax p_j], from 0 to 1.

    Of networks that were trained apart it estimates the accuracy of one.
    """
    members = [torch.as_tensor(rows) for rows in member_probabilities]
    if any(rows.ndim != 2 for rows in members):
        raise ValueError(
            "member_probabilities must be [members, batch, classes], as Ensemble.predict_members gives them, got "
            f"{[len(members), *members[0].shape]}"
        )
    agreement = of_labels(torch.stack([rows.argmax(dim=-1) for rows in members]))
    if agreement is None:
        raise ValueError("member_probabilities must be those of two members or more: one has nobody to agree with")
    return agreement


def of_labels(labels: Int64[Tensor, "members batch"]) -> float | None:
    """The pairwise agreement of predicted labels; None for one member, which has nobody to agree with."""
    return float(per_image(labels).mean()) if len(labels) > 1 else None


def per_image(labels: Int64[Tensor, "members batch"]) -> Float[Tensor, "batch"]:
    """1 / (k (k - 1)) sum_{i != j} [l_i = l_j] of each image."""
    members = len(labels)
    same = sum((labels == own).sum(dim=0) for own in labels) - members
    return torch.as_tensor(same).double() / (members * (members - 1))


def with_votes(predictive: Predictive) -> float | None:
    """Mean over images and members of [l_i = the vote of the others]; votes that tie go to who is surer.

    Each counts 1 and so much of its confidence that those of all together stay below one vote.
    """
    labels, members = predictive.labels, len(predictive.labels)
    if members < 2:
        return None
    weights, same = 1 + predictive.confidences / (members + 1), 0
    for start in range(0, labels.shape[1], ROWS):
        own, weight = labels[:, start : start + ROWS], weights[:, start : start + ROWS]
        for place, label in enumerate(own):
            others = [other for other in range(members) if other != place]
            votes = weight.new_zeros(len(label), predictive.probabilities.shape[1])
            votes.scatter_add_(1, own[others].T, weight[others].T)
            same += int((votes.argmax(dim=1) == label).sum())
    return same / labels.numel()


def class_shares(labels: Int64[Tensor, "members batch"], classes: int) -> Float[Tensor, "classes"]:
    """How often each class is predicted, over images and members."""
    return labels.flatten().bincount(minlength=classes).double() / labels.numel()


def above_chance(agreement: float, shares: Float[Tensor, "classes"]) -> float:
    """(a - c) / (1 - c) with c = sum_y share(y)^2: 0 for labels that are drawn by their shares, 1 for equal ones."""
    chance = float(shares.square().sum())
    return (agreement - chance) / (1 - chance) if chance < 1 else 0.0


def cross_entropy(member_probabilities: Sequence[Float[Tensor, "batch classes"]]) -> float:
    """Mean over images and ordered pairs of members of -sum_y p_i(y) log p_j(y), in nats; infinite at p_j = 0 < p_i."""
    members = torch.stack([torch.as_tensor(rows).double() for rows in member_probabilities])
    count = len(members)
    if count < 2:
        raise ValueError("member_probabilities must be those of two members or more: one has nobody to agree with")
    total = torch.special.xlogy(members.sum(dim=0) - members, members).sum(dim=(0, 2))
    return float(-total.mean() / (count * (count - 1)))


class Reference(NamedTuple):
    """Agreement and accuracy on labelled source images: how far the one tells the other for these members."""

    images: int
    agreement: float
    vote_agreement: float
    member_accuracy: float
    ensemble_accuracy: float


class Estimate(NamedTuple):
    """Accuracy without labels; the interval should hold the truth in nine of ten cases."""

    members: float  # mean accuracy of the members
    ensemble: float
    low: float  # of the ensemble
    high: float
    calibrated: bool  # on labelled source images


SPREAD = {True: 0.025, False: 0.04}
"""Deviation of estimate minus truth that the number of images does not explain, with a reference or without."""


GAIN = 0.24
"""What all members together would gain over one, as a part of what one gets wrong: k of them gain (1 - 1/k) of it."""


def estimate(figures: Figures, images: int, members: int, reference: Reference | None = None) -> Estimate:
    """How often so many members and their ensemble are right, from how often they agree.

    The vote of k - 1 gains 0.24 (1 - a) / (k (k - 1)) by the last one, where a is the agreement of two. With a
    reference, the log-odds of agreement are moved instead by as much as they were off on source images. Without one,
    nobody is held to be right more often than they themselves expect: members that learnt from the same data agree
    where it is ambiguous too, and that they agree does not make them right.
    """
    if figures.agreement is None or figures.vote_agreement is None:
        raise ValueError("an estimate needs two members or more: one has nobody to agree with")
    single, ensemble = figures.agreement, figures.vote_agreement
    if reference is not None:
        single = _shift_log_odds(single, reference.agreement, reference.member_accuracy, reference.images)
        ensemble = _shift_log_odds(ensemble, reference.vote_agreement, reference.ensemble_accuracy, reference.images)
    else:
        ensemble = min(ensemble + GAIN * (1 - single) / (members * (members - 1)), figures.confidence)
        single = min(single, ensemble)
    return Estimate(
        single, ensemble, *_interval(ensemble, images, SPREAD[reference is not None]), reference is not None
    )


def estimate_others(other: Predictive, honest: Predictive, *, calibrated: bool = False) -> Estimate:
    """The accuracy of other predictions of the same images, such as those from before an adaptation, by honest ones.

    It is what honest probabilities give the labels of the others: mean_x p(y'(x) | x). Agreement among the others is
    not asked: networks that collapsed under a shift agree, and are wrong.
    """
    p = honest.probabilities
    ensemble = float(p.gather(1, other.probabilities.argmax(dim=1, keepdim=True)).mean())
    members = float(p.gather(1, other.labels.T).mean())
    return Estimate(members, ensemble, *_interval(ensemble, len(p), SPREAD[calibrated]), calibrated)


def _interval(share: float, images: int, spread: float) -> tuple[float, float]:
    """Nine of ten: what the number of images leaves open, and what it does not explain."""
    deviation = math.sqrt(share * (1 - share) / images + spread**2)
    return max(share - 1.645 * deviation, 0.0), min(share + 1.645 * deviation, 1.0)


def _shift_log_odds(agreement: float, there: float, accuracy_there: float, images: int) -> float:
    """sigmoid(logit a + logit accuracy' - logit a'), with shares half an image away from 0 and 1 at least."""

    def logit(share: float) -> float:
        held = min(max(share, 0.5 / images), 1 - 0.5 / images)
        return math.log(held / (1 - held))

    return 1 / (1 + math.exp(-(logit(agreement) + logit(accuracy_there) - logit(there))))
