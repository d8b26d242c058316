"""Which statistics the batch-norm layers use. Nothing else in the model leaves evaluation mode.

`source`       the running averages from training
`batch`        mean and variance of the batch at hand; the running averages are neither read nor changed
`accumulated`  running averages made anew from the test inputs, then used like source statistics

Dropout and stochastic depth stay off under all three: only batch-norm layers are switched to training mode.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from bacs.errors import unknown_name
from bacs.parameters import batch_norm_layers

STATISTICS = ("source", "batch", "accumulated")


def use(model: nn.Module, statistics: str) -> None:
    """Puts the model in evaluation mode with these statistics."""
    if statistics not in STATISTICS:
        raise unknown_name("statistics", statistics, STATISTICS)
    model.eval()
    for layer in batch_norm_layers(model):
        # Training mode without tracking normalises by the batch and leaves every buffer alone.
        layer.training = statistics == "batch"
        layer.track_running_stats = layer.running_mean is not None and statistics != "batch"


@contextmanager
def using(model: nn.Module, statistics: str) -> Iterator[None]:
    """These statistics for a while; afterwards every layer is in the mode that its owner left it in."""
    modes = {layer: layer.training for layer in model.modules()}
    tracking = {layer: layer.track_running_stats for layer in batch_norm_layers(model)}
    try:
        use(model, statistics)
        yield
    finally:
        for layer, mode in modes.items():
            layer.training = mode
        for layer, tracked in tracking.items():
            layer.track_running_stats = tracked


@torch.no_grad()
def accumulate(model: nn.Module, inputs: Iterable[Tensor]) -> None:
    """Replaces the running statistics by their average over `inputs`, weighted by batch size.

    Used after the weights were averaged (SWAG's mean has no statistics of its own) and for `accumulated`
    test statistics. The variance is the mean within-batch variance, as batch norm itself defines it.
    """
    model.eval()
    layers = [layer for layer in batch_norm_layers(model) if layer.running_mean is not None]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    seen = 0
    for layer in layers:
        layer.reset_running_stats()
        layer.training = layer.track_running_stats = True
    try:
        for batch in inputs:
            seen += len(batch)
            for layer in layers:
                layer.momentum = len(batch) / seen
            model(batch)
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
            layer.training = False
