"""Spatter: drops of water or splashes of mud."""

import numpy as np
from jaxtyping import Bool, Float32, Int16, UInt8
from numpy.random import Generator
from scipy import ndimage

from bacs.corruptions import filters
from bacs.corruptions.constants import Spatter

_WATER = np.array([175, 238, 238], np.float32)
_MUD = np.array([63, 42, 20], np.float32)
_GREY = np.array([0.299, 0.587, 0.114], np.float32)
_WEAK_EDGE, _STRONG_EDGE = 50, 150
_FAR = np.int16(20)  # pixels from a rim, beyond which distance no longer matters
_WITHIN_IMAGE = np.array([[[0] * 3] * 3, [[1] * 3] * 3, [[0] * 3] * 3])
_RELIEF = ((0, 0, -2), (0, 1, -1), (1, 0, -1), (1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 2))


def spatter(images, constants: Spatter, generators: list[Generator]):
    """The image under a random film of liquid: water adds light at its rims, mud covers."""
    _, height, width, channels = images.shape
    noise = np.stack([generator.standard_normal((height, width), np.float32) for generator in generators])
    noise *= np.float32(constants.deviation)
    noise += np.float32(constants.mean)
    film = filters.gaussian_blur(noise, constants.sigma)
    colour = _MUD if constants.mud else _WATER
    colour = colour if channels == 3 else (colour @ _GREY)[None]
    if constants.mud:
        cover = filters.gaussian_blur((film > constants.threshold).astype(np.float32), constants.strength)
        cover[cover < 0.8] = 0
        keep = 1 - cover
    else:
        film[film < constants.threshold] = 0
        cover = water_light(np.minimum(film * 255, 255).astype(np.uint8)) * np.float32(constants.strength)
        keep = np.float32(1)
    out = np.empty_like(images)
    for channel, light in enumerate(colour):
        out[..., channel] = np.minimum(images[..., channel] * keep + cover * light, 255)
    return out


def water_light(film: UInt8[np.ndarray, "batch height width"]) -> Float32[np.ndarray, "batch height width"]:
    """How much each pixel of the film shines, 0..1: film times a relief of the distance to its rims."""
    distance = np.sqrt(square_distance(edges(film)).astype(np.float32))
    level = equalise(_box_sums(distance) / np.float32(9))
    padded = _mirror_pad(level.astype(np.int16))
    height, width = film.shape[1:]
    relief = sum(weight * padded[:, row : row + height, column : column + width] for row, column, weight in _RELIEF)
    relief = np.clip(relief, 0, 255)
    light = film * np.rint(_box_sums(relief) / np.float32(9))
    brightest = light.max(axis=(1, 2), keepdims=True)
    return light / np.where(brightest > 0, brightest, 1)


def edges(film: UInt8[np.ndarray, "batch height width"]) -> Bool[np.ndarray, "batch height width"]:
    """Canny edges: ridges of the Sobel gradient above the weak threshold that touch one above the strong."""
    height, width = film.shape[1:]
    padded = np.pad(film.astype(np.int16), [(0, 0), (1, 1), (1, 1)], mode="edge")
    smooth_rows = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    smooth_columns = padded[..., :-2] + 2 * padded[..., 1:-1] + padded[..., 2:]
    across = smooth_rows[..., 2:] - smooth_rows[..., :-2]
    down = smooth_columns[:, 2:] - smooth_columns[:, :-2]
    steep_x, steep_y = abs(across), abs(down)
    strength = steep_x + steep_y
    ring = np.pad(strength, [(0, 0), (1, 1), (1, 1)])

    def neighbour(row: int, column: int):
        return ring[:, 1 + row : 1 + row + height, 1 + column : 1 + column + width]

    flat = steep_y < steep_x * np.float32(np.tan(np.pi / 8))
    upright = steep_y > steep_x * np.float32(np.tan(3 * np.pi / 8))
    horizontal = (strength > neighbour(0, -1)) & (strength >= neighbour(0, 1))
    vertical = (strength > neighbour(-1, 0)) & (strength >= neighbour(1, 0))
    falling = (strength > neighbour(-1, -1)) & (strength > neighbour(1, 1))
    rising = (strength > neighbour(-1, 1)) & (strength > neighbour(1, -1))
    diagonal = np.where((across ^ down) < 0, rising, falling)
    ridge = np.where(flat, horizontal, np.where(upright, vertical, diagonal)) & (strength > _WEAK_EDGE)
    labels, count = ndimage.label(ridge, structure=_WITHIN_IMAGE)
    kept = np.zeros(count + 1, bool)
    kept[labels[ridge & (strength > _STRONG_EDGE)]] = True
    kept[0] = False
    return kept[labels]


def square_distance(marked: Bool[np.ndarray, "batch height width"]) -> Int16[np.ndarray, "batch height width"]:
    """Squared distance of each pixel to the nearest marked one of its image, at most 20^2.

    Along rows by running maxima, then min over rows d of (distance along row)^2 + d^2.
    """
    height, width = marked.shape[1:]
    columns = np.arange(width, dtype=np.int16)
    before = columns - np.maximum.accumulate(np.where(marked, columns, -_FAR), axis=2)
    after = np.minimum.accumulate(np.where(marked, columns, np.int16(width) + _FAR)[..., ::-1], axis=2)[..., ::-1]
    along = np.minimum(np.minimum(before, after - columns), _FAR) ** 2
    nearest = along.copy()
    for down in range(1, min(int(_FAR), height)):
        square = np.int16(down * down)
        if square >= nearest.max():
            break
        np.minimum(nearest[:, :-down], along[:, down:] + square, out=nearest[:, :-down])
        np.minimum(nearest[:, down:], along[:, :-down] + square, out=nearest[:, down:])
    return nearest


def equalise(distance: Float32[np.ndarray, "batch height width"]) -> UInt8[np.ndarray, "batch height width"]:
    """Whole distances 0..20 spread over 0..255 so that each image's histogram is as even as can be."""
    batch, pixels = len(distance), distance[0].size
    whole = distance.astype(np.intp) + np.arange(batch)[:, None, None] * 32
    counts = np.bincount(whole.ravel(), minlength=batch * 32).reshape(batch, 32)
    lowest = np.argmax(counts > 0, axis=1)
    lowest_count = counts[np.arange(batch), lowest]
    spread = np.maximum(pixels - lowest_count, 1)
    levels = np.rint(np.maximum(counts.cumsum(axis=1) - lowest_count[:, None], 0) * (255 / spread)[:, None])
    constant = lowest_count == pixels
    levels[constant] = lowest[constant, None]
    return levels.astype(np.uint8).ravel()[whole]


def _box_sums(values):
    """Sums over 3 x 3 neighbourhoods, mirrored about the edge pixels."""
    padded = _mirror_pad(values)
    rows = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    return rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]


def _mirror_pad(values):
    return np.pad(values, [(0, 0), (1, 1), (1, 1)], mode="reflect")
