"""Digital: contrast, elastic transform, pixelate, JPEG compression, saturation."""

from io import BytesIO

import numpy as np
import torch
from jaxtyping import Float
from numpy.random import Generator
from PIL import Image

from bacs.corruptions import filters
from bacs.corruptions.constants import Elastic, Saturation

_NOISE_BITS, _WEIGHT_BITS = 14, 19  # 14 + 2 * 19 = 52 bits: the smoothed displacement is exact in float64


def contrast(images, factor: float, generators: list[Generator]):
    """(x - mean) factor + mean, with the mean over the pixels of each channel of each image."""
    batch, height, width, channels = images.shape
    sums = images.reshape(batch, height, -1).sum(axis=1, dtype=np.int64).reshape(batch, width, channels).sum(axis=1)
    means = (sums / (height * width))[..., None]
    table = np.clip((np.arange(256) - means) * factor + means, 0, 255).astype(np.uint8)
    rows = np.arange(batch * channels).reshape(batch, 1, 1, channels) * 256
    return table.ravel().take(rows + images)


def saturate(images, constants: Saturation, generators: list[Generator]):
    """HSV saturation times a factor plus an offset, clipped; grey has the hue of red. One channel: unchanged."""
    if images.shape[3] == 1:
        return images.copy()
    red, green, blue = (images[..., channel].astype(np.float32) for channel in range(3))
    value = np.maximum(np.maximum(red, green), blue)
    spread = value - np.minimum(np.minimum(red, green), blue)
    grey = spread == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        saturation = np.nan_to_num(spread / value) * np.float32(constants.factor) + np.float32(constants.offset)
        pull = np.minimum(saturation, 1) * value / np.where(grey, 1, spread)
    out = np.empty_like(images)
    for index, channel in enumerate((red, green, blue)):
        distance = value - channel
        if index and constants.offset:
            distance[grey] = 1
        out[..., index] = np.maximum(value - pull * distance, 0)
    return out


def elastic_transform(images, constants: Elastic, generators: list[Generator]):
    """A random affine map, then a smooth random displacement, both with linear interpolation."""
    height, width = images.shape[1:3]
    side = min(height, width)
    if side < 3:
        raise ValueError(f"elastic_transform needs images of at least 3 x 3 pixels, got {height} x {width}")
    across, down = np.arange(width), np.arange(height)[:, None]
    inverse = np.stack([_inverse_affine(height, width, side * constants.jitter, g) for g in generators])
    # Positions in 1/32 pixel, as OpenCV's warpAffine had them when the sets were made.
    x, y = (
        np.floor((row[0] * across + row[1] * down + row[2]) * 32 + 0.5).astype(np.float32) / 32
        for row in inverse.transpose(1, 2, 0)[..., None, None]
    )
    moved = _interpolate(images.astype(np.float32), y, x, half_sample=False)
    shift_x, shift_y = _displacements(height, width, constants, generators)
    y, x = down.astype(np.float32) + shift_y, across.astype(np.float32) + shift_x
    return _interpolate(moved, y, x, half_sample=True).astype(np.uint8)


def _inverse_affine(height: int, width: int, jitter: float, generator: Generator) -> Float[np.ndarray, "2 3"]:
    """Where pixel (x, y) comes from: inverse of the map that moves three corners of a square by up to `jitter`."""
    centre, arm = np.array([width // 2, height // 2]), min(height, width) // 3
    corners = centre + arm * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = np.hstack([corners + generator.uniform(-jitter, jitter, size=(3, 2)), np.ones((3, 1))])
    return np.linalg.solve(moved, corners.astype(np.float64)).T


def _displacements(height: int, width: int, constants: Elastic, generators: list[Generator]):
    """Smoothed uniform noise [2, batch, height, width] in pixels; sums are exact, so in any order the same."""
    side, unit, half = min(height, width), 2.0**_WEIGHT_BITS, 2 ** (_NOISE_BITS - 1)
    if constants.displacement == 0:
        return np.zeros((2, len(generators), 1, 1), np.float32)
    size = (2, height, width)
    noise = np.stack([g.integers(-half, half, size, np.int16, endpoint=True) for g in generators], axis=1)
    rows = torch.from_numpy(filters.mirrored_gaussian(height, side * constants.sigma, 3.0, unit))
    columns = torch.from_numpy(filters.mirrored_gaussian(width, side * constants.sigma, 3.0, unit))
    smooth = (rows @ torch.from_numpy(noise).double() @ columns.T).numpy()
    return (smooth * (side * constants.displacement / (half * unit * unit))).astype(np.float32)


def _interpolate(images, y, x, *, half_sample: bool):
    """Linear interpolation at (y, x); images are mirrored beyond their edge (`half_sample`: edge pixel twice)."""
    batch, height, width, channels = images.shape
    pixels = images.reshape(-1, channels)
    top, left = np.floor(y), np.floor(x)
    below, right = (y - top)[..., None], (x - left)[..., None]
    top, left = top.astype(np.intp), left.astype(np.intp)
    start = (np.arange(batch) * (height * width))[:, None, None]
    upper, lower = (_mirror(top + step, height, half_sample) * width + start for step in (0, 1))
    near, far = (_mirror(left + step, width, half_sample) for step in (0, 1))

    def between(row):
        first, second = pixels.take(row + near, axis=0), pixels.take(row + far, axis=0)
        second -= first
        second *= right
        first += second
        return first

    first, second = between(upper), between(lower)
    second -= first
    second *= below
    first += second
    return first


def _mirror(index, length: int, half_sample: bool):
    """`index` folded back into 0 .. length - 1."""
    if length == 1:
        return np.zeros_like(index)
    period = 2 * length if half_sample else 2 * length - 2
    if index.min() <= -length or index.max() >= 2 * length - 1:  # more than one fold; modulo is slow
        index = index % period
    index = np.maximum(index, -half_sample - index)
    return np.minimum(index, period - half_sample - index)


def pixelate(images, scale: float, generators: list[Generator]):
    """Shrunk by `scale` and grown back, both with a box filter."""
    height, width = images.shape[1:3]
    small = (max(1, int(width * scale)), max(1, int(height * scale)))
    out = np.empty_like(images)
    for target, image in zip(out, images, strict=True):
        shrunk = _picture(image).resize(small, Image.Resampling.BOX)
        target[:] = np.asarray(shrunk.resize((width, height), Image.Resampling.BOX)).reshape(target.shape)
    return out


def jpeg_compression(images, quality: int, generators: list[Generator]):
    """Written as JPEG and read again."""
    out = np.empty_like(images)
    for target, image in zip(out, images, strict=True):
        file = BytesIO()
        _picture(image).save(file, "JPEG", quality=quality)
        with Image.open(file, formats=("JPEG",)) as picture:
            target[:] = np.asarray(picture).reshape(target.shape)
    return out


def _picture(image: np.ndarray) -> Image.Image:
    return Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
