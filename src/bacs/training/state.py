"""Checkpoints of a member in training: model, momentum, posterior, epoch and log, as safetensors and JSON.

The order of images and all other randomness follow from seed and epoch, so no generator has a state to keep.
"""

import shutil
from pathlib import Path
from typing import Any

import torch

from bacs import checkpoints, posteriors
from bacs.ensemble import untied
from bacs.errors import CheckpointError
from bacs.training.loop import TrainState

Log = list[dict[str, Any]]


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
    """Takes a freshly started state to where the checkpoint was written; returns the log until then."""
    manifest, files = checkpoints.read(folder)
    try:
        tensors = files["state"]
        own = {f"model/{name}": t for name, t in untied(state.model).items()}
        for name, tensor in own.items():
            tensor.copy_(tensors[name])
        for name, p in state.model.named_parameters():
            if f"momentum/{name}" in tensors:
                momentum = torch.empty_like(p, requires_grad=False).copy_(tensors[f"momentum/{name}"])
                state.optimizer.state[p]["momentum_buffer"] = momentum
        packed = {k.removeprefix("posterior/"): t for k, t in tensors.items() if k.startswith("posterior/")}
        state.posterior = posteriors.unpack(manifest["posterior"], packed)
        state.epoch = manifest["epoch"]
        return manifest["log"]
    except (KeyError, RuntimeError) as error:
        raise CheckpointError(f"{folder} does not fit this recipe's model: {error}; delete it to start over") from error


def remove(folder: Path) -> None:
    """Deletes the checkpoint of a member that is finished."""
    shutil.rmtree(folder, ignore_errors=True)
