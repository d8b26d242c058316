"""Blurs: defocus, motion."""

from functools import lru_cache

import numpy as np
from numpy.random import Generator
from scipy import ndimage

from bacs.corruptions import filters
from bacs.corruptions.constants import Disk, Motion


def defocus_blur(images, disk: Disk, generators: list[Generator]):
    """Convolution with a disk whose rim is softened; the image is mirrored about its edge pixels."""
    kernel = disk_kernel(disk)
    total = ndimage.correlate(images.astype(np.float64), kernel[None, :, :, None], mode="mirror")
    return (total * (1 / filters.UNIT)).astype(np.uint8)


@lru_cache
def disk_kernel(disk: Disk):
    """Exact weights of the disk; at least 17 x 17, softened by a 3 x 3 (radius above 8: 5 x 5) Gaussian."""
    reach = max(8, int(disk.radius))
    offsets = np.arange(-reach, reach + 1)
    inside = (offsets[:, None] ** 2 + offsets[None] ** 2 <= disk.radius**2).astype(np.float64)
    taps = np.arange(-1, 2) if disk.radius <= 8 else np.arange(-2, 3)
    rim = np.exp(-(taps**2) / (2 * disk.rim_sigma**2))
    rim /= rim.sum()
    for axis in (0, 1):
        inside = ndimage.correlate1d(inside, rim, axis=axis, mode="mirror")
    return filters.exact_weights(inside)


def motion_blur(images, motion: Motion, generators: list[Generator]):
    """One-sided Gaussian smear along a direction within 45 degrees of the horizontal, drawn for each image."""
    weights = filters.motion_weights(motion.radius, motion.sigma)
    return np.stack(
        [
            filters.motion_blur_one(image, weights, generator.uniform(-45, 45))
            for image, generator in zip(images, generators, strict=True)
        ]
    )
