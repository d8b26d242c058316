"""Elastic transform: a random affine map and a smooth random displacement."""

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Float32
from numpy.random import Generator
from scipy import fft

from bacs.corruptions.constants import Elastic


def elastic_transform(images, constants: Elastic, generators: list[Generator]):
    """The image under an affine map, then under a displacement of every pixel, both with linear interpolation."""
    height, width = images.shape[1:3]
    side = min(height, width)
    if side < 3:
        raise ValueError(f"images must be at least 3 x 3 pixels for elastic_transform, got {height} x {width}")
    across, down = np.arange(width), np.arange(height)[:, None]
    inverse = np.stack([_inverse_affine(height, width, side * constants.jitter, g) for g in generators])
    # Positions in 1/32 pixel, as OpenCV's warpAffine had them when the sets were made.
    x, y = (
        np.floor((row[0] * across + row[1] * down + row[2]) * 32 + 0.5).astype(np.float32) / 32
        for row in inverse.transpose(1, 2, 0)[..., None, None]
    )
    planes = images.transpose(3, 0, 1, 2).astype(np.float32, order="C")
    planes = _interpolate(planes, y, x, half_sample=False)
    if constants.displacement:
        shifts = [_displacement(height, width, constants, generator) for generator in generators]
        x, y = np.stack(shifts, axis=1)
        x += across.astype(np.float32)
        y += down.astype(np.float32)
        planes = _interpolate(planes, y, x, half_sample=True)
    return planes.transpose(1, 2, 3, 0).astype(np.uint8)


def _inverse_affine(height: int, width: int, jitter: float, generator: Generator) -> Float[np.ndarray, "2 3"]:
    """Where pixel (x, y) comes from: inverse of the map that moves three corners of a square by up to `jitter`."""
    centre, arm = np.array([width // 2, height // 2]), min(height, width) // 3
    corners = centre + arm * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = np.hstack([corners + generator.uniform(-jitter, jitter, size=(3, 2)), np.ones((3, 1))])
    return np.linalg.solve(moved, corners.astype(np.float64)).T


def _displacement(
    height: int, width: int, constants: Elastic, generator: Generator
) -> Float32[np.ndarray, "2 height width"]:
    """Uniform noise in -1 .. 1, smoothed by a Gaussian and scaled to pixels."""
    count, side = 2 * height * width, min(height, width)
    words = generator.bit_generator.random_raw((count + 3) // 4)
    noise = words.view(np.int16)[:count].reshape(2, height, width).astype(np.float64)
    spectrum = fft.dctn(noise, axes=(1, 2), overwrite_x=True)
    spectrum *= _cosine_gains(height, side * constants.sigma)[:, None] * (side * constants.displacement / 2**15)
    spectrum *= _cosine_gains(width, side * constants.sigma)
    return fft.idctn(spectrum, axes=(1, 2), overwrite_x=True).astype(np.float32)


@lru_cache
def _cosine_gains(length: int, sigma: float) -> Float[np.ndarray, "length"]:
    """What a Gaussian, cut at 3 sigma, leaves of each cosine of a line that is mirrored at its ends.

    On such a line (d c b a | a b c d | d c b a) every symmetric filter w is diagonal in the cosine transform:
    sum_j w_j cos(pi k j / length).
    """
    offsets = np.arange(-int(3 * sigma + 0.5), int(3 * sigma + 0.5) + 1)
    weights = np.exp(-0.5 * (offsets / sigma) ** 2)
    angles = np.pi / length * np.arange(length)[:, None] * offsets
    return np.cos(angles) @ (weights / weights.sum())


def _interpolate(planes: Float32[np.ndarray, "channels batch height width"], y, x, *, half_sample: bool):
    """Linear interpolation at (y, x); mirrored beyond the edge (`half_sample`: with the edge pixel twice)."""
    channels, batch, height, width = planes.shape
    top, left = np.floor(y), np.floor(x)
    below, right = y - top, x - left
    top, left = top.astype(np.int32), left.astype(np.int32)
    start = (np.arange(batch, dtype=np.int32) * (height * width))[:, None, None]
    upper, lower = (_mirror(top + step, height, half_sample) * width + start for step in (0, 1))
    near, far = (_mirror(left + step, width, half_sample) for step in (0, 1))
    corners = [((row + near).astype(np.intp), (row + far).astype(np.intp)) for row in (upper, lower)]
    out = np.empty(planes.shape, np.float32)
    for target, pixels in zip(out, planes.reshape(channels, -1), strict=True):
        first, second = (_blend(pixels.take(one), pixels.take(other), right) for one, other in corners)
        target[:] = _blend(first, second, below)
    return out


def _blend(first, second, fraction):
    second -= first
    second *= fraction
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
