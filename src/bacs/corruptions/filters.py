"""Filters that several corruptions share.

Weights are whole multiples of a power of two and sum to one, so that bytes times weights, and sums of those, are
exact: a flat region stays as it was, and an image gives the same bytes alone, in a batch and on any number of
threads. Where sums cannot be exact they are NumPy's elementwise operations, in an order that is always the same.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Float32, Int, UInt8

UNIT = 2.0**16  # a byte times a weight of 16 bits fits the 24 bits of a float32


def exact_weights(weights: Float[np.ndarray, "..."], unit: float = UNIT) -> Float[np.ndarray, "..."]:
    """`weights` as integers that sum to `unit`: rounded down, then one more for the largest remainders."""
    scaled = weights / weights.sum() * unit
    whole = np.floor(scaled)
    missing = int(unit - whole.sum())
    whole.flat[np.argsort((whole - scaled).ravel(), kind="stable")[:missing]] += 1
    return whole


@lru_cache
def gaussian_weights(sigma: float, truncate: float = 4.0, unit: float = UNIT) -> Float[np.ndarray, "taps"]:
    """Gaussian cut at `truncate` sigmas, symmetric: the middle takes up what rounding leaves."""
    radius = int(truncate * sigma + 0.5)
    taps = np.exp(-0.5 * np.arange(-radius, radius + 1) ** 2 / max(sigma, 1e-9) ** 2)
    whole = np.rint(taps / taps.sum() * unit)
    whole[radius] += unit - whole.sum()
    return whole


def gaussian_blur(
    images: Float32[np.ndarray, "batch height width *channels"], sigma: float
) -> Float32[np.ndarray, "batch height width *channels"]:
    """Gaussian of `sigma` pixels, cut at 4 sigma, over height and width; the edge pixel goes on beyond the edge."""
    weights = (gaussian_weights(sigma) / UNIT).astype(np.float32)
    radius = len(weights) // 2
    if radius == 0:
        return images.copy()
    for axis in (1, 2):
        length = images.shape[axis]
        widths = [(0, 0)] * images.ndim
        widths[axis] = (radius, radius)
        padded = np.pad(images, widths, mode="edge")
        before = (slice(None),) * axis
        images = padded[(*before, slice(radius, radius + length))] * weights[radius]
        pair = np.empty_like(images)
        for tap in range(radius):
            mirrored = 2 * radius - tap
            left, right = slice(tap, tap + length), slice(mirrored, mirrored + length)
            np.add(padded[(*before, left)], padded[(*before, right)], out=pair)
            pair *= weights[tap]
            images += pair
    return images


@lru_cache
def mirrored_gaussian(length: int, sigma: float, truncate: float, unit: float) -> Float[np.ndarray, "out in"]:
    """Matrix of a Gaussian filter of a line that is mirrored at its ends (d c b a | a b c d | d c b a)."""
    if sigma == 0:
        return np.eye(length) * unit
    weights = gaussian_weights(sigma, truncate, unit)
    radius = len(weights) // 2
    sources = (np.arange(length)[:, None] + np.arange(-radius, radius + 1)) % (2 * length)
    sources = np.minimum(sources, 2 * length - 1 - sources)
    matrix = np.zeros((length, length))
    np.add.at(matrix, (np.arange(length)[:, None], sources), weights)
    return matrix


def motion_weights(radius: int, sigma: float) -> Float[np.ndarray, "taps"]:
    """One-sided Gaussian exp(-i^2 / (2 sigma^2)), i = 0 .. 2 radius."""
    return exact_weights(np.exp(-(np.arange(2 * radius + 1) ** 2) / (2 * sigma**2)))


def motion_offsets(taps: int, degrees: float) -> Int[np.ndarray, "taps 2"]:
    """Rows and columns that the taps lie away from the pixel: i (sin, cos), halves rounded down."""
    angle = np.deg2rad(degrees)
    steps = np.arange(taps)[:, None] * np.array([np.sin(angle), np.cos(angle)])
    return np.ceil(steps - 0.5).astype(int)


def motion_blur(
    image: UInt8[np.ndarray, "height width *channels"], weights: Float[np.ndarray, "taps"], degrees: float
) -> UInt8[np.ndarray, "height width *channels"]:
    """One image smeared along a direction; beyond the edge its nearest pixel goes on. Rounded, as ImageMagick does."""
    height, width = image.shape[:2]
    offsets = motion_offsets(len(weights), degrees)
    offsets, places = np.unique(offsets[weights > 0], axis=0, return_inverse=True)
    weights = np.bincount(places.ravel(), weights=weights[weights > 0]).astype(np.float32)
    top, left = offsets.min(0)
    rows = np.clip(np.arange(top, height + offsets[:, 0].max()), 0, height - 1)
    columns = np.clip(np.arange(left, width + offsets[:, 1].max()), 0, width - 1)
    padded = image[rows][:, columns].astype(np.float32)
    total = np.full(image.shape, UNIT / 2, np.float32)
    term = np.empty_like(total)
    for weight, (row, column) in zip(weights, (offsets - (top, left)).tolist(), strict=True):
        np.multiply(padded[row : row + height, column : column + width], weight, out=term)
        total += term
    total *= 1 / UNIT
    return total.astype(np.uint8)


@lru_cache
def centre_zoom(length: int, factor: float) -> Float[np.ndarray, "out in"]:
    """Matrix that enlarges the middle of a line to its whole length, linearly; in multiples of 2^-16.

    ceil(length / factor) values become round(that * factor), end on end, of which the middle `length` are kept.
    """
    crop = int(np.ceil(length / factor))
    grown = round(crop * factor)
    positions = np.arange(length) + (grown - length) // 2
    positions = positions * ((crop - 1) / max(grown - 1, 1))
    lower = np.clip(np.floor(positions).astype(int), 0, max(crop - 2, 0))
    fraction = np.clip(np.rint((positions - lower) * UNIT) / UNIT, 0, 1)
    matrix = np.zeros((length, length))
    first = (length - crop) // 2 + lower
    matrix[np.arange(length), first] = 1 - fraction
    matrix[np.arange(length), np.minimum(first + 1, length - 1)] += fraction
    return matrix
