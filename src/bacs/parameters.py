"""Choosing, reading and writing the parameters of a model."""

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase

from bacs.errors import unknown_name
from bacs.types import Params

NORM_LAYERS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
"""Every layer that normalises. `_NormBase` covers batch and instance norm, with or without synchronisation."""

SELECTIONS = ("all", "norm_affine")


def select(model: nn.Module, which: str) -> Params:
    """The live parameters that may change: `all`, or the scales and shifts of normalisation layers.

    Parameters with `requires_grad=False` were frozen by their owner and stay out. A tensor that two
    layers share appears once, under its first name.
    """
    if which not in SELECTIONS:
        raise unknown_name("adapts", which, SELECTIONS)
    trainable: Params = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if which == "all":
        return trainable
    affine = {id(p) for layer in model.modules() if _normalises(layer) for p in layer.parameters()}
    return {name: p for name, p in trainable.items() if id(p) in affine}


def _normalises(layer: nn.Module) -> bool:
    """Whether this is a layer of torch's, or by its name and its vectors one of the many that libraries bring along."""
    if isinstance(layer, NORM_LAYERS):
        return True
    vectors = [p.ndim == 1 for p in layer.parameters()]
    return "norm" in type(layer).__name__.lower() and not list(layer.children()) and all(vectors)


def check_model(model: nn.Module) -> None:
    """Raises TypeError for a model that cannot be copied and adapted as it is, with the way out."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    if any(isinstance(layer, torch.jit.ScriptModule) and list(layer.parameters()) for layer in model.modules()):
        raise TypeError("model must be plain Python: copies of a torch.jit module cannot learn; pass its original")
    parallel = isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel))
    if parallel or hasattr(model, "_orig_mod"):
        inside = "module" if parallel else "_orig_mod"
        raise TypeError(f"model must come without a wrapper: this is a {type(model).__name__}, pass model.{inside}")
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if nn.parameter.is_lazy(tensor):
            raise TypeError(f"model must have shapes: {name!r} has none yet; call the model on a batch once before")
    for name, p in model.named_parameters():
        if p.is_complex() or p.layout != torch.strided:
            kind = str(p.dtype if p.is_complex() else p.layout).removeprefix("torch.")
            raise TypeError(f"model must have real, dense weights, as posteriors are over these: {name!r} is {kind}")


def read(model: nn.Module) -> Params:
    """A copy of every parameter, cut from the graph: what a posterior's `init` and `update` take."""
    check_model(model)
    return {name: p.detach().clone() for name, p in model.named_parameters()}


@torch.no_grad()
def write(model: nn.Module, params: Params) -> None:
    """Copies `params` into the model in place; names and shapes must be the model's own."""
    own: Params = dict(model.named_parameters())
    check_fit("params", params, own)
    for name, value in params.items():
        own[name].copy_(value)


def check_fit(argument: str, given: Params, own: Params) -> None:
    """Raises ValueError unless `given` has the names and shapes of `own`."""
    missing = [name for name in own if name not in given]
    extra = [name for name in given if name not in own]
    if missing or extra:
        kind, name = ("lacks", missing[0]) if missing else ("has an unknown", extra[0])
        count = len(missing) + len(extra)
        raise ValueError(f"{argument} does not belong to this model: it {kind} parameter {name!r} ({count} differ)")
    for name, parameter in own.items():
        if given[name].shape != parameter.shape:
            raise ValueError(
                f"{argument} does not belong to this model: {name!r} has shape {tuple(given[name].shape)}, "
                f"the model's is {tuple(parameter.shape)}"
            )


def batch_norm_layers(model: nn.Module) -> list[_BatchNorm]:
    """The layers whose statistics depend on the batch."""
    return [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]
