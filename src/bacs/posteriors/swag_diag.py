"""SWAG-D: a diagonal Gaussian from the iterates of SGD (Maddox et al. 2019), the posterior of the paper.

    state = swag_diag.init(params)            # before training
    state = swag_diag.update(state, params)   # after each epoch of the second half

mean = E[w], variance = E[w^2] - E[w]^2 over the iterates, kept as Welford's running sums in float64. The
textbook difference of moments in float32 loses the variance of about a third of the weights to rounding.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from bacs.parameters import check_fit
from bacs.posteriors import gaussian as normal
from bacs.posteriors.gaussian import Gaussian
from bacs.types import FLOATS, Params

MIN_VARIANCE = 1e-12
"""Default floor of the variances: a deviation of 1e-6, about the rounding of a float32 weight near 10."""


class SwagDiag(NamedTuple):
    mean: Params  # E[w]
    sum_square_deviation: Params  # sum of (w - mean)^2, Welford
    count: int
    dtype: str = "float32"  # of the parameters, and so of samples


def init(params: Params) -> SwagDiag:
    """An empty collection for parameters of these names and shapes; `params` itself is not counted."""
    mean = {name: p.detach().to(torch.float64, copy=True) for name, p in params.items()}
    dtype = str(next(iter(params.values())).dtype).removeprefix("torch.") if params else "float32"
    return SwagDiag(mean, {name: torch.zeros_like(m) for name, m in mean.items()}, 0, dtype)


@torch.no_grad()
def update(state: SwagDiag, params: Params) -> SwagDiag:
    """The collection with one more iterate.

    mean' = mean + (w - mean) / n;   sum' = sum + (w - mean) (w - mean')
    """
    check_fit("params", params, state.mean)
    count = state.count + 1
    mean, total = {}, {}
    for name, old in state.mean.items():
        value = params[name].detach().to(old.device, old.dtype)
        mean[name] = old + (value - old) / count
        total[name] = state.sum_square_deviation[name] + (value - old) * (value - mean[name])
    return SwagDiag(mean, total, count, state.dtype)


def variance(state: SwagDiag) -> Params:
    """Variance of the iterates by parameter, before any floor."""
    if state.count < 2:
        raise ValueError(f"a posterior needs at least 2 iterates for a variance, got {state.count}: call update more")
    return {name: total / state.count for name, total in state.sum_square_deviation.items()}


def gaussian(state: SwagDiag, *, min_variance: float = MIN_VARIANCE) -> Gaussian:
    """N(mean, diag(max(variance, min_variance)))."""
    normal.check_min_variance(min_variance)
    floored = {name: v.clamp_min(min_variance) for name, v in variance(state).items()}
    return Gaussian(state.mean, floored)


def log_prob(state: SwagDiag, params: Params, *, min_variance: float = MIN_VARIANCE) -> Tensor:
    """log q(w), a float64 scalar."""
    check_fit("params", params, state.mean)
    return normal.log_prob(gaussian(state, min_variance=min_variance), params)


def sample(state: SwagDiag, generator: torch.Generator, *, min_variance: float = MIN_VARIANCE) -> Params:
    """One draw of all parameters from q, in their own type."""
    return cast(normal.sample(gaussian(state, min_variance=min_variance), generator), state.dtype)


def cast(params: Params, dtype: str) -> Params:
    return {name: value.to(FLOATS[dtype]) for name, value in params.items()}
