"""Blurs: defocus, glass, motion, zoom, Gaussian."""

from functools import lru_cache
from itertools import product

import numpy as np
from jaxtyping import Float, Int
from numpy.random import Generator
from scipy import fft, ndimage

from bacs.corruptions import filters
from bacs.corruptions.constants import Disk, Glass, Motion, Zoom

_FEW_TAPS = 100  # above, a Fourier transform is faster than adding up shifted copies
_BAND = 16  # rows of a matrix at a time: few zeros, and enough for BLAS to be fast
_PRODUCT = 1 << 18  # multiplications at a time, above which OpenBLAS starts threads of its own
_MARGIN = 2.0**-12  # grey levels; the error of a transform in float32 is about 2^-17, seldom above 2^-14
_UNIT = 2.0**40  # holds float32 weights exactly, and leaves results of 48 bits, exact in float64


def gaussian_blur(images, sigma: float, generators: list[Generator]):
    """Gaussian of `sigma` pixels; the edge pixel goes on beyond the edge.

    As matrices, G image G^T, for which BLAS is faster than adding up shifted copies. Weights have 16 bits, so what
    the first product needs fits a float32 and what the second needs a float64: exact, in whatever order BLAS adds.
    """
    height, width = images.shape[1:3]
    radius = len(filters.gaussian_weights(sigma)) // 2
    across, down = _gaussian_matrix(width, sigma).astype(np.float32), _gaussian_matrix(height, sigma)
    out = np.empty_like(images)
    for channel in range(images.shape[3]):  # one at a time stays in the cache
        turned = _band_product(across, images[..., channel].astype(np.float32), radius).astype(np.float64)
        out[..., channel] = _band_product(down, turned, radius).astype(np.float32)
    return out


@lru_cache(maxsize=16)
def _gaussian_matrix(length: int, sigma: float) -> Float[np.ndarray, "length length"]:
    """The blur of a line; weights that fall beyond an end are added to those of the end."""
    weights = filters.gaussian_weights(sigma) / filters.UNIT
    pixels, taps = np.arange(length)[:, None], np.arange(len(weights)) - len(weights) // 2
    matrix = np.zeros((length, length))
    np.add.at(matrix, (pixels, np.clip(pixels + taps, 0, length - 1)), weights)
    return matrix


def _band_product(matrix, planes: Float[np.ndarray, "batch height width"], radius: int):
    """matrix plane^T [batch, width, height], where the matrix is zero further than `radius` from its diagonal."""
    batch, height, width = planes.shape
    out = np.empty((batch, width, height), planes.dtype)
    length = max(1, _PRODUCT // (_BAND * (_BAND + 2 * radius)))
    for start, left in product(range(0, width, _BAND), range(0, height, length)):
        rows, columns = slice(start, start + _BAND), slice(left, left + length)
        band = slice(max(0, start - radius), start + _BAND + radius)
        np.matmul(matrix[rows, band], planes[:, columns, band].swapaxes(1, 2), out=out[:, rows, columns])
    return out


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


def motion_blur(images, motion: Motion, generators: list[Generator]):
    """One-sided Gaussian smear along a direction within 45 degrees of the horizontal, one for each image."""
    weights = filters.motion_weights(motion.radius, motion.sigma)
    pairs = zip(images, generators, strict=True)
    return np.stack([filters.motion_blur(image, weights, generator.uniform(-45, 45)) for image, generator in pairs])


def zoom_blur(images, zoom: Zoom, generators: list[Generator]):
    """Mean of the image and of its middle enlarged by each zoom factor."""
    batch, height, width, channels = images.shape
    total = images.astype(np.float32)
    lines = total.reshape(batch, height, -1).copy()
    factors = zoom_factors(zoom)
    for factor in factors.tolist():
        columns = filters.centre_zoom(width, factor)
        lower, upper = (
            (index[:, None] * channels + np.arange(channels)).ravel() for index in (columns.lower, columns.upper)
        )
        columns = filters.Interpolation(lower, upper, columns.fraction.repeat(channels))
        tall = filters.interpolate(lines, filters.centre_zoom(height, factor), axis=1)
        total += filters.interpolate(tall, columns, axis=2).reshape(images.shape)
    total /= np.float32(len(factors) + 1)
    return total.astype(np.uint8)


def zoom_factors(zoom: Zoom) -> Float[np.ndarray, "factors"]:
    """As the published sets have them: rounding lets arange reach `stop` in some rows."""
    return np.arange(1, zoom.stop, zoom.step)


def glass_blur(images, glass: Glass, generators: list[Generator]):
    """Blurred, its pixels displaced at random within `reach`, and blurred again."""
    batch, height, width, channels = images.shape
    blurred = gaussian_blur(images, glass.sigma, [])
    source = np.stack([glass_sources(height, width, glass, generator) for generator in generators])
    source += np.arange(batch)[:, None] * (height * width)
    displaced = blurred.reshape(-1, channels).take(source, axis=0).reshape(images.shape)
    return gaussian_blur(displaced, glass.sigma, [])


def glass_sources(height: int, width: int, glass: Glass, generator: Generator) -> Int[np.ndarray, "pixels"]:
    """Which pixel of the blurred image each pixel shows.

    The definition is sequential: from the last row and column backwards, each pixel takes what a random neighbour
    shows at that moment (meant as a swap in the published scripts, it copies). A neighbour that comes later in the
    image has been through this already, so pixels form chains; following all chains at once, doubling the step
    each time, ends after a few steps.
    """
    reach = glass.reach
    rows, columns = np.arange(reach + 1, height - reach + 1), np.arange(reach + 1, width - reach + 1)
    pixels = height * width
    shown = np.arange(pixels)
    if not (len(rows) and len(columns)):
        return shown
    inside = (rows[:, None] * width + columns).ravel()
    for _ in range(glass.rounds):
        offsets = generator.integers(-reach, reach, size=(2, len(inside)), dtype=np.int8)
        chosen = inside + offsets[0].astype(np.intp) * width + offsets[1]
        # Numbers below `pixels` stand for what a pixel shows after this round, the others for before.
        link = np.arange(pixels, 2 * pixels)
        done = np.zeros(pixels, bool)
        done[inside] = True
        earlier = (chosen > inside) & done[chosen]
        link[inside] = np.where(earlier, chosen, chosen + pixels)
        while (unfinished := np.flatnonzero(link < pixels)).size:
            link[unfinished] = link[link[unfinished]]
        shown = shown[link - pixels]
    return shown
