"""A checkpoint in any form as an ensemble: a saved folder, or a plain weight file and the model it belongs to."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bacs.architecture import Architecture, build
from bacs.drivers.load import load
from bacs.ensemble import Ensemble
from bacs.errors import CheckpointError, unknown_name
from bacs.models import MODELS
from bacs.preprocessing import Preprocessing
from bacs.pretrained.weights import open_weights


def open_checkpoint(
    path: Path,
    *,
    model: str | None = None,
    arguments: Sequence[str] = (),
    preprocessing: Preprocessing | None = None,
) -> Ensemble:
    """The ensemble in a folder that `save` wrote, or one member of a weight file, which has no posterior yet.

    A weight file says nothing of its model: `model` is a name in `bacs.models` or an import path, `arguments` are
    like "depth=20", their values read as JSON where that is possible.
    """
    if path.is_dir() or not path.suffix:
        if arguments or preprocessing:
            raise ValueError(f"model_arguments, mean and std belong to weight files; {path} is a saved ensemble")
        found = load(path, model=model)
        if not isinstance(found, Ensemble):
            raise CheckpointError(f"{path} holds a stream; a posterior is made for a saved ensemble")
        return found
    if model is None:
        raise ValueError(f"model must name what the weights in {path} belong to, such as resnet26 or package:Net")
    if model not in MODELS and ":" not in model:
        raise unknown_name("model", model, [*MODELS, "an import path package.module:Class"])
    architecture = Architecture(model, parse_arguments(arguments))
    try:
        built = build(architecture, None if model in MODELS else model)
    except CheckpointError as error:
        raise ValueError(f"model_arguments do not fit {model}: {error.__cause__}") from error
    return Ensemble([replace(open_weights(path, built, preprocessing), architecture=architecture)])


def parse_arguments(arguments: Sequence[str]) -> dict[str, object]:
    """{"depth": 20} of ["depth=20"]."""
    values: dict[str, object] = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals or not name:
            raise ValueError(f"model_arguments must be like depth=20, got {argument!r}")
        try:
            values[name] = json.loads(text)
        except json.JSONDecodeError:
            values[name] = text
    return values
