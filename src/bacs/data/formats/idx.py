"""The idx format of MNIST and its relatives, plain or gzipped."""

import gzip
import zlib
from pathlib import Path

import numpy as np

from bacs.errors import DataError

_UNSIGNED_BYTE = 0x08


def read_array(path: Path) -> np.ndarray:
    """The uint8 array of one idx file: zero, zero, type, rank, big-endian sizes, then the bytes."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error})") from error
    if len(data) < 4 or data[:3] != bytes([0, 0, _UNSIGNED_BYTE]):
        raise DataError(f"{path}: not an idx file of unsigned bytes (it begins with {data[:4].hex() or 'nothing'})")
    rank = data[3]
    header = 4 + 4 * rank
    if len(data) < header:
        raise DataError(f"{path}: truncated inside its header")
    shape = tuple(int(size) for size in np.frombuffer(data, ">u4", count=rank, offset=4))
    expected = header + int(np.prod(shape, dtype=np.int64))
    if len(data) != expected:
        raise DataError(f"{path}: shape {shape} needs {expected} bytes, found {len(data)}")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape).copy()  # writable, as torch wants


def read(images: Path, labels: Path) -> tuple[np.ndarray, np.ndarray]:
    """Grey images as NHWC with one channel, and their labels."""
    pixels = read_array(images)
    if pixels.ndim != 3:
        raise DataError(f"{images}: images must have rank 3, found shape {pixels.shape}")
    return pixels[..., np.newaxis], read_array(labels)
