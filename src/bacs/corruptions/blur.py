"""Blurs: Gaussian, motion, zoom, glass."""

from functools import lru_cache
from itertools import product

import numpy as np
from jaxtyping import Float, Int
from numpy.random import Generator

from bacs.corruptions import filters
from bacs.corruptions.constants import Glass, Motion, Zoom

_BAND = 16  # rows of a matrix at a time: few zeros, and enough for BLAS to be fast
_PRODUCT = 1 << 18  # multiplications at a time, above which OpenBLAS starts threads of its own


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
    origins = np.stack([glass_origins(height, width, glass, generator) for generator in generators])
    origins += np.arange(batch)[:, None] * (height * width)
    displaced = blurred.reshape(-1, channels).take(origins, axis=0).reshape(images.shape)
    return gaussian_blur(displaced, glass.sigma, [])


def glass_origins(height: int, width: int, glass: Glass, generator: Generator) -> Int[np.ndarray, "pixels"]:
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
