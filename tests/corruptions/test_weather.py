import colorsys

import numpy as np
import pytest
from numpy.random import SFC64, Generator

from bacs.corruptions import corrupt, weather
from bacs.corruptions.constants import CONSTANTS
from bacs.corruptions.frost_pictures import frost_pictures

BOTH = ("cifar", "imagenet")


@pytest.mark.parametrize("constants", BOTH)
@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_brightness_adds_to_the_value_of_hsv(constants, severity, small):
    amount = CONSTANTS[constants]["brightness"][severity - 1]
    images = np.concatenate([small[:1], np.random.default_rng(0).integers(0, 256, (1, 32, 32, 3)).astype(np.uint8)])
    images[0, :4], images[0, 4:8] = 0, 77
    expected = np.empty(images.shape)
    for place in np.ndindex(images.shape[:3]):
        hue, saturation, value = colorsys.rgb_to_hsv(*(images[place] / 255))
        expected[place] = colorsys.hsv_to_rgb(hue, saturation, min(value + amount, 1))
    gap = corrupt(images, "brightness", severity, constants=constants) - np.floor(expected * 255)
    assert abs(gap).max() <= 1
    assert (gap != 0).mean() < 0.03


def test_brightness_of_one_channel_is_a_sum(small):
    grey = small[..., :1]
    ours = corrupt(grey, "brightness", 1, constants="imagenet")
    assert abs(ours - np.minimum(grey + 25.5, 255)).max() <= 1


@pytest.mark.parametrize("decay", [3.0, 1.75])
def test_plasma_is_mean_of_neighbours_plus_noise_that_shrinks_with_scale(decay):
    side = 256
    (heights,) = weather.plasma_fractal(side, decay, [Generator(SFC64(1))]).astype(float)
    assert heights.min() == 0
    assert heights.max() == 1
    spans = []
    for step in (32, 16, 8, 4):
        half = step // 2
        corners = heights[::step, ::step]
        mean = (corners + np.roll(corners, -1, 0) + np.roll(corners, -1, 1) + np.roll(corners, -1, (0, 1))) / 4
        residue = heights[half::step, half::step] - mean
        spans.append(np.sqrt(np.mean(residue**2)))
        edge = (corners + np.roll(corners, -1, 1) + heights[half::step, half::step]) / 4
        edge += np.roll(heights[half::step, half::step], 1, 0) / 4
        assert abs(np.sqrt(np.mean((heights[::step, half::step] - edge) ** 2)) / spans[-1] - 1) < 0.35
    ratios = np.array(spans[:-1]) / np.array(spans[1:])
    assert abs(ratios / decay**2 - 1).max() < 0.25


def test_fog_keeps_the_scale_of_the_image(small):
    amount = CONSTANTS["cifar"]["fog"][4].amount
    fogged = corrupt(small, "fog", 5).astype(float)
    brightest = small.max(axis=(1, 2, 3), keepdims=True) / 255
    scale = brightest / (brightest + amount)
    layer = fogged / scale - small
    assert layer.min() > -1 / scale.min()
    assert layer.max() < 255 * amount + 1
    # The same layer on every channel, and over its whole range 0..1.
    assert np.ptp(layer, axis=3).max() <= 2 / scale.min()
    assert (layer.max(axis=(1, 2, 3)) > 0.97 * 255 * amount).all()


def test_a_black_image_stays_black_in_fog():
    assert not corrupt(np.zeros((1, 16, 16, 3), np.uint8), "fog", 5).any()


@pytest.mark.parametrize("constants", BOTH)
def test_snow_bleaches_and_adds_flakes_that_are_symmetric(constants):
    for severity in (1, 3, 5):
        keep = CONSTANTS[constants]["snow"][severity - 1].keep
        image = np.full((1, 48, 40, 3), (90, 60, 30), np.uint8)
        ours = corrupt(image, "snow", severity, constants=constants)
        assert (ours == ours[:, ::-1, ::-1]).all()
        white = 1.5 * (0.299 * 90 + 0.587 * 60 + 0.114 * 30) + 127.5
        bleached = keep * image + (1 - keep) * np.maximum(image, white)
        added = ours - bleached
        assert added.min() > -1
        assert (added[ours < 255] > 5).any()


def test_light_snow_leaves_most_pixels_without_flakes():
    image = np.full((8, 32, 32, 3), 100, np.uint8)
    ours = corrupt(image, "snow", 1)
    bleached = int(0.95 * 100 + 0.05 * 277.5)
    assert 0.2 < (ours == bleached).mean() < 0.95


@pytest.mark.parametrize("severity", [1, 5])
def test_frost_is_a_weighted_sum_with_a_window_of_a_picture(severity):
    height, width = frost_pictures()[0].shape[:2]
    weights = CONSTANTS["imagenet"]["frost"][severity - 1]
    black = np.zeros((12, height, width, 3), np.uint8)
    tables = {
        np.minimum(picture * np.float32(weights.frost), 255).astype(np.uint8).sum(dtype=np.int64): index
        for index, picture in enumerate(frost_pictures())
    }
    assert len(tables) == 4
    # A window as large as the picture is the picture, rolled: its sum gives away which.
    seen = {tables[image.sum(dtype=np.int64)] for image in corrupt(black, "frost", severity, constants="imagenet")}
    assert len(seen) >= 3
    grey = np.full((2, 32, 32, 3), 100, np.uint8)
    under = corrupt(grey, "frost", severity, constants="imagenet")
    assert under.min() >= int(100 * weights.image)


def test_cifar_frost_shows_every_fifth_pixel():
    step = corrupt(np.zeros((20, 32, 32, 3), np.uint8), "frost", 5).astype(float)
    full = corrupt(np.zeros((20, 32, 32, 3), np.uint8), "frost", 5, constants="imagenet").astype(float)
    roughness = [np.mean(abs(np.diff(part, axis=2))) / part.mean() for part in (step, full)]
    assert roughness[0] > roughness[1]
