"""Filters that several corruptions share.

Weights are whole multiples of a power of two and sum to one, so that bytes times weights, and sums of those, are
exact: a flat region stays as it was, and an image gives the same bytes alone, in a batch and on any number of
threads. Where sums cannot be exact they are NumPy's elementwise operations, in an order that is always the same.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int, UInt8

UNIT = 2.0**16  # a byte times a weight of 16 bits fits the 24 bits of a float32
_MANY = 1 << 16  # values


def exact_weights(weights: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """2^16 times the weights as integers of the right sum: rounded down, and one more for the largest remainders."""
    scaled = weights * UNIT
    whole = np.floor(scaled)
    missing = round(scaled.sum() - whole.sum())
    whole.flat[np.argsort((whole - scaled).ravel(), kind="stable")[:missing]] += 1
    return whole


@lru_cache
def gaussian_weights(sigma: float) -> Float[np.ndarray, "taps"]:
    """2^16 times a Gaussian cut at 4 sigma, as integers; the middle takes up what rounding leaves."""
    radius = int(4 * sigma + 0.5)
    taps = np.exp(-0.5 * np.arange(-radius, radius + 1) ** 2 / sigma**2)
    whole = np.rint(taps / taps.sum() * UNIT)
    whole[radius] += UNIT - whole.sum()
    return whole


def gaussian_blur(
    images: Float32[np.ndarray, "batch height width *channels"], sigma: float
) -> Float32[np.ndarray, "batch height width *channels"]:
    """Gaussian of `sigma` pixels, cut at 4 sigma, over height and width; the edge pixel goes on beyond the edge."""
    weights = (gaussian_weights(sigma) / UNIT).astype(np.float32)
    if len(weights) == 1:
        return images
    shape = images.shape
    batch, height, width = shape[:3]
    images = images.reshape(batch, height, -1)
    images = _symmetric_filter(_pad_edges(images, 1, len(weights) // 2), weights, images.shape[2])
    images = images[:, : images.shape[1] - len(weights) + 1].reshape(batch * height, width, -1)
    images = _symmetric_filter(_pad_edges(images, 1, len(weights) // 2), weights, images.shape[2])
    return images[:, :width].reshape(shape)


def _pad_edges(values, axis: int, radius: int):
    length = values.shape[axis]
    return values.take(np.clip(np.arange(-radius, length + radius), 0, length - 1), axis=axis)


def _symmetric_filter(padded, weights, stride: int):
    """Filtered along an axis of which neighbours lie `stride` apart in memory; the last 2 radius results are void.

    Taps are shifted copies of the whole array as one line, the fastest thing NumPy does.
    """
    line, radius = padded.reshape(-1), len(weights) // 2
    out = np.empty(padded.shape, np.float32)
    total = out.reshape(-1)[: line.size - 2 * radius * stride]
    pair = np.empty_like(total)
    np.multiply(line[radius * stride :][: total.size], weights[radius], out=total)
    for tap in range(radius):
        np.add(line[tap * stride :][: total.size], line[(2 * radius - tap) * stride :][: total.size], out=pair)
        pair *= weights[tap]
        total += pair
    return out


@lru_cache
def motion_weights(radius: int, sigma: float) -> Float[np.ndarray, "taps"]:
    """One-sided Gaussian exp(-i^2 / (2 sigma^2)), i = 0 .. 2 radius."""
    weights = np.exp(-(np.arange(2 * radius + 1) ** 2) / (2 * sigma**2))
    return np.trim_zeros(exact_weights(weights / weights.sum()), "b")


def motion_offsets(taps: int, degrees: float) -> Int[np.ndarray, "taps 2"]:
    """Rows and columns that the taps lie away from the pixel: i (sin, cos), halves rounded down."""
    angle = np.deg2rad(degrees)
    steps = np.arange(taps)[:, None] * np.array([np.sin(angle), np.cos(angle)])
    return np.ceil(steps - 0.5).astype(int)


def motion_blur(
    image: UInt8[np.ndarray, "height width *channels"], weights: Float[np.ndarray, "taps"], degrees: float
) -> UInt8[np.ndarray, "height width *channels"]:
    """One image smeared along a direction; beyond the edge its nearest pixel goes on. Rounded, as ImageMagick does."""
    if image.ndim == 3 and image.size > _MANY:  # one channel at a time stays in the cache
        return np.stack([motion_blur(plane, weights, degrees) for plane in image.transpose(2, 0, 1)], axis=-1)
    height, width = image.shape[:2]
    offsets = motion_offsets(len(weights), degrees)
    top, left, bottom, right = *offsets.min(0).tolist(), *offsets.max(0).tolist()
    padded = image.take(np.clip(np.arange(top, height + bottom), 0, height - 1), axis=0)
    padded = padded.take(np.clip(np.arange(left, width + right), 0, width - 1), axis=1).astype(np.float32)
    line, stride = padded.reshape(-1), padded[0, 0].size
    starts = ((offsets[:, 0] - top) * padded.shape[1] + offsets[:, 1] - left) * stride
    out = np.empty((height, *padded.shape[1:]), np.float32)
    total = out.reshape(-1)[: line.size - int(starts.max())]
    total.fill(UNIT / 2)
    term = np.empty_like(total)
    for weight, start in zip(weights.astype(np.float32), starts.tolist(), strict=True):
        np.multiply(line[start : start + total.size], weight, out=term)
        total += term
    total *= 1 / UNIT
    return out[:, :width].astype(np.uint8)


class Interpolation(NamedTuple):
    """Result k of a line is (1 - fraction[k]) line[lower[k]] + fraction[k] line[upper[k]]."""

    lower: Int[np.ndarray, "out"]
    upper: Int[np.ndarray, "out"]
    fraction: Float32[np.ndarray, "out"]


@lru_cache(maxsize=256)
def centre_zoom(length: int, factor: float) -> Interpolation:
    """Enlarges the middle of a line to its whole length, linearly; fractions are multiples of 2^-16.

    ceil(length / factor) values become round(that * factor), end on end, of which the middle `length` are kept.
    """
    crop = int(np.ceil(length / factor))
    grown = round(crop * factor)
    positions = (np.arange(length) + (grown - length) // 2) * ((crop - 1) / max(grown - 1, 1))
    lower = np.clip(np.floor(positions), 0, crop - 1).astype(int)
    fraction = np.clip(np.rint((positions - lower) * UNIT) / UNIT, 0, 1).astype(np.float32)
    first = (length - crop) // 2
    return Interpolation(first + lower, first + np.minimum(lower + 1, crop - 1), fraction)


def interpolate(values: Float32[np.ndarray, "..."], line: Interpolation, axis: int) -> Float32[np.ndarray, "..."]:
    """Every line of `values` along `axis`, interpolated."""
    start, step = values.take(line.lower, axis=axis), values.take(line.upper, axis=axis)
    step -= start
    step *= line.fraction.reshape((-1,) + (1,) * (values.ndim - axis - 1))
    start += step
    return start
