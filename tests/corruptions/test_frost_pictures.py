from itertools import pairwise

import numpy as np

from bacs.corruptions.frost_pictures import frost_pictures

# Measured on the photographs that the published sets use: mean of red, green and blue, and deviation of all values.
PHOTOGRAPHS = [
    ((77.7, 149.1, 165.7), 43.2),
    ((200.8, 205.4, 214.5), 22.7),
    ((200.8, 205.4, 214.5), 22.7),
    ((137.6, 152.8, 165.2), 31.1),
    ((112.4, 123.4, 134.8), 44.1),
]


def test_colours_are_those_of_the_photographs():
    pictures = frost_pictures()
    assert len(pictures) == 5
    for picture, (means, deviation) in zip(pictures, PHOTOGRAPHS, strict=True):
        assert abs(picture.mean(axis=(0, 1)) - means).max() < 1
        assert abs(picture.std() / deviation - 1) < 0.1


def test_power_falls_with_frequency():
    for picture in frost_pictures():
        grey = picture.mean(axis=2)
        power = abs(np.fft.rfft2(grey - grey.mean())) ** 2
        radius = np.hypot(np.fft.fftfreq(grey.shape[0])[:, None], np.fft.rfftfreq(grey.shape[1]))
        edges = (0.004, 0.015, 0.05, 0.15, 0.5)
        bands = [power[(radius >= a) & (radius < b)].mean() for a, b in pairwise(edges)]
        assert bands == sorted(bands, reverse=True)
        assert 50 < bands[0] / bands[-1] < 30_000


def test_pictures_tile():
    for picture in frost_pictures():
        seam = abs(picture[0].astype(int) - picture[-1]).mean()
        inside = abs(np.diff(picture.astype(int), axis=0)).mean()
        assert seam < 1.5 * inside


def test_pictures_are_made_once():
    assert frost_pictures() is frost_pictures()
