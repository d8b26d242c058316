"""Defocus blur: a disk."""

from functools import lru_cache

import numpy as np
from jaxtyping import Float
from numpy.random import Generator
from scipy import fft, ndimage

from bacs.corruptions.constants import Disk

_FEW_TAPS = 100  # above, a Fourier transform is faster than adding up shifted copies
_MARGIN = 2.0**-12  # grey levels; the error of a transform in float32 is about 2^-17, seldom above 2^-14
_UNIT = 2.0**40  # holds float32 weights exactly, and leaves results of 48 bits, exact in float64


def defocus_blur(images, disk: Disk, generators: list[Generator]):
    """Convolution with a disk whose rim is softened; the image is mirrored about its edge pixels."""
    weights = disk_weights(disk)
    reach = len(weights) // 2
    padded = np.pad(images, [(0, 0), (reach, reach), (reach, reach), (0, 0)], mode="reflect")
    if np.count_nonzero(weights) <= _FEW_TAPS:
        return _add_shifted(padded, weights, images.shape)
    return np.stack([_fourier(image, disk, images.shape[1:]) for image in padded])


@lru_cache
def disk_weights(disk: Disk) -> Float[np.ndarray, "size size"]:
    """2^40 times the disk, softened by a 3 x 3 (radius above 8: 5 x 5) Gaussian in a square of at least 17 x 17.

    In float32, as OpenCV keeps it: whether a flat region keeps its value hangs on that. A disk that fills its
    square (radius 8, 10) is mirrored at the border by the softening, so that its sum is 1.01.
    """
    reach = max(8, int(disk.radius))
    offsets = np.arange(-reach, reach + 1)
    kernel = (offsets[:, None] ** 2 + offsets[None] ** 2 <= disk.radius**2).astype(np.float32)
    kernel /= kernel.sum()
    taps = np.arange(-1, 2) if disk.radius <= 8 else np.arange(-2, 3)
    rim = np.exp(-(taps**2) / (2 * disk.rim_sigma**2))
    rim = (rim / rim.sum()).astype(np.float32)
    for axis in (1, 0):
        kernel = ndimage.correlate1d(kernel, rim, axis=axis, mode="mirror")
    weights = np.rint(kernel.astype(np.float64) * _UNIT)
    margin = int(np.argmax(weights.any(axis=0)))
    return weights[margin : len(weights) - margin, margin : len(weights) - margin]


def _add_shifted(padded, weights, shape):
    """Pixels that share a weight, and by symmetry many do, are added up as integers first."""
    _, height, width, channels = shape
    line = padded.astype(np.uint16).reshape(-1)  # holds 257 bytes' sum
    reach = len(weights) - 1
    total = np.zeros(line.size - (reach * (width + reach) + reach) * channels)
    for weight in np.unique(weights[weights > 0]):
        rows, columns = np.nonzero(weights == weight)
        starts = ((rows * (width + reach) + columns) * channels).tolist()
        group = line[starts[0] : starts[0] + total.size].copy()
        for start in starts[1:]:
            group += line[start : start + total.size]
        total += group * weight
    total *= 1 / _UNIT
    out = np.zeros(padded.shape, np.uint8)
    out.reshape(-1)[: total.size] = np.minimum(total, 255, out=total)
    return out[:, :height, :width]


def _fourier(padded, disk: Disk, shape):
    """In float32, moved by `_MARGIN` so that flat regions are cut to the bytes that exact sums give.

    There the result is a byte times the sum of the weights, which rounding leaves a hair above 1 or below.
    """
    height, width, channels = shape
    size = (fft.next_fast_len(padded.shape[0], True), fft.next_fast_len(padded.shape[1], True))
    weights = disk_weights(disk)
    start, gain = len(weights) - 1, weights.sum() / _UNIT
    level = np.float32(128 * gain + (_MARGIN if gain >= 1 else -_MARGIN))
    out = np.empty(shape, np.uint8)
    for channel in range(channels):  # one at a time stays in the cache
        plane = padded[..., channel].astype(np.float32)
        plane -= 128  # the smaller the values, the smaller the error
        spectrum = fft.rfft2(plane, size, overwrite_x=True)
        spectrum *= _disk_spectrum(disk, size)
        total = fft.irfft2(spectrum, size, overwrite_x=True)[start : start + height, start : start + width]
        out[..., channel] = np.clip(total + level, 0, 255)
    return out


@lru_cache(maxsize=16)
def _disk_spectrum(disk: Disk, size: tuple[int, int]):
    return fft.rfft2(disk_weights(disk) / _UNIT, size).astype(np.complex64)
