"""Weather: snow, frost, fog, brightness."""

from functools import lru_cache

import numpy as np
from jaxtyping import UInt8
from numpy.random import Generator

from bacs.corruptions import filters
from bacs.corruptions.constants import Fog, Frost, Snow
from bacs.corruptions.frost_pictures import frost_pictures


def snow(images, constants: Snow, generators: list[Generator]):
    """The image bleached towards 1.5 grey + 0.5, with smeared flakes and the same flakes turned by 180 degrees."""
    flakes = np.stack([_flakes(images.shape[1:3], constants, generator) for generator in generators])
    flakes = flakes + flakes[:, ::-1, ::-1].astype(np.float32)
    channels = [images[..., channel].astype(np.float32) for channel in range(images.shape[3])]
    white = grey(channels) * np.float32(1.5) + np.float32(127.5)
    out = np.empty_like(images)
    for index, channel in enumerate(channels):
        bleached = np.maximum(channel, white) * np.float32(1 - constants.keep)
        bleached += channel * np.float32(constants.keep)
        bleached += flakes
        out[..., index] = np.minimum(bleached, 255)
    return out


def grey(channels: list[np.ndarray]) -> np.ndarray:
    """Luma of red, green and blue; one channel is its own."""
    if len(channels) == 1:
        return channels[0]
    red, green, blue = channels
    return red * np.float32(0.299) + green * np.float32(0.587) + blue * np.float32(0.114)


def _flakes(shape: tuple[int, int], constants: Snow, generator: Generator) -> UInt8[np.ndarray, "height width"]:
    noise = generator.standard_normal(shape, np.float32) * np.float32(constants.deviation)
    noise += np.float32(constants.mean)
    for axis, length in enumerate(shape):
        noise = filters.interpolate(noise, filters.centre_zoom(length, constants.zoom), axis)
    noise[noise < constants.threshold] = 0
    layer = (np.clip(noise, 0, 1) * 255).astype(np.uint8)
    weights = filters.motion_weights(constants.motion.radius, constants.motion.sigma)
    return filters.motion_blur(layer, weights, generator.uniform(-135, -45))


def frost(images, constants: Frost, generators: list[Generator]):
    """Weighted sum of the image and of a random window of a frost picture."""
    _, height, width, channels = images.shape
    pictures = frost_pictures()
    out = np.empty_like(images)
    for target, image, generator in zip(out, images, generators, strict=True):
        picture = pictures[generator.integers(len(pictures))]
        window = picture
        for axis, length in enumerate((height, width)):
            size = picture.shape[axis]
            window = window.take((generator.integers(size) + np.arange(length)) * constants.stride % size, axis=axis)
        window = window.astype(np.float32)
        if channels == 1:
            window = grey(list(window.transpose(2, 0, 1)))[..., None]
        window *= np.float32(constants.frost)
        window += image * np.float32(constants.image)
        target[:] = np.minimum(window, 255, out=window)
    return out


def fog(images, constants: Fog, generators: list[Generator]):
    """(x + amount plasma) max / (max + amount), with x in [0, 1] and max the largest value of the image."""
    _, height, width, _ = images.shape
    side = 1 << (max(height, width) - 1).bit_length()
    layer = plasma_fractal(side, constants.decay, generators)[:, :height, :width] * np.float32(255 * constants.amount)
    brightest = images.max(axis=(1, 2, 3), keepdims=True)[..., 0].astype(np.float32) / 255
    scale = brightest / (brightest + np.float32(constants.amount))
    out = np.empty_like(images)
    for channel in range(images.shape[3]):
        foggy = images[..., channel].astype(np.float32)
        foggy += layer
        foggy *= scale
        out[..., channel] = np.minimum(foggy, 255, out=foggy)
    return out


def plasma_fractal(side: int, decay: float, generators: list[Generator]):
    """Height maps [batch, side, side] in [0, 1] on a torus, by the diamond-square algorithm.

    Each halving of the grid divides the range of the random part by decay^2; `side` is a power of two.
    """
    draws = np.stack([generator.random(side * side, dtype=np.float32) for generator in generators])
    draws = draws * 2 - 1
    heights = np.zeros((len(generators), side + 1, side + 1), np.float32)  # the first row and column again at the end
    step, wibble, used = side, 100.0, 0

    def displace(total):
        nonlocal used
        count = total[0].size
        random = draws[:, used : used + count].reshape(total.shape)
        used += count
        total *= np.float32(0.25)
        total += random * np.float32(wibble * wibble)
        return total

    while step >= 2:
        half = step // 2
        corners = heights[:, ::step, ::step]
        here, right, below = corners[:, :-1, :-1], corners[:, :-1, 1:], corners[:, 1:, :-1]
        rows = corners[:, :-1] + corners[:, 1:]
        middles = displace(rows[..., :-1] + rows[..., 1:])
        heights[:, half::step, half::step] = middles
        heights[:, :-1:step, half::step] = displace(middles + _previous(middles, 1) + here + right)
        heights[:, half::step, :-1:step] = displace(middles + _previous(middles, 2) + here + below)
        heights[:, -1], heights[..., -1] = heights[:, 0], heights[..., 0]
        step, wibble = half, wibble / decay
    heights -= heights.min(axis=(1, 2), keepdims=True)
    highest = heights.max(axis=(1, 2), keepdims=True)
    heights /= np.where(highest > 0, highest, 1)
    return heights[:, :-1, :-1]


def _previous(values, axis: int):
    """Each value's predecessor on a ring."""
    return values.take(np.arange(-1, values.shape[axis] - 1), axis=axis)


def brightness(images, amount: float, generators: list[Generator]):
    """HSV value plus `amount`, clipped: every channel times (value + amount) / value."""
    table = brightness_table(amount)
    value = images[..., 0]
    for channel in range(1, images.shape[3]):
        value = np.maximum(value, images[..., channel])
    rows, out = value.astype(np.intp) << 8, np.empty_like(images)
    for channel in range(images.shape[3]):
        out[..., channel] = table.take(rows + images[..., channel])
    return out


@lru_cache
def brightness_table(amount: float):
    """Result for each HSV value and channel, flattened; a black pixel turns grey."""
    value = np.arange(256)[:, None] / 255
    channel = np.arange(256)[None] / 255
    brighter = np.clip(value + amount, 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        saturation = np.where(value > 0, (value - channel) / value, 0)
    return (np.clip(brighter * (1 - saturation), 0, 1) * 255).astype(np.uint8).ravel()
