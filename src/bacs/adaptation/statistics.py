"""Which statistics the batch-norm layers use, as data. Nothing else in the model leaves evaluation mode.

They are a mixture: the share r (`batch_weight`) of the batch at hand, and the share 1 - r of a reference.

`source`       the running averages from training
`running`      averages that begin there and follow the inputs: each batch's mixture is the reference of the next
`accumulated`  averages made anew from all test inputs

r = 0 is the reference alone, r = 1 the batch alone. Dropout and stochastic depth stay off throughout.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from bacs.adaptation.mixture import Mixing
from bacs.errors import unknown_name
from bacs.parameters import batch_norm_layers

REFERENCES = ("source", "running", "accumulated")
RUNNING_WEIGHT = 0.1
"""Share of each batch in running averages, unless said otherwise: torch's own momentum of batch norm."""


def check_batch_weight(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"batch_weight must be a number from 0 (source statistics) to 1 (the batch's), got {value!r}")


@dataclass(frozen=True)
class Statistics:
    """(1 - r) reference + r batch, for means and variances alike."""

    batch_weight: float = 0.0  # r
    reference: str = "source"

    def __post_init__(self) -> None:
        check_batch_weight(self.batch_weight)
        object.__setattr__(self, "batch_weight", float(self.batch_weight))
        if self.reference not in REFERENCES:
            raise unknown_name("statistics", self.reference, REFERENCES)

    def __str__(self) -> str:
        names = {0.0: f"{self.reference} statistics", 1.0: "batch statistics"}
        return names.get(self.batch_weight, f"{self.batch_weight:g} batch and {self.reference} statistics")

    @property
    def mixes(self) -> bool:
        """Whether both parts count, or the reference moves: what torch's own layers cannot do."""
        return 0 < self.batch_weight < 1 or (self.reference == "running" and self.batch_weight > 0)

    def as_json(self) -> dict[str, Any]:
        return {"statistics": self.reference, "batch_weight": self.batch_weight}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Statistics":
        """What `as_json` wrote; files of version 0.1 have one word, where `batch` is r = 1 and all others r = 0."""
        word = values["statistics"]
        if "batch_weight" in values:
            return cls(values["batch_weight"], word)
        return BATCH if word == "batch" else cls(0.0, word)


SOURCE = Statistics(0.0)
BATCH = Statistics(1.0)


def use(model: nn.Module, statistics: Statistics) -> None:
    """Puts the model in evaluation mode with these statistics; raises before any change if it has no such ones."""
    check_reference(model, statistics)
    model.eval()
    for layer in batch_norm_layers(model):
        only_batch = statistics.batch_weight == 1 and not statistics.mixes
        # Training mode without tracking normalises by the batch and leaves every buffer alone.
        layer.training = only_batch
        layer.track_running_stats = layer.running_mean is not None and not only_batch
        _mix(layer, Mixing(layer, statistics.batch_weight) if statistics.mixes else None)


def check_reference(model: nn.Module, statistics: Statistics) -> None:
    """Raises if the statistics mix with a reference that a layer does not have."""
    for name, layer in model.named_modules():
        if statistics.mixes and isinstance(layer, _BatchNorm) and layer.running_mean is None:
            raise ValueError(
                f"batch_weight must be 0 or 1 for {type(model).__name__}, got {statistics.batch_weight:g}: its layer "
                f"{name!r} has no running statistics to mix with"
            )


@contextmanager
def using(model: nn.Module, statistics: Statistics) -> Iterator[None]:
    """These statistics for a while; afterwards every layer is in the mode that its owner left it in."""
    modes = {layer: layer.training for layer in model.modules()}
    layers = {layer: (layer.track_running_stats, _mixing(layer)) for layer in batch_norm_layers(model)}
    try:
        use(model, statistics)
        yield
    finally:
        for layer, mode in modes.items():
            layer.training = mode
        for layer, (tracked, mixing) in layers.items():
            layer.track_running_stats = tracked
            _mix(layer, mixing)


@torch.no_grad()
def keep_running(model: nn.Module) -> None:
    """Makes the mixtures of the last forward pass the reference of the next: the step of `running` statistics."""
    for layer in batch_norm_layers(model):
        mixing = _mixing(layer)
        if mixing is not None and mixing.used is not None:
            for own, used in zip((layer.running_mean, layer.running_var), mixing.used, strict=True):
                assert own is not None
                own.copy_(used)
            mixing.used = None


Mixtures = list[tuple[Tensor, Tensor]]  # mean and variance of every batch-norm layer


@torch.no_grad()
def mixtures_of(model: nn.Module, batch_weight: float, inputs: Tensor) -> tuple[Mixtures, Any]:
    """What every layer normalises these inputs by, under this share of the batch, and what the model says of them."""
    with using(model, Statistics(batch_weight, "running")):  # which keeps what it used
        said = model(inputs)
        if batch_weight == 0:
            return reference_of(model), said
        mixing = [_mixing(layer) for layer in batch_norm_layers(model)]
        return [each.used for each in mixing if each is not None and each.used is not None], said


def reference_of(model: nn.Module) -> Mixtures:
    """The running averages that every layer has."""
    found = []
    for layer in batch_norm_layers(model):
        assert layer.running_mean is not None
        assert layer.running_var is not None
        found.append((layer.running_mean, layer.running_var))
    return found


@contextmanager
def normalising_by(model: nn.Module, mixtures: Mixtures) -> Iterator[None]:
    """These means and variances for a while, whatever the batch: so that batches of one image work."""
    layers, before = batch_norm_layers(model), reference_of(model)
    with using(model, SOURCE):
        try:
            for layer, (mean, variance) in zip(layers, mixtures, strict=True):
                layer.running_mean, layer.running_var = mean, variance
            yield
        finally:
            for layer, (mean, variance) in zip(layers, before, strict=True):
                layer.running_mean, layer.running_var = mean, variance


@torch.no_grad()
def accumulate(model: nn.Module, inputs: Iterable[Tensor]) -> None:
    """Replaces the running statistics by their average over `inputs`, weighted by batch size.

    Used after the weights were averaged (SWAG's mean has no statistics of its own) and for `accumulated`
    test statistics. The variance is the mean within-batch variance, as batch norm itself defines it.
    """
    use(model, SOURCE)
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


def _mixing(layer: nn.Module) -> Mixing | None:
    """What stands in for the layer's own forward pass."""
    forward = layer.__dict__.get("forward")
    return forward if isinstance(forward, Mixing) else None


def _mix(layer: nn.Module, mixing: Mixing | None) -> None:
    if mixing is not None:
        layer.__dict__["forward"] = mixing
    elif _mixing(layer) is not None:
        del layer.__dict__["forward"]
