import colorsys
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from bacs.corruptions import corrupt
from bacs.corruptions.constants import CONSTANTS

BOTH = ("cifar", "imagenet")
SEVERITIES = (1, 2, 3, 4, 5)


@pytest.mark.parametrize("constants", BOTH)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_contrast_draws_every_channel_to_its_own_mean(constants, severity, small):
    factor = CONSTANTS[constants]["contrast"][severity - 1]
    x = small / 255
    means = x.mean(axis=(1, 2), keepdims=True)
    expected = np.floor(np.clip((x - means) * factor + means, 0, 1) * 255)
    gap = corrupt(small, "contrast", severity, constants=constants) - expected
    assert abs(gap).max() <= 1
    assert (gap != 0).mean() < 0.001


@pytest.mark.parametrize("constants", BOTH)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_saturate_changes_the_saturation_of_hsv(constants, severity, small):
    factor, offset = CONSTANTS[constants]["saturate"][severity - 1]
    images = np.concatenate([small[:1], np.random.default_rng(0).integers(0, 256, (1, 32, 32, 3)).astype(np.uint8)])
    images[0, :2], images[0, 2:4], images[0, 4:6] = 0, 77, (200, 200, 30)
    expected = np.empty(images.shape)
    for place in np.ndindex(images.shape[:3]):
        hue, saturation, value = colorsys.rgb_to_hsv(*(images[place] / 255))
        expected[place] = colorsys.hsv_to_rgb(hue, min(saturation * factor + offset, 1), value)
    gap = corrupt(images, "saturate", severity, constants=constants) - np.floor(expected * 255)
    assert abs(gap).max() <= 1
    assert (gap != 0).mean() < 0.2  # with factors such as 2, half of all results are whole numbers but for rounding
    assert (gap != 0).mean() < 0.02 or factor in (1.5, 2, 2.5, 5, 20, 0.3, 0.1)


def test_grey_pixels_turn_red_where_saturation_has_an_offset():
    grey = np.full((1, 4, 4, 3), 100, np.uint8)
    assert (corrupt(grey, "saturate", 3) == 100).all()
    ours = corrupt(grey, "saturate", 5)[0, 0, 0]
    assert ours.tolist() == [100, 80, 80]


@pytest.mark.parametrize("constants", BOTH)
@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("channels", [1, 3])
def test_pixelate_is_pillows_box_filter_twice(constants, severity, channels, large):
    scale = CONSTANTS[constants]["pixelate"][severity - 1]
    image = large[0, :, :, :channels]
    picture = Image.fromarray(image.squeeze())
    small = picture.resize((int(picture.width * scale), int(picture.height * scale)), Image.Resampling.BOX)
    expected = np.asarray(small.resize(picture.size, Image.Resampling.BOX)).reshape(image.shape)
    assert (corrupt(image[None], "pixelate", severity, constants=constants)[0] == expected).all()


@pytest.mark.parametrize("constants", BOTH)
@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_compression_is_pillows(constants, severity, channels, large):
    image = large[1, :, :, :channels]
    file = BytesIO()
    Image.fromarray(image.squeeze()).save(file, "JPEG", quality=CONSTANTS[constants]["jpeg_compression"][severity - 1])
    expected = np.asarray(Image.open(file)).reshape(image.shape)
    assert (corrupt(image[None], "jpeg_compression", severity, constants=constants)[0] == expected).all()
