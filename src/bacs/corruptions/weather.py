"""Weather: fog, brightness."""

from functools import lru_cache

import numpy as np
from numpy.random import Generator

from bacs.corruptions.constants import Fog


def fog(images, constants: Fog, generators: list[Generator]):
    """(x + amount plasma) max / (max + amount), with x in [0, 1] and max the largest value of the image."""
    _, height, width, _ = images.shape
    side = 1 << (max(height, width) - 1).bit_length()
    plasma = plasma_fractal(side, constants.decay, generators)[:, :height, :width, None]
    brightest = images.max(axis=(1, 2, 3), keepdims=True).astype(np.float32) / 255
    scale = brightest / (brightest + np.float32(constants.amount))
    out = images + plasma * np.float32(255 * constants.amount)
    out *= scale
    np.clip(out, 0, 255, out=out)
    return out.astype(np.uint8)


def plasma_fractal(side: int, decay: float, generators: list[Generator]):
    """Height maps [batch, side, side] in [0, 1] on a torus, by the diamond-square algorithm.

    Each halving of the grid divides the range of the random part by decay^2; `side` is a power of two.
    """
    draws = np.stack([generator.random(side * side, dtype=np.float32) for generator in generators])
    draws = draws * 2 - 1
    heights = np.zeros((len(generators), side, side), np.float32)
    step, wibble, used = side, 100.0, 0

    def displaced(total):
        nonlocal used
        count = total[0].size
        random = draws[:, used : used + count].reshape(total.shape)
        used += count
        return total * np.float32(0.25) + random * np.float32(wibble * wibble)

    while step >= 2:
        half = step // 2
        corners = heights[:, ::step, ::step]
        rows = corners + np.roll(corners, -1, axis=1)
        middles = displaced(rows + np.roll(rows, -1, axis=2))
        heights[:, half::step, half::step] = middles
        across = middles + np.roll(middles, 1, axis=1) + corners + np.roll(corners, -1, axis=2)
        heights[:, ::step, half::step] = displaced(across)
        down = middles + np.roll(middles, 1, axis=2) + corners + np.roll(corners, -1, axis=1)
        heights[:, half::step, ::step] = displaced(down)
        step, wibble = half, wibble / decay
    heights -= heights.min(axis=(1, 2), keepdims=True)
    highest = heights.max(axis=(1, 2), keepdims=True)
    return heights / np.where(highest > 0, highest, 1)


def brightness(images, amount: float, generators: list[Generator]):
    """HSV value plus `amount`, clipped: every channel times (value + amount) / value."""
    table = brightness_table(amount)
    value = images.max(axis=3, keepdims=True).astype(np.intp)
    value <<= 8
    return table[value + images]


@lru_cache
def brightness_table(amount: float):
    """Result for each HSV value and channel, flattened; a black pixel turns grey."""
    value = np.arange(256)[:, None] / 255
    channel = np.arange(256)[None] / 255
    brighter = np.clip(value + amount, 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        saturation = np.where(value > 0, (value - channel) / value, 0)
    return (np.clip(brighter * (1 - saturation), 0, 1) * 255).astype(np.uint8).ravel()
