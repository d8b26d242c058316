"""The temperature of predictions: softmax(z / T) of every member, then their mean. T > 1 makes them less sure.

Fitted by labels where there are some. Without labels, the members take turns at giving them: to networks that were
trained apart, the true label looks like the label of one more member, so the T at which each one's labels are most
probable to the others is the T of the best likelihood.

Functions here take the members' probabilities at temperature 1, [members, batch, classes].
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from bacs.agreement import Reference, estimate, observe
from bacs.predictive import average

LOWEST, HIGHEST = 0.05, 20.0
"""No temperature outside of these is ever chosen."""

FALL = 0.6
"""How the best temperature of k members falls with k: as 1 + FALL / k. An average is less sure than its members."""


def tempered(probabilities: Float[Tensor, "*batch classes"], temperature: float) -> Float64[Tensor, "*batch classes"]:
    """p(y)^(1/T) / sum_y' p(y')^(1/T): what softmax(z / T) gives, from softmax(z)."""
    return (probabilities.double().log() / temperature).softmax(dim=-1)


def fit(member_probabilities: Float[Tensor, "members batch classes"], labels: Tensor) -> float:
    """argmin_T -1/n sum_j log ( 1/k sum_i p_i(y_j | x_j; T) ): the temperature of the best NLL."""
    labels = torch.as_tensor(labels).long()

    def nll(temperature: float) -> float:
        mean = tempered(member_probabilities, temperature).mean(dim=0)
        return float(-mean.gather(1, labels[:, None]).log().mean())

    return _find_lowest(nll)


def by_agreement(
    member_probabilities: Float[Tensor, "members batch classes"], reference: Reference | None = None
) -> float:
    """The T of the best likelihood by the members' own labels, at least 1, which makes nobody surer.

    argmin_T peer_nll(T) is that of the k - 1 others; (1 + 0.6 / k) / (1 + 0.6 / (k - 1)) of it is that of all k.
    With a reference on source images it is the T at which the ensemble is as confident as it is right by estimate.
    """
    members, images, _ = member_probabilities.shape
    if members < 2:
        raise ValueError("temperature 'agreement' needs two members or more: one has nobody to agree with")
    if reference is not None:
        guess = estimate(observe(average(member_probabilities.double())), images, reference)
        return as_confident_as(guess.ensemble, member_probabilities)
    others = _find_lowest(lambda temperature: peer_nll(member_probabilities, temperature))
    return max(1.0, others * (1 + FALL / members) / (1 + FALL / (members - 1)))


def peer_nll(member_probabilities: Float[Tensor, "members batch classes"], temperature: float) -> float:
    """-1/(k n) sum_i sum_j log ( 1/(k-1) sum_{l != i} p_l(y_ij | x_j; T) ), where y_ij is member i's label of x_j.

    The NLL of the mean of all but one member, held against the labels of that one.
    """
    rows, total = tempered(member_probabilities, temperature), 0.0
    for place, own in enumerate(member_probabilities):
        others = rows[:place].sum(dim=0) + rows[place + 1 :].sum(dim=0)  # a difference would lose what is small
        said = others.gather(-1, own.argmax(dim=-1, keepdim=True)) / (len(rows) - 1)
        total -= float(said.clamp_min(torch.finfo(said.dtype).tiny).log().mean())
    return total / len(rows)


def as_confident_as(share: float, member_probabilities: Float[Tensor, "members batch classes"]) -> float:
    """The T at which the ensemble's mean confidence is this share; the nearest bound if there is none."""
    return _find_zero(lambda t: float(tempered(member_probabilities, t).mean(dim=0).max(dim=-1).values.mean()) - share)


def _find_zero(falling: Callable[[float], float]) -> float:
    """The temperature at which a falling function is zero, or the bound that comes nearest to it."""
    from scipy.optimize import brentq

    if falling(LOWEST) <= 0:
        return LOWEST
    if falling(HIGHEST) >= 0:
        return HIGHEST
    root: Any = brentq(lambda log_t: falling(math.exp(log_t)), math.log(LOWEST), math.log(HIGHEST), xtol=1e-4)
    return math.exp(root)


def _find_lowest(nll: Callable[[float], float]) -> float:
    """The temperature between the bounds at which the NLL is lowest."""
    from scipy.optimize import minimize_scalar  # here: it is large, and most who adapt never fit a temperature

    found = minimize_scalar(
        lambda log_t: nll(math.exp(log_t)),
        bounds=(math.log(LOWEST), math.log(HIGHEST)),
        method="bounded",
        options={"xatol": 1e-3},
    )
    return math.exp(float(found.x))
