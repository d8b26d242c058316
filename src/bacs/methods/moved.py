"""How far adaptation moved a member, measured by its own posterior."""

import math

from bacs import posteriors
from bacs.ensemble import Member
from bacs.parameters import select


def posterior_deviations(member: Member, adapts: str | None, *, min_variance: float = 1e-12) -> float | None:
    """sqrt( 1/n sum_j ((w_j - mean_j) / sigma_j)^2 ) over the n weights that a method adapts.

    Draws from the posterior lie at about 1. sigma_j^2 is the marginal variance of a weight, variance + sum_r F_rj^2 for
    a posterior with a factor F. None if nothing adapts, or if the posterior is flat and has no deviation.
    """
    q = posteriors.gaussian_of(member.posterior, min_variance=min_variance)
    if q is None or adapts is None:
        return None
    total, count = 0.0, 0
    for name, weights in select(member.model, adapts).items():
        mean, variance = q.mean[name].double(), q.variance[name].double()
        if q.factor is not None:
            variance = variance + q.factor[name].double().square().sum(dim=0)
        deviation = weights.detach().to(mean.device).double() - mean
        total += float((deviation.square() / variance).sum())
        count += weights.numel()
    return math.sqrt(total / count)
