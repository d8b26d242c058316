"""Checkpoints of a member in training: model, momentum, posterior, epoch and log, as safetensors and JSON.

The order of images and all other randomness follow from seed and epoch, so no generator has a state to keep.
"""

import shutil
from pathlib import Path
from typing import Any, TypedDict

import torch

from bacs import checkpoints, posteriors
from bacs.ensemble import untied
from bacs.errors import CheckpointError
from bacs.schema import Count
from bacs.training.loop import EpochLog, TrainState
from bacs.types import Params

Log = list[dict[str, Any]]


class TrainingManifest(TypedDict):
    epoch: Count
    posterior: dict[str, Any]  # as its kind says; `posteriors.unpack` checks it
    log: list[EpochLog]


def save(folder: Path, state: TrainState, log: Log) -> None:
    """Replaces the checkpoint by the present state, in one step: a kill leaves the old one or the new one."""
    values, tensors = posteriors.pack(state.posterior)
    group = {f"model/{name}": t for name, t in untied(state.model).items()}
    group |= {f"posterior/{name}": t for name, t in tensors.items()}
    for name, p in state.model.named_parameters():
        momentum = state.optimizer.state.get(p, {}).get("momentum_buffer")
        if momentum is not None:
            group[f"momentum/{name}"] = momentum
    manifest = {"kind": "training", "epoch": state.epoch, "posterior": values, "log": log}
    checkpoints.write(folder, manifest, {"state": group})


@torch.no_grad()
def load(folder: Path, state: TrainState) -> Log:
    """Takes a freshly started state to where the checkpoint was written; returns the log until then.

    Raises before any change if it was written for another model or posterior.
    """
    manifest, files = checkpoints.read(folder, TrainingManifest)
    own = {f"model/{name}": t for name, t in untied(state.model).items()}
    params: Params = dict(state.model.named_parameters())
    momenta = {f"momentum/{name}": p for name, p in params.items()}
    tensors = files.get("state", {})
    packed = {key.removeprefix("posterior/"): t for key, t in tensors.items() if key.startswith("posterior/")}
    try:
        for name in own.keys() | {key for key in tensors if not key.startswith("posterior/")}:
            if name not in tensors or name not in own | momenta:
                raise CheckpointError(f"{name!r} is on one side only")
            checkpoints.check_like(name, tensors[name], (own | momenta)[name])
        posterior = posteriors.unpack(manifest["posterior"], packed, params)
        if type(posterior) is not type(state.posterior):
            raise CheckpointError(f"its posterior is a {posteriors.kind_of(posterior)}")
    except CheckpointError as error:
        raise CheckpointError(f"{folder} does not fit this recipe's model: {error}; delete it to start over") from error
    for name, tensor in own.items():
        tensor.copy_(tensors[name])
    for name, p in momenta.items():
        if name in tensors:
            momentum = torch.empty_like(p, requires_grad=False).copy_(tensors[name])
            state.optimizer.state[p]["momentum_buffer"] = momentum
    state.posterior, state.epoch = posterior, manifest["epoch"]
    return manifest["log"]


def remove(folder: Path) -> None:
    """Deletes the checkpoint of a member that is finished."""
    shutil.rmtree(folder, ignore_errors=True)
