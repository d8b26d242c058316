"""CIFAR-10 and CIFAR-100 as published: the Python version (pickles) and the binary version."""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bacs.errors import DataError, one_line

_PIXELS = 3 * 32 * 32


def _empty_array(*_: object) -> np.ndarray:
    # Stands in for numpy's `_reconstruct`, whose shape argument would let a file reserve any amount of memory;
    # the pickle's own state brings the real shape together with the bytes for it.
    return np.empty(0, np.uint8)


def _dtype(code: str | bytes, *_: object) -> np.dtype:
    # The published files pass align=0, copy=1, which NumPy 2.4 deprecates. A copy, because the pickle then sets
    # its state, and the original is shared by the whole process.
    return np.dtype(code.decode("ascii") if isinstance(code, bytes) else code, copy=True)


def _latin1(text: str, encoding: str = "latin1") -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"encoding {encoding!r} is not allowed")
    return text.encode("latin1")


_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("numpy._core.multiarray", "_reconstruct"): _empty_array,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
    ("_codecs", "encode"): _latin1,
}


class _ArraysOnly(pickle.Unpickler):
    """Reads arrays, numbers, strings and containers of them, and nothing that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed")
        return _ALLOWED[module, name]


def read_pickle(path: Path) -> dict[bytes, Any]:
    """The dictionary in one batch file, whose keys are bytes as Python 2 wrote them."""
    try:
        with path.open("rb") as file:
            batch = _ArraysOnly(file, encoding="bytes").load()
    except OSError:
        raise
    except Exception as error:  # a damaged pickle raises whatever its bytes happen to ask for
        raise DataError(f"{path}: not a CIFAR batch ({type(error).__name__}: {one_line(error)})") from error
    if not isinstance(batch, dict):
        raise DataError(f"{path}: not a CIFAR batch (holds a {type(batch).__name__})")
    return {key.encode() if isinstance(key, str) else key: value for key, value in batch.items()}


def _planes_to_images(pixels: np.ndarray) -> np.ndarray:
    # Stored as a red, a green and a blue plane per image.
    return np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def read_pickles(paths: Sequence[Path], label_key: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of the Python version; `label_key` is b"labels" or b"fine_labels"."""
    pixels, labels = [], []
    for path in paths:
        batch = read_pickle(path)
        data, names = batch.get(b"data"), batch.get(label_key)
        if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (_PIXELS,):
            raise DataError(f"{path}: 'data' must be uint8 of shape (n, {_PIXELS})")
        if not isinstance(names, list | np.ndarray) or len(names) != len(data):
            found = len(names) if isinstance(names, list | np.ndarray) else "no"
            raise DataError(f"{path}: {found} {label_key.decode()} for {len(data)} images")
        if not all(isinstance(name, (int, np.integer)) and 0 <= name < 100 for name in names):
            raise DataError(f"{path}: {label_key.decode()} must be whole numbers below 100")
        pixels.append(data)
        labels.append(np.asarray(names, np.int64))
    return _planes_to_images(np.concatenate(pixels)), np.concatenate(labels)


def read_binary(paths: Sequence[Path], label_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of the binary version: records of 1 label byte (CIFAR-100: coarse, fine) and the planes."""
    record = label_bytes + _PIXELS
    records = []
    for path in paths:
        data = np.fromfile(path, np.uint8)
        if data.size == 0 or data.size % record:
            raise DataError(f"{path}: {data.size} bytes are no whole number of {record}-byte records")
        records.append(data.reshape(-1, record))
    joined = np.concatenate(records)
    return _planes_to_images(joined[:, label_bytes:]), joined[:, label_bytes - 1]
