"""Posterior states as JSON values and tensors, for checkpoints."""

from typing import Any

import torch
from torch import Tensor

from bacs.errors import unknown_name
from bacs.posteriors.kinds import KINDS, Posterior, kind_of
from bacs.types import Params


def rounded(state: Posterior) -> Posterior:
    """The state with every number rounded to float32, in the type it had: what a compact checkpoint keeps exactly.

    The collection itself needs float64; once it is done, a relative 6e-8 of a variance changes nothing.
    """
    fields: dict[str, Any] = state._asdict()
    for field, value in fields.items():
        if isinstance(value, dict):
            fields[field] = {name: tensor.float().to(tensor.dtype) for name, tensor in value.items()}
    return type(state)(**fields)


def pack(state: Posterior, params: Params | None = None) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A state as JSON values and named tensors, for a checkpoint. Nothing is lost.

    What float32 can hold is stored as float32, and a mean that equals `params`, which are stored anyway, is left out.
    """
    values: dict[str, Any] = {"kind": kind_of(state)}
    tensors: dict[str, Tensor] = {}
    for field, value in state._asdict().items():
        if not isinstance(value, dict):
            values[field] = value
        elif field == "mean" and params is not None and _equal(value, params):
            values["mean_of_model"] = str(next(iter(value.values())).dtype).removeprefix("torch.")
        else:
            narrow = all(t.dtype == torch.float64 and torch.equal(t.float().double(), t) for t in value.values())
            tensors |= {f"{field}/{name}": t.float() if narrow else t for name, t in value.items()}
            if narrow:
                values["float64"] = [*values.get("float64", []), field]
    return values, tensors


def unpack(values: dict[str, Any], tensors: dict[str, Tensor], params: Params | None = None) -> Posterior:
    """The state that `pack` wrote, with the same `params`."""
    name = values["kind"]
    if name not in KINDS:
        raise unknown_name("posterior kind", name, list(KINDS))
    fields: dict[str, Any] = {key: value for key, value in values.items() if key not in _STORAGE_KEYS}
    for key, tensor in tensors.items():
        field, parameter = key.split("/", 1)
        fields.setdefault(field, {})[parameter] = tensor.double() if field in values.get("float64", []) else tensor
    if "mean_of_model" in values:
        dtype = getattr(torch, str(values["mean_of_model"]))
        fields["mean"] = {parameter: p.detach().to(dtype, copy=True) for parameter, p in (params or {}).items()}
    return KINDS[str(name)].state(**fields)


_STORAGE_KEYS = ("kind", "float64", "mean_of_model")


def _equal(mean: Params, params: Params) -> bool:
    """Whether a mean is, number for number, what the parameters are."""
    same_names = bool(mean) and mean.keys() == params.keys()
    return same_names and all(torch.equal(m, params[name].detach().to(m.device, m.dtype)) for name, m in mean.items())
