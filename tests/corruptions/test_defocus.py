import numpy as np
import pytest
from scipy import ndimage

from bacs.corruptions import corrupt
from bacs.corruptions.constants import CONSTANTS, Disk
from bacs.corruptions.defocus import defocus_blur

BOTH = ("cifar", "imagenet")
SEVERITIES = (1, 2, 3, 4, 5)


@pytest.mark.parametrize("constants", BOTH)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_defocus_blur_is_a_convolution_with_a_soft_disk(constants, severity, large):
    disk = CONSTANTS[constants]["defocus_blur"][severity - 1]
    reach = max(8, int(disk.radius))
    kernel = (np.hypot(*np.mgrid[-reach : reach + 1, -reach : reach + 1]) <= disk.radius).astype(float)
    kernel /= kernel.sum()
    taps = np.arange(-2, 3) if disk.radius > 8 else np.arange(-1, 2)
    soft = np.exp(-(taps**2) / (2 * disk.rim_sigma**2))
    kernel = ndimage.correlate(kernel, np.outer(soft, soft) / soft.sum() ** 2, mode="mirror")
    expected = ndimage.correlate(large.astype(float), kernel[None, :, :, None], mode="mirror")
    ours = corrupt(large, "defocus_blur", severity, constants=constants)
    gap = abs(ours.astype(int) - np.minimum(expected, 255).astype(np.uint8))
    assert gap.max() <= 1  # bytes are cut from floats
    assert (gap > 0).mean() < 0.25


def test_a_disk_larger_than_the_image_still_works():
    images = np.full((1, 4, 4, 3), 90, np.uint8)
    assert abs(defocus_blur(images, Disk(10.0, 0.5), []).astype(int) - 90).max() <= 1


@pytest.mark.parametrize("radius", [6.0, 7.0])
def test_a_flat_image_keeps_its_value_under_a_large_disk(radius):
    """Or all values lose a level, if the weights sum to less than one; the error of the transform must not show."""
    disk = Disk(radius, 0.5)
    images = np.arange(1, 255, dtype=np.uint8)[:, None, None, None].repeat(24, 1).repeat(24, 2)
    lost = images - defocus_blur(images, disk, [])
    assert lost.min() == lost.max()
    assert lost.max() in (0, 1)
