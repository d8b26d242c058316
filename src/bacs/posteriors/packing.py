"""Posterior states as JSON values and tensors, for checkpoints."""

from typing import Any, get_type_hints

import torch
from torch import Tensor

from bacs.errors import CheckpointError
from bacs.posteriors.kinds import KINDS, Posterior, kind_of
from bacs.schema import Count, Positive, check
from bacs.types import FLOATS, Params

ALLOWED = {"count": Count, "rank": Count, "prior_precision": Positive}
"""What the numbers of a state may be, where their type alone says too little."""

_STORAGE_KEYS = ("kind", "float64", "mean_of_model")


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


def unpack(values: dict[str, Any], tensors: dict[str, Tensor], params: Params) -> Posterior:
    """The state that `pack` wrote, for a model with these `params`; raises CheckpointError for anything else."""
    fields = _check_numbers(values)
    for key, tensor in tensors.items():
        field, _, parameter = key.partition("/")
        fields.setdefault(field, {})[parameter] = tensor.double() if field in values.get("float64", []) else tensor
    if "mean_of_model" in values:
        dtype = FLOATS[values["mean_of_model"]]
        fields["mean"] = {parameter: p.detach().to(dtype, copy=True) for parameter, p in params.items()}
    state = KINDS[values["kind"]].state
    for field, hint in get_type_hints(state).items():
        if hint == Params:
            kept = (min(fields["count"], fields["rank"]),) if field == "deviations" else ()
            _check_tensors(field, fields.get(field, {}), params, kept)
            # In the order of the parameters: that of a file is arbitrary, and sums over all weights would feel it.
            fields[field] = {parameter: fields[field][parameter] for parameter in params}
    if unknown := [field for field in fields if field not in state._fields]:
        raise CheckpointError(f"the posterior has {unknown[0]!r}, which a {values['kind']} has not")
    return state(**fields)


def _check_numbers(values: dict[str, Any]) -> dict[str, Any]:
    """What a state has beside tensors, each value checked; the words that say how tensors are stored, too."""
    _check(values, dict[str, Any], "posterior")
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise CheckpointError(f"posterior.kind must be one of {', '.join(KINDS)}, got {kind!r}")
    _check(values.get("float64", []), list[str], "posterior.float64")
    for name in ("mean_of_model", "dtype"):
        if name in values and (not isinstance(values[name], str) or values[name] not in FLOATS):
            raise CheckpointError(f"posterior.{name} must be one of {', '.join(FLOATS)}, got {values[name]!r}")
    hints = {field: hint for field, hint in get_type_hints(KINDS[kind].state).items() if hint != Params}
    for field, hint in hints.items():
        if field not in values and field not in KINDS[kind].state._field_defaults:
            raise CheckpointError(f"the posterior lacks {field!r}")
        if field in values:
            _check(values[field], ALLOWED.get(field, hint), f"posterior.{field}")
    if unknown := [key for key in values if key not in hints and key not in _STORAGE_KEYS]:
        raise CheckpointError(f"the posterior has {unknown[0]!r}, which a {kind} has not")
    return {field: values[field] for field in hints if field in values}


def _check(value: Any, kind: Any, where: str) -> None:
    check(value, kind, where, error=CheckpointError, saying="the posterior cannot be used: ")


def _check_tensors(field: str, given: Params, params: Params, depth: tuple[int, ...]) -> None:
    """Raises unless there are finite numbers for each parameter, `depth` times its shape."""
    if given.keys() != params.keys():
        differing = sorted(given.keys() ^ params.keys())
        raise CheckpointError(f"the posterior's {field} does not fit the model: {differing[0]!r} is on one side only")
    for name, tensor in given.items():
        shape = (*depth, *params[name].shape)
        if tensor.shape != shape or tensor.dtype not in FLOATS.values():
            raise CheckpointError(
                f"the posterior's {field} does not fit the model: {name!r} is {tensor.dtype} {list(tensor.shape)}, "
                f"not floats {list(shape)}"
            )
        if not tensor.isfinite().all():
            raise CheckpointError(f"the posterior's {field} must be finite, {name!r} is not")


def _equal(mean: Params, params: Params) -> bool:
    """Whether a mean is, number for number, what the parameters are."""
    same_names = bool(mean) and mean.keys() == params.keys()
    return same_names and all(torch.equal(m, params[name].detach().to(m.device, m.dtype)) for name, m in mean.items())
