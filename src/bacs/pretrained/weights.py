"""Plain weight files of any framework that writes safetensors, PyTorch or NumPy: no code in them runs."""

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from bacs.ensemble import Member
from bacs.errors import CheckpointError
from bacs.parameters import read
from bacs.posteriors import flat
from bacs.preprocessing import Preprocessing

TORCH = (".pt", ".pth", ".bin")
SUFFIXES = (".safetensors", ".npz", *TORCH)
NESTS = ("state_dict", "model_state_dict", "model")
"""Where training programs put the weights in a larger file."""


def open_weights(file: str | Path, model: nn.Module, preprocessing: Preprocessing | None = None) -> Member:
    """A member of weights from a file, without a posterior yet. They are copied into `model`.

    What DataParallel puts before names ("module.") is taken off; counters of batch norm may be missing.
    """
    state = read_weights(Path(file))
    for prefix in ("module.", "model."):
        if state and all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): tensor for name, tensor in state.items()}
    try:
        missing, extra = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise CheckpointError(f"{file} does not fit {type(model).__name__}: {reason}") from error
    missing = [name for name in missing if not name.endswith("num_batches_tracked")]
    if missing or extra:
        what = f"it lacks {missing[0]!r}" if missing else f"it has {extra[0]!r}, which the model has not"
        count = len(missing) + len(extra)
        raise CheckpointError(f"{file} does not fit {type(model).__name__}: {what} ({count} names differ)")
    return Member(model.eval(), flat.init(read(model)), preprocessing)


def read_weights(file: Path) -> dict[str, Tensor]:
    """The tensors of a weight file by name."""
    if file.suffix not in SUFFIXES:
        raise ValueError(f"weights must be a file that ends in {', '.join(SUFFIXES)}, got {file}")
    try:
        found = _read(file)
    except FileNotFoundError:
        raise CheckpointError(f"{file} does not exist") from None
    except Exception as error:  # their readers raise many kinds for files that are empty, cut short or something else
        raise CheckpointError(f"{file} cannot be read as weights: {_explain(error, file)}") from error
    for nest in NESTS:
        if isinstance(found, Mapping) and isinstance(found.get(nest), Mapping):
            found = found[nest]
    if not isinstance(found, Mapping) or not all(isinstance(k, str) and _is_plain(v) for k, v in found.items()):
        raise CheckpointError(f"{file} holds no state dict: it must map names to tensors")
    return dict(found)


def _is_plain(value: Any) -> bool:
    """Whether this is a tensor of numbers that can be copied into a layer."""
    return isinstance(value, Tensor) and value.layout == torch.strided and value.device.type == "cpu"


def _explain(error: Exception, file: Path) -> str:
    """In plain words: torch's run over many lines, with colours in them and the advice to run what is in the file."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if not file.stat().st_size:
        return "it is empty"
    if named := re.search(r"Unsupported global: GLOBAL (\S+)", str(error)):
        return (
            f"it holds a {named.group(1)}, a whole object that would run code; save model.state_dict() where the class "
            "is known, and give that file"
        )
    return f"it is damaged or no {'torch.save' if file.suffix in TORCH else file.suffix} file"


def _read(file: Path) -> Any:
    if file.suffix == ".safetensors":
        return load_file(file)
    if file.suffix == ".npz":
        # Opened here, because np.load leaves the file open when it is no zip archive.
        with file.open("rb") as handle, np.lib.npyio.NpzFile(handle, allow_pickle=False) as arrays:
            return {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of pickle protocols, before the error that says what is wrong
        return torch.load(file, map_location="cpu", weights_only=True)
