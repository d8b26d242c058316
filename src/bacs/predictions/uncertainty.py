"""How sure an ensemble is of each image, and why it is not: noise in the data, or members that disagree."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor


class Predictive(NamedTuple):
    """What is known of the predictions once the members are averaged; memory does not grow with their number."""

    probabilities: Float64[Tensor, "batch classes"]  # 1/k sum_i p(y | x, w_i)
    expected_entropy: Float64[Tensor, "batch"]  # 1/k sum_i H[p(y | x, w_i)]


def accumulate(so_far: Predictive | None, member: Float64[Tensor, "batch classes"], *, members: int) -> Predictive:
    """The averages with one more member of `members` in them."""
    own = Predictive(member / members, entropy(member) / members)
    if so_far is None:
        return own
    return Predictive(so_far.probabilities + own.probabilities, so_far.expected_entropy + own.expected_entropy)


def averaged(members: Sequence[Float64[Tensor, "batch classes"]]) -> Predictive:
    """The averages over members whose probabilities are all at hand."""
    stacked = torch.stack(list(members))
    return Predictive(stacked.mean(dim=0), entropy(stacked).mean(dim=0))


def joined(parts: Sequence[Predictive]) -> Predictive:
    """The predictions of several batches, one after another."""
    return Predictive(*(torch.cat(columns) for columns in zip(*parts, strict=True)))


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


def check_coverage(coverage: float) -> None:
    if not 0 < coverage <= 1:
        raise ValueError(f"coverage must be above 0 and at most 1, got {coverage}")
