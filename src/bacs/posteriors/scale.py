"""How tightly a posterior holds the weights, and which posterior_weight goes with it.

Posteriors differ in scale by orders of magnitude: SWAG-D has precisions of 1e4 to 1e8, the Fisher of a network that
fits its training set perfectly little more than its prior. One beta cannot serve both. What adaptation feels is the
pull

    k = learning_rate / (1 - momentum) * beta / variance,    w <- (w + k mean) / (1 + k)  after each step,

so a weight that nothing else moves returns to its mean in about 1 / k steps.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from bacs.posteriors.kinds import Posterior, gaussian_of
from bacs.posteriors.swag_diag import MIN_VARIANCE

USUAL_PULL = 0.2
"""What the paper's settings make of SWAG-D: the median pull of beta 1e-4 on the networks of cifar10-small.toml."""


class Quantiles(NamedTuple):
    """Over all weights."""

    low: float  # 1 %
    median: float
    high: float  # 99 %


def precision_quantiles(state: Posterior, *, min_variance: float = MIN_VARIANCE) -> Quantiles:
    """Quantiles of 1 / variance, the marginal one where the covariance is of low rank."""
    return _quantiles(1 / _variances(state, min_variance))


def pull_quantiles(
    state: Posterior,
    *,
    posterior_weight: float = 1e-4,
    learning_rate: float = 1e-3,
    momentum: float = 0.9,
    min_variance: float = MIN_VARIANCE,
) -> Quantiles:
    """Quantiles of k: how hard log q pulls at a weight in each step of SGD."""
    return _quantiles(learning_rate / (1 - momentum) * posterior_weight / _variances(state, min_variance))


def posterior_weight_for(
    state: Posterior,
    pull: float = USUAL_PULL,
    *,
    learning_rate: float = 1e-3,
    momentum: float = 0.9,
    min_variance: float = MIN_VARIANCE,
) -> float:
    """The beta at which the median weight feels this pull: it would return to its mean in about 1 / pull steps."""
    for name, value in (("pull", pull), ("learning_rate", learning_rate)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} must be > 0 and finite, got {value}")
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum must be at least 0 and below 1, got {momentum}")
    return pull * (1 - momentum) / learning_rate / precision_quantiles(state, min_variance=min_variance).median


def _variances(state: Posterior, min_variance: float) -> Tensor:
    q = gaussian_of(state, min_variance=min_variance)
    if q is None:
        raise ValueError("posterior 'flat' has no scale: it holds no weight, whatever the posterior_weight")
    factor = q.factor
    return torch.cat(
        [
            (variance if factor is None else variance + factor[name].square().sum(dim=0)).flatten().double()
            for name, variance in q.variance.items()
        ]
    )


def _quantiles(values: Tensor) -> Quantiles:
    ranked = values.sort().values  # torch.quantile refuses more than 16 million values
    return Quantiles(*(ranked[round(part * (len(ranked) - 1))].item() for part in (0.01, 0.5, 0.99)))
