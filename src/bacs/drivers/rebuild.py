"""A saved model built again: by the checkpoint's word if it is one of bacs's own, else by the caller's, then filled.

A file may ask for a network of any size. So a model of the catalogue is first built without memory for its weights, and
gets some only when every tensor of the file was found to fit.
"""

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from bacs import checkpoints
from bacs.architecture import Architecture, ModelSource, build
from bacs.ensemble import untied
from bacs.errors import CheckpointError


def rebuild(architecture: Architecture, source: ModelSource | None, weights: dict[str, Tensor]) -> nn.Module:
    """The model with its saved weights, in evaluation mode."""
    if source is None:
        _check_sizes(architecture, weights)
    try:
        with torch.device("meta") if source is None else nullcontext():
            model = build(architecture, source)
    except (TypeError, ValueError, RuntimeError) as error:
        if source is not None and not isinstance(error, TypeError):  # the caller's own code, or what it was called
            raise
        raise CheckpointError(
            f"{architecture.name} cannot be built from the checkpoint's arguments: {error}; "
            "pass a function that builds it"
        ) from error
    _check_fit(model, weights, architecture.name)
    if source is None:
        model.to_empty(device="cpu")  # a model of the catalogue has no buffers beside those of its state
    _fill(model, weights)
    return model.eval()


def _check_sizes(architecture: Architecture, weights: dict[str, Tensor]) -> None:
    """Raises for an argument larger than any side of a tensor and than their number: so many layers are not there."""
    largest = max([len(weights), *(side for tensor in weights.values() for side in tensor.shape)])

    def too_large(value: Any) -> bool:
        return isinstance(value, (int, float)) and not -largest <= value <= largest

    for name, value in architecture.arguments.items():
        if too_large(value) or isinstance(value, (dict, list)):
            raise CheckpointError(
                f"{architecture.name} cannot be built from the checkpoint's arguments: its tensors are of no network "
                f"with {name}={str(value)[:40]}"
            )


def _check_fit(model: nn.Module, weights: dict[str, Tensor], name: str) -> None:
    """Raises unless the saved weights are those of this model by name and shape, and numbers that it can have."""
    own = untied(model)
    if own.keys() != weights.keys():
        differing = sorted(own.keys() ^ weights.keys())
        raise CheckpointError(f"the checkpoint does not fit {name}: {differing[0]!r} is on one side only")
    for key, tensor in weights.items():
        try:
            checkpoints.check_like(key, tensor, own[key])
        except CheckpointError as error:
            raise CheckpointError(f"the checkpoint does not fit {name}: {error}") from error


@torch.no_grad()
def _fill(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Puts saved weights into a model, in the type they were saved in."""
    for key, tensor in untied(model).items():
        tensor.data = weights[key].clone()  # and not a copy into it: types may differ from layer to layer
