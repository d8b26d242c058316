"""The idx format of MNIST and its relatives, plain or gzipped."""

import gzip
import math
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from bacs.errors import DataError

_UNSIGNED_BYTE = 0x08
_LARGEST_RANK = 4
_CHUNK = 1 << 24


def read_array(path: Path) -> np.ndarray:
    """The uint8 array of one idx file: zero, zero, type, rank, big-endian sizes, then the bytes."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return _read(file, path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip file ({error})") from error


def _read(file: IO[bytes] | gzip.GzipFile, path: Path) -> np.ndarray:
    start = file.read(4)
    if len(start) < 4 or start[:3] != bytes([0, 0, _UNSIGNED_BYTE]):
        raise DataError(f"{path}: not an idx file of unsigned bytes (it begins with {start.hex() or 'nothing'})")
    rank = start[3]
    if rank > _LARGEST_RANK:
        raise DataError(f"{path}: an array of {rank} axes is neither of images nor of labels")
    header = file.read(4 * rank)
    if len(header) < 4 * rank:
        raise DataError(f"{path}: truncated inside its header")
    shape = tuple(int(size) for size in np.frombuffer(header, ">u4"))
    expected = math.prod(shape)
    data = bytearray()
    # No more than what is there is ever held, whatever the header says; one byte more shows that there is too much.
    while len(data) <= expected and (part := file.read(min(_CHUNK, expected + 1 - len(data)))):
        data += part
    if len(data) != expected:
        start_bytes = 4 + 4 * rank
        found = "more" if len(data) > expected else start_bytes + len(data)
        raise DataError(f"{path}: shape {shape} needs {start_bytes + expected} bytes, found {found}")
    return np.frombuffer(data, np.uint8).reshape(shape)  # writable, as torch wants


def read(images: Path, labels: Path) -> tuple[np.ndarray, np.ndarray]:
    """Grey images as NHWC with one channel, and their labels."""
    pixels = read_array(images)
    if pixels.ndim != 3:
        raise DataError(f"{images}: images must have rank 3, found shape {pixels.shape}")
    return pixels[..., np.newaxis], read_array(labels)
