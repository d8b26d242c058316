"""Filters that several corruptions share, for whole batches.

Weights are multiples of 2^-16 that sum to one: a byte times a weight, and every sum of those, is then exact in
float32. So an image gives the same bytes alone, in a batch and on any number of threads, and a flat region
stays as it was.
"""

import numpy as np
from jaxtyping import Float32, Int

UNIT = 2.0**16


def exact_weights(weights: np.ndarray) -> Float32[np.ndarray, "..."]:
    """`weights` scaled to sum 2^16 and rounded to integers; the largest takes up what rounding leaves."""
    scaled = np.rint(weights / weights.sum() * UNIT)
    scaled.flat[np.argmax(scaled)] += UNIT - scaled.sum()
    return scaled.astype(np.float32)


def motion_weights(radius: int, sigma: float) -> Float32[np.ndarray, "taps"]:
    """One-sided Gaussian exp(-i^2 / (2 sigma^2)), i = 0 .. 2 radius."""
    return exact_weights(np.exp(-(np.arange(2 * radius + 1) ** 2) / (2 * sigma**2)))


def motion_offsets(taps: int, degrees: float) -> Int[np.ndarray, "taps 2"]:
    """Rows and columns that the taps lie away from the pixel: i (sin, cos), halves rounded down."""
    angle = np.deg2rad(degrees)
    steps = np.arange(taps)[:, None] * np.array([np.sin(angle), np.cos(angle)])
    return np.ceil(steps - 0.5).astype(int)


def motion_blur_one(image: np.ndarray, weights: np.ndarray, degrees: float) -> np.ndarray:
    """One image [height, width, ...] of bytes, smeared; beyond the edge its nearest pixel goes on. Rounded."""
    height, width = image.shape[:2]
    offsets = motion_offsets(len(weights), degrees)
    low, high = offsets.min(0), offsets.max(0)
    widths = [(-int(low[0]), int(high[0])), (-int(low[1]), int(high[1]))] + [(0, 0)] * (image.ndim - 2)
    padded = np.pad(image, widths, mode="edge").astype(np.float32)
    total = np.zeros(image.shape, np.float32)
    term = np.empty(image.shape, np.float32)
    for weight, (row, column) in zip(weights, offsets - low, strict=True):
        np.multiply(padded[row : row + height, column : column + width], weight, out=term)
        total += term
    total += UNIT / 2
    total *= 1 / UNIT
    return total.astype(np.uint8)
