"""The temperature of predictions: softmax(z / T) of every member, then their mean. T > 1 makes them less sure.

Fitted by labels where there are some. Without labels, T is chosen so that the ensemble is as confident as it is right
by estimate: members that were trained apart agree about as often as they are right.

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


def tempered(probabilities: Float[Tensor, "*batch classes"], temperature: float) -> Float64[Tensor, "*batch classes"]:
    """p(y)^(1/T) / sum_y' p(y')^(1/T): what softmax(z / T) gives, from softmax(z)."""
    return (probabilities.double().log() / temperature).softmax(dim=-1)


def fit(member_probabilities: Float[Tensor, "members batch classes"], labels: Tensor) -> float:
    """argmin_T -1/n sum_j log ( 1/k sum_i p_i(y_j | x_j; T) ): the temperature of the best NLL."""
    from scipy.optimize import minimize_scalar  # here: it is large, and most who adapt never fit a temperature

    labels = torch.as_tensor(labels).long()

    def nll(temperature: float) -> float:
        mean = tempered(member_probabilities, temperature).mean(dim=0)
        return float(-mean.gather(1, labels[:, None]).log().mean())

    found = minimize_scalar(
        lambda log_t: nll(math.exp(log_t)), bounds=(math.log(LOWEST), math.log(HIGHEST)), method="bounded"
    )
    return math.exp(float(found.x))


def by_agreement(
    member_probabilities: Float[Tensor, "members batch classes"], reference: Reference | None = None
) -> float:
    """The T at which the ensemble is as confident as its members' agreement says that it is right."""
    members, images, _ = member_probabilities.shape
    if members < 2:
        raise ValueError("temperature 'agreement' needs two members or more: one has nobody to agree with")
    guess = estimate(observe(average(member_probabilities.double())), images, reference)
    return as_confident_as(guess.ensemble, member_probabilities)


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
