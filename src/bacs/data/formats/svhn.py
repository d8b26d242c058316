"""SVHN's cropped digits: a MATLAB file with X (32, 32, 3, n) and y (n, 1), where the digit 0 is called 10."""

from pathlib import Path

import numpy as np

from bacs.errors import DataError


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images, and labels 0..9."""
    from scipy.io import loadmat  # slow to import, and only SVHN needs it

    try:
        content = loadmat(path, variable_names=("X", "y"))
    except Exception as error:  # the parser raises many kinds on damaged files
        raise DataError(f"{path}: unreadable or damaged MATLAB file ({type(error).__name__}: {error})") from error
    pixels, labels = content.get("X"), content.get("y")
    if pixels is None or labels is None:
        raise DataError(f"{path}: variables X and y are needed, found {sorted(k for k in content if k[0] != '_')}")
    for name, found in (("X", pixels), ("y", labels)):
        if not isinstance(found, np.ndarray):
            raise DataError(f"{path}: {name} must be an array, found {type(found).__name__}")
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[2] != 3:
        raise DataError(f"{path}: X must be uint8 (height, width, 3, n), found {pixels.dtype} {pixels.shape}")
    if labels.dtype.kind not in "iuf" or not (labels == np.floor(labels)).all():
        raise DataError(f"{path}: y must be whole numbers, found {labels.dtype} {labels.shape}")
    labels = labels.reshape(-1).astype(np.int64)
    if labels.size and not (labels.min() >= 1 and labels.max() <= 10):
        raise DataError(f"{path}: labels must be 1..10, found {labels.min()}..{labels.max()}")
    return pixels.transpose(3, 0, 1, 2), labels % 10
