"""Streams that outlive their process: a folder that one of them owns, saves to every so often and goes on from.

The folder is what `Stream.save` writes, so that a kill at any moment leaves the last state that was saved or the one
before it, and `bacs.load`, `bacs info` and `bacs serve` open it. What else belongs to that very state, such as how many
rows of a table it has written, goes into `stream.beside`, and is saved in the same moment.
"""

from contextlib import AbstractContextManager
from pathlib import Path

import torch

from bacs import checkpoints, files
from bacs.drivers.load import load
from bacs.ensemble import Ensemble
from bacs.errors import CheckpointError
from bacs.methods import Stream


def own_folder(folder: Path, *, wait: bool = False) -> AbstractContextManager[None]:
    """Sole use of a folder: two processes would overwrite each other's streams."""
    return files.lock(folder.parent / f".{folder.name}.lock", f"state {folder} is used", wait=wait)


def exists(folder: Path) -> bool:
    return (folder / checkpoints.MANIFEST).exists()


def read(folder: Path, *, model: str | None = None, device: str | None = None) -> Stream:
    """The stream where it was left."""
    found = load(folder, model=model, device=device)
    if not isinstance(found, Stream):
        raise ValueError(f"state must be the folder of a stream, {folder} holds an ensemble")
    return found


def write(folder: Path, stream: Stream) -> None:
    """Keeps the stream as it stands; raises CheckpointError, and then what was kept is intact."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        stream.save(folder)
    except OSError as error:
        raise CheckpointError(f"could not save to {folder}: {error.strerror or error}") from error


def check_goes_on(found: Stream, begun: Stream, folder: Path) -> None:
    """Raises if a kept stream is not the one that was begun: of another ensemble, or by another method."""
    if not same_weights(found.source, begun.source):
        raise ValueError(f"state must be of the ensemble that is given, {folder} began with another one")
    if found.begun_with != begun.begun_with:
        raise ValueError(f"method must be {found.begun_with}, with which {folder} began, got {begun.begun_with}")


def same_weights(one: Ensemble, other: Ensemble) -> bool:
    """Whether two ensembles have the same tensors, posteriors included."""
    ours, theirs = one.tensors(), other.tensors()
    return ours.keys() == theirs.keys() and all(
        ours[group].keys() == theirs[group].keys()
        and all(torch.equal(tensor.cpu(), theirs[group][name].cpu()) for name, tensor in ours[group].items())
        for group in ours
    )
