"""What an ensemble predicts: the members' mean, taken here and nowhere else, and why it is unsure.

Uncertainty has two parts: what each member finds unclear (the data), and where members disagree (the model).
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor


class Predictive(NamedTuple):
    """What is kept of the predictions once the members are averaged; it hardly grows with their number."""

    probabilities: Float64[Tensor, "batch classes"]  # 1/k sum_i p(y | x, w_i)
    expected_entropy: Float64[Tensor, "batch"]  # 1/k sum_i H[p(y | x, w_i)]
    labels: Int64[Tensor, "members batch"]  # the class that each member finds most probable
    confidences: Float64[Tensor, "members batch"]  # how probable each one finds it


class Average:
    """A running mean over members: p(y|x) = 1/k sum_i p(y | x, w_i), never of logits. Members are not kept."""

    def __init__(self) -> None:
        self._probabilities: Tensor | None = None
        self._entropies: Tensor | None = None
        self._labels: list[Tensor] = []
        self._confidences: list[Tensor] = []

    def add(self, rows: Float64[Tensor, "batch classes"]) -> None:
        """Takes in the probabilities of one more member."""
        own = entropy(rows)
        self._probabilities = rows.clone() if self._probabilities is None else self._probabilities.add_(rows)
        self._entropies = own if self._entropies is None else self._entropies.add_(own)
        confidences, labels = rows.max(dim=-1)
        self._labels.append(labels)
        self._confidences.append(confidences)

    def result(self) -> Predictive:
        """The mean of the members so far."""
        if self._probabilities is None or self._entropies is None:
            raise ValueError("members must hold the probabilities of at least one member, got none")
        count = len(self._labels)
        by_member = torch.stack(self._labels), torch.stack(self._confidences)
        return Predictive(self._probabilities / count, self._entropies / count, *by_member)


def average(members: Iterable[Float64[Tensor, "batch classes"]]) -> Predictive:
    """The mean over members that are taken one after another."""
    mean = Average()
    for rows in members:
        mean.add(rows)
    return mean.result()


def join(parts: Sequence[Predictive]) -> Predictive:
    """The predictions of several batches, one after another."""
    rows, entropies, labels, confidences = zip(*parts, strict=True)
    return Predictive(torch.cat(rows), torch.cat(entropies), torch.cat(labels, dim=1), torch.cat(confidences, dim=1))


def select(predictive: Predictive, images: slice | Int64[Tensor, "images"]) -> Predictive:
    """The predictions of some of the images."""
    rows, entropies, labels, confidences = predictive
    return Predictive(rows[images], entropies[images], labels[:, images], confidences[:, images])


def entropy(probabilities: Float[Tensor, "*batch classes"]) -> Float[Tensor, "*batch"]:
    """H[p] = -sum_y p(y) log p(y) of each row, in nats; a class of probability 0 adds nothing."""
    return torch.special.entr(probabilities).sum(dim=-1)


def predictive_entropy(predictive: Predictive) -> Float64[Tensor, "batch"]:
    """H[1/k sum_i p(y | x, w_i)]: all that is uncertain about an image. Expected entropy + mutual information."""
    return entropy(predictive.probabilities)


def mutual_information(predictive: Predictive) -> Float64[Tensor, "batch"]:
    """I(y; w | x) = H[1/k sum_i p_i] - 1/k sum_i H[p_i]: how far the members disagree. 0 for one member.

    At least 0 by Jensen's inequality, and so held there against rounding.
    """
    return (predictive_entropy(predictive) - predictive.expected_entropy).clamp(min=0)


def effective_classes(probabilities: Float[Tensor, "batch classes"]) -> float:
    """exp H[1/n sum_j p(y | x_j)]: how many classes the predictions are spread over, from 1 to their number."""
    return math.exp(float(entropy(probabilities.double().mean(dim=0))))


def abstain(confidence: Float[np.ndarray, "batch"], coverage: float) -> Bool[np.ndarray, "batch"]:
    """True for the least confident images, so that the share `coverage` remains, rounded down, at least one.

    Among equals the later ones are flagged.
    """
    check_coverage(coverage)
    kept = max(1, int(np.floor(coverage * len(confidence) + 1e-9)))
    flags = np.ones(len(confidence), bool)
    flags[np.argsort(-confidence, kind="stable")[:kept]] = False
    return flags


def abstain_for(confidence: Float[np.ndarray, "batch"], accuracy: float) -> Bool[np.ndarray, "batch"]:
    """True for the least confident images, as few as let the others' mean confidence reach `accuracy`; maybe for all.

    Of honest probabilities, mean confidence is the accuracy to be expected.
    """
    check_accuracy(accuracy)
    order = np.argsort(-confidence, kind="stable")
    means = np.cumsum(confidence[order]) / np.arange(1, len(confidence) + 1)  # falls with every image more
    flags = np.ones(len(confidence), bool)
    flags[order[: int((means >= accuracy).sum())]] = False
    return flags


def confidence_threshold(
    confidence: Float[np.ndarray, "batch"], *, coverage: float, accuracy: float | None = None
) -> float:
    """The confidence below which an image is flagged to abstain, from the confidences of some images.

    By coverage, that share of them reaches it; by accuracy, those that reach it have this mean confidence. It is just
    above the highest of them if no such group exists.
    """
    flags = abstain(confidence, coverage) if accuracy is None else abstain_for(confidence, accuracy)
    kept = confidence[~flags]
    return float(kept.min()) if len(kept) else math.nextafter(float(confidence.max()), 2.0)


def check_accuracy(accuracy: float) -> None:
    if not 0 < accuracy < 1:
        raise ValueError(f"accuracy must be above 0 and below 1, got {accuracy}")


def check_coverage(coverage: float) -> None:
    if not 0 < coverage <= 1:
        raise ValueError(f"coverage must be above 0 and at most 1, got {coverage}")
