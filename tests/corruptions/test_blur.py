import numpy as np
import pytest
from numpy.random import SFC64, Generator
from scipy import ndimage

from bacs.corruptions import blur, corrupt, filters
from bacs.corruptions.constants import CONSTANTS, Glass

BOTH = ("cifar", "imagenet")
SEVERITIES = (1, 2, 3, 4, 5)


def assert_nearly_equal(ours, expected, share):
    """Bytes cut from floats: where a float is a whole number but for rounding, one level may be lost."""
    gap = abs(ours.astype(int) - expected.astype(int))
    assert gap.max() <= 1
    assert (gap > 0).mean() < share


@pytest.mark.parametrize("constants", BOTH)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_gaussian_blur_is_scipys(constants, severity, large):
    sigma = CONSTANTS[constants]["gaussian_blur"][severity - 1]
    expected = ndimage.gaussian_filter(large.astype(float), (0, sigma, sigma, 0), mode="nearest", truncate=4)
    assert_nearly_equal(corrupt(large, "gaussian_blur", severity, constants=constants), expected, 0.02)


@pytest.mark.parametrize("degrees", [-45.0, -20.5, 0.0, 13.0, 44.9, -90.0, -130.0])
def test_motion_blur_is_a_correlation_with_a_one_sided_line(degrees, large):
    radius, sigma = 10, 4.0
    kernel = np.zeros((4 * radius + 1, 4 * radius + 1))
    for i in range(2 * radius + 1):
        row = int(np.ceil(i * np.sin(np.deg2rad(degrees)) - 0.5))
        column = int(np.ceil(i * np.cos(np.deg2rad(degrees)) - 0.5))
        kernel[2 * radius + row, 2 * radius + column] += np.exp(-(i**2) / (2 * sigma**2))
    kernel /= kernel.sum()
    expected = np.rint(ndimage.correlate(large[0].astype(float), kernel[..., None], mode="nearest"))
    ours = filters.motion_blur(large[0], filters.motion_weights(radius, sigma), degrees)
    assert_nearly_equal(ours, expected, 0.02)


def test_motion_blur_angles_lie_within_45_degrees_of_the_horizontal():
    images = np.zeros((40, 64, 64, 1), np.uint8)
    images[:, 32, 32] = 255
    for image in corrupt(images, "motion_blur", 5)[..., 0]:
        rows, columns = np.nonzero(image)
        assert columns.min() < 32  # light runs to the left: the smear looks ahead
        assert columns.max() == 32
        assert (abs(rows - 32) <= abs(columns - 32) + 1).all()


@pytest.mark.parametrize("constants", BOTH)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_zoom_blur_is_the_mean_of_scipys_zooms(constants, severity, small):
    zoom = CONSTANTS[constants]["zoom_blur"][severity - 1]
    side = 32
    image = small[0].astype(float)
    total, count = image.copy(), 1
    for factor in np.arange(1, zoom.stop, zoom.step):
        crop = int(np.ceil(side / factor))
        top = (side - crop) // 2
        zoomed = ndimage.zoom(image[top : top + crop, top : top + crop], (factor, factor, 1), order=1)
        trim = (len(zoomed) - side) // 2
        total += zoomed[trim : trim + side, trim : trim + side]
        count += 1
    assert_nearly_equal(corrupt(small[:1], "zoom_blur", severity, constants=constants)[0], total / count, 0.05)


@pytest.mark.parametrize("glass", [Glass(0.7, 1, 2), Glass(1.0, 2, 3), Glass(1.5, 4, 2)])
def test_glass_blur_moves_pixels_as_the_sequential_definition_does(glass):
    height, width = 23, 31
    ours = blur.glass_origins(height, width, glass, Generator(SFC64(3)))
    rng = Generator(SFC64(3))
    shown = np.arange(height * width).reshape(height, width)
    rows, columns = range(glass.reach + 1, height - glass.reach + 1), range(glass.reach + 1, width - glass.reach + 1)
    for _ in range(glass.rounds):
        size = (2, len(rows), len(columns))
        down, across = rng.integers(-glass.reach, glass.reach, size=(2, size[1] * size[2]), dtype=np.int8).reshape(size)
        for row in reversed(rows):
            for column in reversed(columns):
                place = row - rows[0], column - columns[0]
                shown[row, column] = shown[row + down[place], column + across[place]]
    assert (ours.reshape(height, width) == shown).all()


def test_glass_blur_leaves_the_margin_in_place():
    sources = blur.glass_origins(40, 40, Glass(0.7, 2, 1), Generator(SFC64(0))).reshape(40, 40)
    untouched = np.arange(1600).reshape(40, 40)
    assert (sources[:3] == untouched[:3]).all()
    assert (sources[-1:] == untouched[-1:]).all()
    assert (sources != untouched).mean() > 0.7
