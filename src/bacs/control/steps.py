"""How weights are adapted where they are: objective, statistics, a rate that fits the number of steps, and the pull."""

import math
from typing import Any

from bacs.ensemble import Ensemble
from bacs.posteriors import flat
from bacs.posteriors.scale import posterior_weight_for

ENOUGH = 64
"""Images below which weights stay as they are."""

RATE, RATE_STEPS = 1e-2, 16
"""The rate that was settled, for so many steps; more steps share the same way."""

STREAM_RATE = 3e-3
"""The rate of streams, which have no end."""

PULL = 1.0
OBJECTIVE = {"objective": "information_maximisation", "objective_temperature": 5.0, "batch_weight": 1.0}


def arguments_for(ensemble: Ensemble, steps: int) -> dict[str, Any]:
    """Of bacs.adapt: the objective, a rate whose way does not grow with the steps, a pull that fits the posterior."""
    return _arguments(ensemble, RATE * min(1.0, RATE_STEPS / steps))


def stream_arguments_for(ensemble: Ensemble) -> dict[str, Any]:
    """Of a stream that adapts weights."""
    return _arguments(ensemble, STREAM_RATE)


def _arguments(ensemble: Ensemble, rate: float) -> dict[str, Any]:
    if any(isinstance(member.posterior, flat.Flat) for member in ensemble.members):
        return {"method": "tent", "learning_rate": rate, **OBJECTIVE}
    betas = [posterior_weight_for(member, PULL, learning_rate=RATE) for member in ensemble.members]
    common = math.exp(sum(map(math.log, betas)) / len(betas))
    return {"method": "bacs", "learning_rate": rate, "posterior_weight": common, **OBJECTIVE}
