"""Gaussian posteriors over the weights, one module each with the same verbs: init, update, log_prob, sample.

Each module also has `gaussian(state)`, the N(mean, covariance) that adaptation computes with (None: flat).
"""

from types import ModuleType
from typing import NamedTuple

from torch import Tensor

from bacs.errors import unknown_name
from bacs.posteriors import flat, swag_diag, swag_low_rank
from bacs.posteriors.flat import Flat
from bacs.posteriors.gaussian import Gaussian
from bacs.posteriors.swag_diag import SwagDiag
from bacs.posteriors.swag_low_rank import SwagLowRank

Posterior = Flat | SwagDiag | SwagLowRank


class Kind(NamedTuple):
    module: ModuleType  # the verbs
    state: type  # what the verbs pass on


KINDS: dict[str, Kind] = {
    "flat": Kind(flat, Flat),
    "swag_diag": Kind(swag_diag, SwagDiag),
    "swag_low_rank": Kind(swag_low_rank, SwagLowRank),
}


def kind_of(state: Posterior) -> str:
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


def pack(state: Posterior) -> tuple[dict[str, object], dict[str, Tensor]]:
    """A state as JSON values and named tensors, for a checkpoint."""
    values: dict[str, object] = {"kind": kind_of(state)}
    tensors: dict[str, Tensor] = {}
    for field, value in state._asdict().items():
        if isinstance(value, dict):
            tensors |= {f"{field}/{name}": tensor for name, tensor in value.items()}
        else:
            values[field] = value
    return values, tensors


def unpack(values: dict[str, object], tensors: dict[str, Tensor]) -> Posterior:
    """The state that `pack` wrote."""
    name = values["kind"]
    if name not in KINDS:
        raise unknown_name("posterior kind", name, list(KINDS))
    fields: dict[str, object] = {key: value for key, value in values.items() if key != "kind"}
    for key, tensor in tensors.items():
        field, parameter = key.split("/", 1)
        group = fields.setdefault(field, {})
        assert isinstance(group, dict)
        group[parameter] = tensor
    return KINDS[str(name)].state(**fields)


__all__ = [
    "KINDS",
    "Posterior",
    "flat",
    "gaussian_of",
    "kind_of",
    "pack",
    "swag_diag",
    "swag_low_rank",
    "unpack",
]
