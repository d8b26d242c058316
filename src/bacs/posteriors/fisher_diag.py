"""The diagonal Fisher (Laplace) posterior: for a model that was trained elsewhere and left no trajectory.

    state = fisher_diag.init(params, source_size=50_000)      # the trained weights
    state = fisher_diag.update(state, squares, count)         # squared gradients of `count` more examples

mean = w, precision = prior_precision + N mean_i E_y|x_i [ (d log p(y | x_i, w) / dw)^2 ], N the size of the training
set. `bacs.pretrained.squared_gradients` makes the squares of a batch, `bacs.pretrained.with_fisher` does it all.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from bacs.parameters import check_fit
from bacs.posteriors import gaussian as normal
from bacs.posteriors.gaussian import Gaussian
from bacs.posteriors.swag_diag import MIN_VARIANCE
from bacs.types import Params


class FisherDiag(NamedTuple):
    mean: Params  # the trained weights
    sum_squares: Params  # over examples, of E_y (d log p(y | x, w) / dw)^2
    count: int  # examples in the sum
    source_size: int | None  # N; None: the examples in the sum are the whole training set
    prior_precision: float


def init(params: Params, *, prior_precision: float = 1.0, source_size: int | None = None) -> FisherDiag:
    """A posterior around these weights that has seen no example yet.

    Training with weight decay d on a mean loss is a prior of precision N d: 25 for 5e-4 on 50,000 images.
    """
    if not (prior_precision > 0 and math.isfinite(prior_precision)):
        raise ValueError(f"prior_precision must be > 0 and finite, got {prior_precision}")
    if source_size is not None and source_size < 1:
        raise ValueError(f"source_size must be at least 1, got {source_size}")
    mean = {name: p.detach().clone() for name, p in params.items()}
    zeros = {name: torch.zeros_like(m, dtype=torch.float64) for name, m in mean.items()}
    return FisherDiag(mean, zeros, 0, source_size, float(prior_precision))


@torch.no_grad()
def update(state: FisherDiag, squares: Params, count: int = 1) -> FisherDiag:
    """The posterior after `count` more examples whose squared gradients sum to `squares`."""
    check_fit("squares", squares, state.mean)
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    for name, value in squares.items():
        if not (value >= 0).all():  # also False for NaN
            raise ValueError(f"squares must be squared gradients, >= 0 throughout, got {value.min():.3g} in {name!r}")
    total = {name: old + squares[name].detach().to(old) for name, old in state.sum_squares.items()}
    return state._replace(sum_squares=total, count=state.count + count)


def precision(state: FisherDiag) -> Params:
    """prior_precision + N times the mean squared gradient, by parameter."""
    if state.count < 1:
        raise ValueError("a Fisher posterior needs at least 1 example, got 0: call update")
    scale = (state.source_size or state.count) / state.count
    return {name: state.prior_precision + scale * total for name, total in state.sum_squares.items()}


def prior_share(state: FisherDiag) -> float:
    """The part of all weights whose precision is more than half the prior's: the data say little about them."""
    values = precision(state).values()
    count = sum(value.numel() for value in values)
    return sum(int((value < 2 * state.prior_precision).sum()) for value in values) / max(count, 1)


def gaussian(state: FisherDiag, *, min_variance: float = MIN_VARIANCE) -> Gaussian:
    """N(mean, diag(max(1 / precision, min_variance)))."""
    normal.check_min_variance(min_variance)
    mean = {name: m.double() for name, m in state.mean.items()}
    return Gaussian(mean, {name: (1 / p).clamp_min(min_variance) for name, p in precision(state).items()})


def log_prob(state: FisherDiag, params: Params, *, min_variance: float = MIN_VARIANCE) -> Tensor:
    """log q(w), a float64 scalar."""
    check_fit("params", params, state.mean)
    return normal.log_prob(gaussian(state, min_variance=min_variance), params)


def sample(state: FisherDiag, generator: torch.Generator, *, min_variance: float = MIN_VARIANCE) -> Params:
    """One draw of all parameters from q, in their own type."""
    drawn = normal.sample(gaussian(state, min_variance=min_variance), generator)
    return {name: value.to(state.mean[name].dtype) for name, value in drawn.items()}
