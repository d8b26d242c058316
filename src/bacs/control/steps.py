"""How weights are adapted where they are: objective, statistics, a rate that fits the number of steps, and the pull."""

import math
from typing import Any

from bacs.ensemble import Ensemble
from bacs.posteriors import flat
from bacs.posteriors.scale import posterior_weight_for

ENOUGH = 64
"""Images below which weights stay as they are."""

WAY = 0.16
"""Rate times steps. Small steps follow the gradient flow, so that where they end depends on the way alone, however many
images it is divided among; and the posterior's pull, which is proportional to the rate, goes along."""

LARGEST_RATE = 0.08
"""Of the few steps that few images make: two of them, on 128 images, were the shortest way that was tried."""

LARGEST_RATE_WITHOUT = 1e-2
"""Of members whose posteriors are flat: nothing holds large steps then."""

PULL_RATE = 1e-2
"""The rate at which the pull on the median weight is PULL."""

STREAM_RATE = 3e-3
"""The rate of streams, which have no end."""

PULL = 1.0
OBJECTIVE = {"objective": "information_maximisation", "objective_temperature": 5.0, "batch_weight": 1.0}


def arguments_for(ensemble: Ensemble, steps: int) -> dict[str, Any]:
    """Of bacs.adapt: the objective, a rate whose way does not depend on the steps, a pull that fits the posterior.

    Predictions go by the statistics of all images: those of one batch are noise around them.
    """
    return _arguments(ensemble, WAY / steps) | {"statistics": "accumulated"}


def stream_arguments_for(ensemble: Ensemble) -> dict[str, Any]:
    """Of a stream that adapts weights."""
    return _arguments(ensemble, STREAM_RATE)


def share_of_way_home(rate: float) -> float:
    """What each step of a stream takes back: so it remembers WAY / rate steps, in which it goes WAY, and no more."""
    return min(rate / WAY, 1.0)


def _arguments(ensemble: Ensemble, rate: float) -> dict[str, Any]:
    if any(isinstance(member.posterior, flat.Flat) for member in ensemble.members):
        return {"method": "tent", "learning_rate": min(rate, LARGEST_RATE_WITHOUT), **OBJECTIVE}
    betas = [posterior_weight_for(member, PULL, learning_rate=PULL_RATE) for member in ensemble.members]
    common = math.exp(sum(map(math.log, betas)) / len(betas))
    return {"method": "bacs", "learning_rate": min(rate, LARGEST_RATE), "posterior_weight": common, **OBJECTIVE}
