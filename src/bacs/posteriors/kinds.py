"""The posteriors by name."""

from types import ModuleType
from typing import NamedTuple

from bacs.parameters import check_fit
from bacs.posteriors import fisher_diag, flat, swag_diag, swag_low_rank
from bacs.posteriors.fisher_diag import FisherDiag
from bacs.posteriors.flat import Flat
from bacs.posteriors.gaussian import Gaussian
from bacs.posteriors.swag_diag import SwagDiag
from bacs.posteriors.swag_low_rank import SwagLowRank
from bacs.types import Params

Posterior = Flat | SwagDiag | SwagLowRank | FisherDiag


class Kind(NamedTuple):
    module: ModuleType  # the verbs
    state: type  # what the verbs pass on
    of_iterates: bool = True  # whether `update` takes an iterate of SGD, as a training loop has it


KINDS: dict[str, Kind] = {
    "flat": Kind(flat, Flat),
    "swag_diag": Kind(swag_diag, SwagDiag),
    "swag_low_rank": Kind(swag_low_rank, SwagLowRank),
    "fisher_diag": Kind(fisher_diag, FisherDiag, of_iterates=False),
}


def kind_of(state: object) -> str:
    """The name of the posterior that a state belongs to."""
    for name, kind in KINDS.items():
        if isinstance(state, kind.state):
            return name
    raise TypeError(
        f"posterior must be a state of {', '.join(KINDS)} (made by init and update), got {type(state).__name__}; "
        "to adapt without one, pass bacs.posteriors.flat.init(params)"
    )


def gaussian_of(state: Posterior, *, min_variance: float) -> Gaussian | None:
    """N(mean, covariance) of any posterior state, None if it is flat."""
    return KINDS[kind_of(state)].module.gaussian(state, min_variance=min_variance)


def recentred(state: Posterior, params: Params) -> Posterior:
    """A posterior of the same width around other weights."""
    check_fit("params", params, state.mean)
    mean = {name: params[name].detach().to(m.device, m.dtype, copy=True) for name, m in state.mean.items()}
    return state._replace(mean=mean)
