"""USPS digits as LIBSVM's authors publish them: bzip2 of lines `label 1:value ... 256:value`.

Values are grey from -1 to 1, row by row of 16 x 16 pixels; the digit 0 is called 1.
"""

import bz2
from pathlib import Path

import numpy as np

from bacs.errors import DataError

SIZE = 16
_LONGEST_LINE = 1 << 14
_MOST_LINES = 100_000
"""Of a set of 9,298 digits: a small file that unpacks without end is given up."""


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Grey images as NHWC with one channel, and labels 0..9."""
    images, labels = [], []
    try:
        with bz2.open(path) as file:
            while line := file.readline(_LONGEST_LINE):
                if len(labels) == _MOST_LINES:
                    raise DataError(f"{path}: more than {_MOST_LINES} lines")
                image, label = _parse(line, f"{path}: line {len(labels) + 1}")
                images.append(image)
                labels.append(label)
    except (EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's word, not the decoder's
        raise DataError(f"{path}: damaged bzip2 file ({error})") from error
    if not labels:
        raise DataError(f"{path}: no digits")
    return np.stack(images), np.array(labels, np.int64)


def _parse(line: bytes, where: str) -> tuple[np.ndarray, int]:
    try:
        label, *entries = line.split()
        pairs = [entry.split(b":") for entry in entries]
        places = [int(place) for place, _ in pairs]
        values = np.array([float(value) for _, value in pairs])
        digit = int(label) - 1
    except ValueError:
        raise DataError(f"{where} must be a label and 256 pairs place:value, found {line[:40]!r}") from None
    if places != list(range(1, SIZE * SIZE + 1)):
        raise DataError(f"{where} must have places 1..{SIZE * SIZE} in order, found {len(places)}")
    if not (np.abs(values) <= 1).all():  # NaN is not either
        raise DataError(f"{where} must have values from -1 to 1, found {values[~(np.abs(values) <= 1)][0]}")
    if not 0 <= digit <= 9:
        raise DataError(f"{where} must have a label 1..10, found {digit + 1}")
    return np.rint((values + 1) * 127.5).astype(np.uint8).reshape(SIZE, SIZE, 1), digit
