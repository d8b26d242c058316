"""How to build a model again: a name that bacs knows, or the import path of a user's class."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import nn

from bacs import models
from bacs.errors import CheckpointError


@dataclass(frozen=True)
class Architecture:
    """A catalogue name (`resnet26`) or an import path (`package.module:Class`), with the arguments to call it with."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            json.dumps(self.arguments)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"arguments of an Architecture must be JSON values ({error}); for anything else, name a function of "
                "your own that builds the model without them"
            ) from error

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "arguments": self.arguments}


ModelSource = str | Callable[..., nn.Module] | nn.Module
"""What a caller may pass for a class that bacs does not know: an import path, the class, or a function."""


def architecture_of(model: nn.Module) -> Architecture:
    """The architecture of a model: as built by `bacs.models.build`, else its import path without arguments."""
    built = models.built_from(model)
    if built is not None:
        return Architecture(*built)
    return Architecture(f"{type(model).__module__}:{type(model).__qualname__}")


def build(architecture: Architecture, source: ModelSource | None) -> nn.Module:
    """A new model. A file's own word is enough for bacs's catalogue only; anything else the caller must name.

    Importing a module that a stranger's checkpoint names would run code.
    """
    if source is None:
        if architecture.name in models.MODELS:
            return _call_factory(partial(models.build, architecture.name), architecture)
        raise CheckpointError(
            f"the checkpoint holds a {architecture.name}, which bacs does not know; if you trust it, pass the class "
            f"or its import path: bacs.load(path, model={architecture.name!r})"
        )
    factory = import_object(source) if isinstance(source, str) else source
    if isinstance(factory, nn.Module):
        raise TypeError("model must build a new model for each member: pass its class or a function, not an instance")
    with torch.random.fork_rng(devices=[]):  # the weights it draws are overwritten: nobody's random numbers change
        model = _call_factory(factory, architecture)
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must build a torch.nn.Module, got {type(model).__name__}")
    return model


def _call_factory(factory: Callable[..., nn.Module], architecture: Architecture) -> nn.Module:
    try:
        return factory(**architecture.arguments)
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"{architecture.name} cannot be built from the checkpoint's arguments: {error}; "
            "pass a function that builds it"
        ) from error


def import_object(path: str) -> Callable[..., nn.Module]:
    """The class or function at `package.module:name`."""
    module, colon, name = path.partition(":")
    if not colon:
        raise ValueError(f"model must be an import path 'package.module:Class', got {path!r}")
    if os.getcwd() not in sys.path:  # `bacs`, unlike `python -m bacs`, would not look into the folder it is called in
        sys.path.append(os.getcwd())
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"model {path!r} cannot be imported: {error}") from error
    except Exception as error:  # of the user's own module, which may raise anything
        raise ValueError(f"model {path!r} cannot be imported: {type(error).__name__}: {error}") from error
    return found
