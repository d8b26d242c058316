"""SWAG proper: half the diagonal covariance plus half a low-rank one from the last iterates (Maddox et al. 2019).

covariance = 1/2 diag(variance) + 1/2 D D^T / (K - 1), where the K rows of D are the last deviations w_i - mean_i from
the running mean of their time. Log densities go through a K x K problem, never a dense matrix.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from bacs.parameters import check_fit
from bacs.posteriors import gaussian as normal
from bacs.posteriors import swag_diag
from bacs.posteriors.gaussian import Gaussian
from bacs.posteriors.swag_diag import MIN_VARIANCE, SwagDiag
from bacs.types import Params


class SwagLowRank(NamedTuple):
    mean: Params  # E[w]
    sum_square_deviation: Params  # sum of (w - mean)^2, Welford
    deviations: Params  # [<= rank, *parameter], oldest first
    count: int
    rank: int
    dtype: str = "float32"  # of the parameters, and so of samples


def init(params: Params, *, rank: int = 20) -> SwagLowRank:
    """An empty collection that will keep the last `rank` deviations."""
    if rank < 2:
        raise ValueError(f"rank must be at least 2, got {rank}: a covariance needs two deviations")
    diagonal = swag_diag.init(params)
    deviations = {name: m.new_zeros((0, *m.shape)) for name, m in diagonal.mean.items()}
    return SwagLowRank(diagonal.mean, diagonal.sum_square_deviation, deviations, 0, rank, diagonal.dtype)


@torch.no_grad()
def update(state: SwagLowRank, params: Params) -> SwagLowRank:
    """The collection with one more iterate: moments as in swag_diag, and its deviation from the new mean."""
    diagonal = swag_diag.update(_diagonal(state), params)
    deviations = {}
    for name, kept in state.deviations.items():
        deviation = params[name].detach().to(kept.device, kept.dtype) - diagonal.mean[name]
        deviations[name] = torch.cat([kept, deviation[None]])[-state.rank :]
    return SwagLowRank(
        diagonal.mean, diagonal.sum_square_deviation, deviations, diagonal.count, state.rank, state.dtype
    )


def gaussian(state: SwagLowRank, *, min_variance: float = MIN_VARIANCE) -> Gaussian:
    """N(mean, 1/2 diag(max(variance, min_variance)) + F F^T), F = D^T / sqrt(2 (K - 1))."""
    mean, floored, _ = swag_diag.gaussian(_diagonal(state), min_variance=min_variance)
    kept = next(iter(state.deviations.values())).shape[0]
    scale = (2 * (kept - 1)) ** -0.5
    halved = {name: v / 2 for name, v in floored.items()}
    return Gaussian(mean, halved, {name: d * scale for name, d in state.deviations.items()})


def log_prob(state: SwagLowRank, params: Params, *, min_variance: float = MIN_VARIANCE) -> Tensor:
    """log q(w), a float64 scalar."""
    check_fit("params", params, state.mean)
    return normal.log_prob(gaussian(state, min_variance=min_variance), params)


def sample(state: SwagLowRank, generator: torch.Generator, *, min_variance: float = MIN_VARIANCE) -> Params:
    """One draw of all parameters from q, in their own type."""
    return swag_diag.cast(normal.sample(gaussian(state, min_variance=min_variance), generator), state.dtype)


def _diagonal(state: SwagLowRank) -> SwagDiag:
    return SwagDiag(state.mean, state.sum_square_deviation, state.count, state.dtype)
