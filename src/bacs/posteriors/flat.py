"""No posterior, said out loud: q(w) is the same everywhere, log q(w) = 0."""

from typing import NamedTuple

import torch
from torch import Tensor

from bacs.posteriors.gaussian import Gaussian
from bacs.types import Params


class Flat(NamedTuple):
    mean: Params  # where the weights were when the posterior was made; no force pulls them back


def init(params: Params) -> Flat:
    """The flat posterior of a model with these parameters."""
    return Flat({name: p.detach().clone() for name, p in params.items()})


def update(state: Flat, params: Params) -> Flat:
    """The flat posterior at the newest iterate."""
    return init(params)


def log_prob(state: Flat, params: Params, *, min_variance: float = 1e-12) -> Tensor:
    """0 for all parameters, up to the constant that an improper density does not have."""
    return torch.zeros((), dtype=torch.float64)


def sample(state: Flat, generator: torch.Generator, *, min_variance: float = 1e-12) -> Params:
    """Not to be had: a flat density over all of R^n cannot be sampled."""
    raise ValueError("posterior 'flat' is improper and cannot be sampled; collect another kind, see docs/posteriors.md")


def gaussian(state: Flat, *, min_variance: float = 1e-12) -> Gaussian | None:
    """None: there is no Gaussian to hold the weights."""
    return None
