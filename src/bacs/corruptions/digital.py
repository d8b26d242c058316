"""Digital: contrast, elastic transform, pixelate, JPEG compression, saturation."""

from io import BytesIO

import numpy as np
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
    return table.ravel()[rows + images]


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
    rows = filters.mirrored_gaussian(height, side * constants.sigma, 3.0, 2.0**_WEIGHT_BITS)
    columns = filters.mirrored_gaussian(width, side * constants.sigma, 3.0, 2.0**_WEIGHT_BITS).T
    scale = side * constants.displacement / 2.0 ** (_NOISE_BITS - 1 + 2 * _WEIGHT_BITS)
    across, down = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)[:, None]
    out = np.empty_like(images)
    for target, image, generator in zip(out, images, generators, strict=True):
        moved = _affine(image, _inverse_affine(height, width, side * constants.jitter, generator))
        noise = generator.integers(-(2 ** (_NOISE_BITS - 1)), 2 ** (_NOISE_BITS - 1) + 1, size=(2, height, width))
        shifts = [(rows @ field @ columns * scale).astype(np.float32) for field in noise.astype(np.float64)]
        target[:] = _interpolate(moved, down + shifts[1], across + shifts[0], half_sample=True)
    return out


def _inverse_affine(height: int, width: int, jitter: float, generator: Generator) -> Float[np.ndarray, "2 3"]:
    """Where each pixel (x, y) comes from: inverse of the map that moves three corners of a square by up to `jitter`."""
    centre, arm = np.array([width // 2, height // 2]), min(height, width) // 3
    corners = centre + arm * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = np.hstack([corners + generator.uniform(-jitter, jitter, size=(3, 2)), np.ones((3, 1))])
    return np.linalg.solve(moved, corners.astype(np.float64)).T


def _affine(image, inverse):
    """Positions are rounded to 1/32 pixel, as OpenCV's warpAffine did when the sets were made."""
    height, width = image.shape[:2]
    across, down = np.arange(width), np.arange(height)[:, None]
    x, y = (np.floor((row[0] * across + row[1] * down + row[2]) * 32 + 0.5) / 32 for row in inverse)
    return _interpolate(image, y.astype(np.float32), x.astype(np.float32), half_sample=False)


def _interpolate(image, y, x, *, half_sample: bool):
    """Linear interpolation at (y, x); the image is mirrored beyond its edge (`half_sample`: edge pixel twice)."""
    height, width, channels = image.shape
    pixels = image.reshape(-1, channels).astype(np.float32)
    top, left = np.floor(y), np.floor(x)
    below, right = (y - top)[..., None], (x - left)[..., None]
    top, left = top.astype(np.intp), left.astype(np.intp)
    upper, lower = (_mirror(top + step, height, half_sample) * width for step in (0, 1))
    near, far = (_mirror(left + step, width, half_sample) for step in (0, 1))
    first = pixels[upper + near]
    first += (pixels[upper + far] - first) * right
    second = pixels[lower + near]
    second += (pixels[lower + far] - second) * right
    second -= first
    second *= below
    first += second
    return first


def _mirror(index, length: int, half_sample: bool):
    if length == 1:
        return np.zeros_like(index)
    period = 2 * length if half_sample else 2 * length - 2
    if index.min() >= -length and index.max() < 2 * length - 1:  # one fold is enough, and modulo is slow
        last = period - length if half_sample else length - 1
        index = np.where(index < 0, -1 - index if half_sample else -index, index)
        return np.where(index > last if not half_sample else index >= length, period - index - half_sample, index)
    index = index % period
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
