"""Networks by name: those of the paper, and two families that checkpoints are published of."""

from collections.abc import Callable
from typing import Any

from torch import nn

from bacs.errors import unknown_name
from bacs.models.cifar_resnet import cifar_resnet
from bacs.models.efficientnet_lite0 import efficientnet_lite0
from bacs.models.resnet26 import resnet26
from bacs.models.resnet50v2 import resnet50v2

MODELS: dict[str, Callable[..., nn.Module]] = {
    "resnet26": resnet26,
    "resnet50v2": resnet50v2,
    "cifar_resnet": cifar_resnet,
    "efficientnet_lite0": efficientnet_lite0,
}


def build(name: str, **arguments: Any) -> nn.Module:
    """A new model by name, which remembers how it was built so that a checkpoint can build it again."""
    if name not in MODELS:
        raise unknown_name("model", name, list(MODELS))
    model = MODELS[name](**arguments)
    model._bacs_architecture = (name, arguments)  # pyrefly: ignore[bad-argument-type]
    return model


def built_from(model: nn.Module) -> tuple[str, dict[str, Any]] | None:
    """Name and arguments that `build` was called with, None for any other model."""
    return getattr(model, "_bacs_architecture", None)


def classes_of(model: nn.Module) -> int | None:
    """How many classes a model of the catalogue tells apart, by its last layer; None for others, which must be run."""
    heads = [layer for layer in model.modules() if isinstance(layer, nn.Linear)] if built_from(model) else []
    return heads[-1].out_features if heads else None


__all__ = ["MODELS", "build", "built_from", "cifar_resnet", "efficientnet_lite0", "resnet26", "resnet50v2"]
