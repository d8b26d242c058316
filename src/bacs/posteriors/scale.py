"""How tightly a posterior holds the weights, and which posterior_weight goes with it.

Posteriors differ in scale by orders of magnitude: SWAG-D has precisions of 1e4 to 1e8, the Fisher of a network that
fits its training set perfectly little more than its prior. One beta cannot serve both. What adaptation feels is the
pull

    k = learning_rate / (1 - momentum) * beta / variance,    w <- (w + k mean) / (1 + k)  after each step,

so a weight that nothing else moves returns to its mean in about 1 / k steps. Therefore a member has a posterior_scale,
which multiplies whatever posterior_weight is set: beta = posterior_weight * posterior_scale.
"""

import math
from typing import Annotated, Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from bacs.posteriors.kinds import Posterior, gaussian_of
from bacs.posteriors.swag_diag import MIN_VARIANCE
from bacs.schema import Rule, check

USUAL_WEIGHT = 1e-4
"""The paper's beta, and the default posterior_weight."""

USUAL_PULL = 0.2
"""What the paper's settings make of SWAG-D: the median pull of beta 1e-4 on the networks of cifar10-small.toml."""

# Times any usual weight and rate, it stays well within float32, in which steps are taken.
Scale = Annotated[float, Rule("a number from 1e-30 to 1e30", lambda value: 1e-30 <= value <= 1e30)]


@runtime_checkable
class HasPosterior(Protocol):
    """A `bacs.Member`, which this module must not know."""

    @property
    def posterior(self) -> Posterior: ...

    @property
    def posterior_scale(self) -> float: ...


class Quantiles(NamedTuple):
    """Over all weights."""

    low: float  # 1 %
    median: float
    high: float  # 99 %


def precision_quantiles(state: Posterior, *, min_variance: float = MIN_VARIANCE) -> Quantiles:
    """Quantiles of 1 / variance, the marginal one where the covariance is of low rank."""
    return _quantiles(1 / _variances(state, min_variance))


def pull_quantiles(
    member: Posterior | HasPosterior,
    *,
    posterior_weight: float = USUAL_WEIGHT,
    learning_rate: float = 1e-3,
    momentum: float = 0.9,
    min_variance: float = MIN_VARIANCE,
) -> Quantiles:
    """Quantiles of k: how hard log q pulls at a weight in each step of SGD, for a member or a posterior."""
    state, scale = _state_and_scale(member)
    return _quantiles(learning_rate / (1 - momentum) * posterior_weight * scale / _variances(state, min_variance))


def posterior_weight_for(
    member: Posterior | HasPosterior,
    pull: float = USUAL_PULL,
    *,
    learning_rate: float = 1e-3,
    momentum: float = 0.9,
    min_variance: float = MIN_VARIANCE,
) -> float:
    """The posterior_weight at which the median weight feels this pull: it would return home in about 1 / pull steps.

    Of a member, it is relative to its posterior_scale, as `bacs.adapt` takes it; of a posterior alone, it is beta.
    """
    for name, value in (("pull", pull), ("learning_rate", learning_rate)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} must be > 0 and finite, got {value}")
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum must be at least 0 and below 1, got {momentum}")
    state, scale = _state_and_scale(member)
    median = precision_quantiles(state, min_variance=min_variance).median
    return _weight_for(pull, median, learning_rate, momentum) / scale


def posterior_scale_for(state: Posterior, *, min_variance: float = MIN_VARIANCE) -> float:
    """The posterior_scale at which the default posterior_weight means the usual pull for the median weight.

    Weights at the floor do not count, and 1 is for a posterior of such alone: what was frozen while iterates were
    collected says nothing of how tightly the others are held.
    """
    variances = _variances(state, min_variance)
    free = variances[variances > min_variance]
    if not len(free):
        return 1.0
    return _weight_for(USUAL_PULL, _quantiles(1 / free).median) / USUAL_WEIGHT


def _weight_for(pull: float, precision: float, learning_rate: float = 1e-3, momentum: float = 0.9) -> float:
    return pull * (1 - momentum) / learning_rate / precision


def check_scale(value: Any) -> None:
    check(value, Scale, "posterior_scale")


def _state_and_scale(member: Posterior | HasPosterior) -> tuple[Posterior, float]:
    return (member.posterior, member.posterior_scale) if isinstance(member, HasPosterior) else (member, 1.0)


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
