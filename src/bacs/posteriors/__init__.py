"""Gaussian posteriors over the weights, one module each with the same verbs: init, update, log_prob, sample.

Each module also has `gaussian(state)`, the N(mean, covariance) that adaptation computes with (None: flat).
"""

from bacs.posteriors import fisher_diag, flat, swag_diag, swag_low_rank
from bacs.posteriors.kinds import KINDS, Posterior, gaussian_of, kind_of, recentred
from bacs.posteriors.packing import pack, rounded, unpack
from bacs.posteriors.scale import posterior_scale_for, posterior_weight_for, precision_quantiles, pull_quantiles

__all__ = [
    "KINDS",
    "Posterior",
    "fisher_diag",
    "flat",
    "gaussian_of",
    "kind_of",
    "pack",
    "posterior_scale_for",
    "posterior_weight_for",
    "precision_quantiles",
    "pull_quantiles",
    "recentred",
    "rounded",
    "swag_diag",
    "swag_low_rank",
    "unpack",
]
