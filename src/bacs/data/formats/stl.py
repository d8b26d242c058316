"""STL-10's binary files: 96 x 96 images as column-major colour planes, labels 1..10 in a file of their own."""

from pathlib import Path

import numpy as np

from bacs.errors import DataError

_BYTES = 3 * 96 * 96


def read_images(path: Path) -> np.ndarray:
    """NHWC images as a view of the memory-mapped file (the unlabelled split has 2.8 GB)."""
    size = path.stat().st_size
    if size == 0 or size % _BYTES:
        raise DataError(f"{path}: {size} bytes are no whole number of {_BYTES}-byte images")
    return np.memmap(path, np.uint8, mode="c").reshape(-1, 3, 96, 96).transpose(0, 3, 2, 1)


def read(images: Path, labels: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images, and labels 0..9."""
    raw = np.fromfile(labels, np.uint8)
    if raw.size and not (raw.min() >= 1 and raw.max() <= 10):
        raise DataError(f"{labels}: labels must be 1..10, found {raw.min()}..{raw.max()}")
    return read_images(images), raw.astype(np.int64) - 1
