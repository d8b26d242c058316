"""A Gaussian over named parameters, N(mean, diag(variance) + F F^T): the maths that every posterior shares.

The low-rank factor F is stored by rank, `factor[name]` of shape [rank, *parameter], or is None for a
diagonal covariance. No function here forms a matrix of parameters x parameters.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from bacs.types import Params


class Gaussian(NamedTuple):
    mean: Params
    variance: Params
    factor: Params | None = None


def check_min_variance(min_variance: float) -> None:
    if not (min_variance > 0 and math.isfinite(min_variance)):
        raise ValueError(f"min_variance must be > 0 and finite, got {min_variance}")


def log_prob(q: Gaussian, params: Params) -> Tensor:
    """log q(w), a scalar that carries gradients to `params`.

    Diagonal: -1/2 sum [ (w - mean)^2 / variance + log variance + log 2 pi ]. With a factor, the matrix
    identities of Woodbury and Sylvester reduce the rest to a rank x rank problem.
    """
    deviation = {name: params[name] - mean for name, mean in q.mean.items()}
    count = sum(mean.numel() for mean in q.mean.values())
    squares = _total(d * d / q.variance[name] for name, d in deviation.items())
    log_det = _total(v.log() for v in q.variance.values())
    if q.factor is not None:
        capacitance, projected = _project(q.factor, q.variance, deviation)
        root = torch.linalg.cholesky(capacitance)
        squares = squares - torch.cholesky_solve(projected[:, None], root)[:, 0].dot(projected)
        log_det = log_det + 2 * root.diagonal().log().sum()
    return -0.5 * (squares + log_det + count * math.log(2 * math.pi))


def sample(q: Gaussian, generator: torch.Generator) -> Params:
    """One draw from q: mean + sqrt(variance) e + F z, with e and z standard normal."""
    drawn = {
        name: mean + q.variance[name].sqrt() * _normal(mean.shape, mean, generator) for name, mean in q.mean.items()
    }
    if q.factor is None:
        return drawn
    first = next(iter(q.factor.values()))
    z = _normal((first.shape[0],), first, generator)
    return {name: value + torch.tensordot(z, q.factor[name], dims=1) for name, value in drawn.items()}


def proximal(q: Gaussian, params: Params, step_length: float | Params) -> Params:
    """The implicit step on -log q from `params`: argmin_v  |v - w|^2 / (2 step_length) - log q(v).

    Diagonal: v = (w + k mean) / (1 + k) with k = step_length / variance, finite for every variance and
    exact at k = 0 and k = inf. With a factor, v - mean = d - s (S + s I)^-1 d, where d = w - mean, S is
    the covariance and s the step length. A step length by parameter (as Adam has) is allowed.
    """
    step = step_length if isinstance(step_length, dict) else dict.fromkeys(q.mean, step_length)
    if q.factor is None:
        return towards_mean(q, params, gain(q, step))
    deviation = {name: params[name] - mean for name, mean in q.mean.items()}
    widened = {name: variance + step[name] for name, variance in q.variance.items()}
    capacitance, projected = _project(q.factor, widened, deviation)
    z = torch.linalg.solve(capacitance, projected)
    moved = {}
    for name, d in deviation.items():
        solved = (d - torch.tensordot(z, q.factor[name], dims=1)) / widened[name]
        moved[name] = q.mean[name] + d - step[name] * solved
    return moved


def gain(q: Gaussian, step: Params | dict[str, float]) -> Params:
    """k / (1 + k) with k = step / variance: the part of the way to the mean that a proximal step goes."""
    return {name: step[name] / (variance + step[name]) for name, variance in q.variance.items()}


def towards_mean(q: Gaussian, params: Params, share: Params) -> Params:
    """The parameters, moved by their share of the way to the mean."""
    return {name: torch.lerp(params[name], mean, share[name]) for name, mean in q.mean.items()}


def temper(q: Gaussian, scale: float) -> Gaussian:
    """The Gaussian proportional to q^scale, N(mean, covariance / scale): its log density is `scale` times as steep."""
    variance = {name: v / scale for name, v in q.variance.items()}
    root = math.sqrt(scale)
    return Gaussian(q.mean, variance, None if q.factor is None else {name: f / root for name, f in q.factor.items()})


def marginal(q: Gaussian, params: Params) -> Gaussian:
    """The marginal of q over `params`, in their order and place: what adaptation computes with.

    A diagonal takes the parameters' type. A factor stays in float64: its rank x rank problem sums over all
    weights and is too ill-conditioned for less.
    """

    def like(values: Params) -> Params:
        if q.factor is not None:
            return {name: values[name].to(p.device) for name, p in params.items()}
        # In the order that the parameters have in memory: across two orders, arithmetic takes three times as long.
        return {name: torch.empty_like(p, requires_grad=False).copy_(values[name]) for name, p in params.items()}

    return Gaussian(like(q.mean), like(q.variance), None if q.factor is None else like(q.factor))


def _project(factor: Params, variance: Params, deviation: Params) -> tuple[Tensor, Tensor]:
    """I + F^T V^-1 F and F^T V^-1 d, summed over parameters."""
    first = next(iter(factor.values()))
    capacitance = torch.eye(first.shape[0], dtype=first.dtype, device=first.device)
    projected = torch.zeros(first.shape[0], dtype=first.dtype, device=first.device)
    for name, f in factor.items():
        rows = f.flatten(start_dim=1)
        weighted = rows / variance[name].flatten()
        capacitance = capacitance + weighted @ rows.T
        projected = projected + weighted @ deviation[name].flatten()
    return capacitance, projected


def _total(terms) -> Tensor:
    """The sum of all elements of all terms, in float64: log-densities of millions of weights are huge sums."""
    return torch.stack([term.sum(dtype=torch.float64) for term in terms]).sum()


def _normal(shape, like: Tensor, generator: torch.Generator) -> Tensor:
    # Drawn where the generator lives, so that one seed gives one sample on every device.
    return torch.randn(shape, generator=generator, device=generator.device, dtype=like.dtype).to(like.device)
