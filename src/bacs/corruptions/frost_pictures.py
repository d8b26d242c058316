"""Pictures of frost, drawn rather than photographed.

The published sets cut windows out of five photographs (one of them twice) that may not be passed on. Four pictures
stand in for them. Each is drawn from needles or feathers of ice over a cloudy ground, then given the power
spectrum and the colour quantiles of the photograph it replaces. They tile, so a window may have any size.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8
from numpy.random import SFC64, Generator, SeedSequence
from scipy import fft, ndimage

_SHAPE = (480, 720)
_FREQUENCIES = np.sqrt(np.geomspace(0.004, 0.5, 9)[1:] * np.geomspace(0.004, 0.5, 9)[:-1])  # cycles per pixel
_PERCENTS = (0, 0.1, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100)


class _Picture(NamedTuple):
    crystals: int
    length: float  # of the longest crystal, pixels
    branches: int  # on each side of a crystal
    cloud: float  # share of the ground
    tint: float  # how far red and blue have clouds of their own
    spectrum: tuple[float, ...]  # log10 of the power at _FREQUENCIES
    quantiles: tuple[tuple[int, ...], ...]  # of red, green and blue at _PERCENTS


_PICTURES = (
    _Picture(
        crystals=2600,
        length=40.0,
        branches=0,
        cloud=0.8,
        tint=0.75,
        spectrum=(0.0, -1.24, -1.74, -2.39, -2.76, -2.99, -3.16, -3.63),
        quantiles=(
            (15, 24, 31, 40, 46, 57, 74, 95, 115, 127, 150, 169, 201),
            (99, 111, 116, 123, 128, 137, 148, 160, 171, 178, 190, 205, 230),
            (115, 129, 134, 141, 146, 155, 166, 176, 186, 191, 202, 216, 235),
        ),
    ),
    _Picture(
        crystals=2200,
        length=120.0,
        branches=0,
        cloud=0.35,
        tint=0.05,
        spectrum=(0.0, -0.8, -1.03, -1.44, -1.66, -2.25, -2.71, -3.36),
        quantiles=(
            (55, 104, 138, 162, 173, 189, 204, 216, 225, 230, 241, 248, 253),
            (56, 104, 140, 165, 176, 193, 209, 221, 230, 235, 245, 252, 255),
            (60, 109, 146, 172, 184, 202, 218, 231, 240, 244, 250, 253, 255),
        ),
    ),
    _Picture(
        crystals=4200,
        length=30.0,
        branches=5,
        cloud=0.3,
        tint=0.05,
        spectrum=(-0.35, -1.16, -1.16, -1.43, -1.71, -2.03, -2.39, -2.97),
        quantiles=(
            (15, 41, 69, 91, 102, 120, 138, 155, 171, 183, 218, 243, 251),
            (24, 53, 84, 105, 118, 135, 153, 170, 186, 199, 234, 255, 255),
            (31, 60, 92, 115, 129, 147, 165, 183, 201, 214, 249, 255, 255),
        ),
    ),
    _Picture(
        crystals=900,
        length=100.0,
        branches=18,
        cloud=0.4,
        tint=0.0,
        spectrum=(0.35, -0.27, -0.71, -1.2, -1.6, -2.09, -2.56, -3.02),
        quantiles=(
            (14, 24, 34, 48, 59, 79, 107, 140, 174, 195, 233, 252, 255),
            (25, 35, 45, 60, 70, 91, 119, 151, 183, 203, 238, 255, 255),
            (36, 45, 57, 72, 83, 104, 131, 161, 192, 211, 243, 255, 255),
        ),
    ),
)


@lru_cache(maxsize=1)
def frost_pictures() -> tuple[UInt8[np.ndarray, "height width 3"], ...]:
    """Five RGB pictures, made once; the second and third are the same, as in the published sets."""
    first, second, third, fourth = (_draw(number, picture) for number, picture in enumerate(_PICTURES))
    return first, second, second, third, fourth


def _draw(number: int, picture: _Picture) -> UInt8[np.ndarray, "height width 3"]:
    generator = Generator(SFC64(SeedSequence(20190327, spawn_key=(number,))))
    ice = ndimage.gaussian_filter(_crystals(picture, generator), 0.6, mode="wrap")
    ground = _shape_spectrum(generator.random(_SHAPE) - 0.5, picture.spectrum)
    field = _shape_spectrum((1 - picture.cloud) * _standardise(ice) + picture.cloud * ground, picture.spectrum)
    warm = _shape_spectrum(generator.random(_SHAPE) - 0.5, (0.0, -1.5, -2.5, -3.5, -4.5, -5.5, -6.5, -7.5))
    channels = [
        _match(field + sign * picture.tint * warm, values)
        for sign, values in zip((1, 0, -0.5), picture.quantiles, strict=True)
    ]
    return np.rint(np.stack(channels, axis=-1)).astype(np.uint8)


def _crystals(picture: _Picture, generator: Generator) -> Float[np.ndarray, "height width"]:
    """Straight, slightly bent needles; with branches, feathers whose barbs stand off at 60 degrees and shorten."""
    count = picture.crystals
    start = generator.random((count, 2, 1)) * np.array(_SHAPE)[:, None]
    angle, bend = generator.random((2, count, 1)) * np.array([2 * np.pi, 1.0])[:, None, None]
    length = picture.length * (0.15 + 0.85 * generator.random((count, 1)) ** 2)
    light = 0.2 + 0.8 * generator.random((count, 1))
    along = np.linspace(0, 1, int(picture.length * 1.2))
    heading = angle + (bend - 0.5) * along
    stem = start + (length * along)[:, None] * np.stack([np.sin(heading), np.cos(heading)], axis=1)
    canvas = np.zeros(_SHAPE)
    _paint(canvas, stem, light * (1 - 0.6 * along))
    if picture.branches:
        barb = np.linspace(0, 1, int(picture.length * 0.45))
        for joint in np.linspace(0, len(along) - 1, picture.branches + 1).astype(int)[:-1]:
            reach = 0.4 * length * (1 - along[joint])
            for side in (-np.pi / 3, np.pi / 3):
                turned = heading[:, joint, None] + side
                direction = np.stack([np.sin(turned), np.cos(turned)], axis=1)
                points = stem[:, :, joint, None] + (reach * barb)[:, None] * direction
                _paint(canvas, points, light * (1 - 0.8 * barb))
    return canvas


def _paint(canvas, points, light) -> None:
    rows, columns = (np.rint(points[:, axis]).astype(int) % _SHAPE[axis] for axis in (0, 1))
    np.maximum.at(canvas, (rows.ravel(), columns.ravel()), np.broadcast_to(light, rows.shape).ravel())


def _shape_spectrum(field, spectrum: tuple[float, ...]) -> Float[np.ndarray, "height width"]:
    """`field` with its phases, which hold its structure, and with the wanted power at every distance from zero."""
    transform = fft.rfft2(field)
    distance = np.hypot(fft.fftfreq(_SHAPE[0])[:, None], fft.rfftfreq(_SHAPE[1])[None])
    place = np.log(np.maximum(distance, 1e-3))
    bins = np.clip(((place - place.min()) / (place.max() - place.min()) * 40).astype(int), 0, 39)
    power = np.bincount(bins.ravel(), weights=(abs(transform) ** 2).ravel(), minlength=40)
    power /= np.maximum(np.bincount(bins.ravel(), minlength=40), 1)
    # Below the lowest band power goes on rising as it does there: large shades are what makes windows differ.
    lowest = spectrum[0] + (spectrum[0] - spectrum[1]) * 2
    step = np.log(_FREQUENCIES[1] / _FREQUENCIES[0])
    known = np.concatenate([[np.log(_FREQUENCIES[0]) - 2 * step], np.log(_FREQUENCIES)])
    wanted = np.interp(place, known, (lowest, *spectrum))
    transform *= np.sqrt(10**wanted / np.maximum(power[bins], 1e-12))
    transform[0, 0] = 0
    return _standardise(fft.irfft2(transform, _SHAPE))


def _standardise(field):
    return (field - field.mean()) / field.std()


def _match(field, quantiles: tuple[int, ...]) -> Float[np.ndarray, "height width"]:
    """`field` with its values moved, in their order, onto the wanted quantiles."""
    rank = np.empty(field.size)
    rank[np.argsort(field, axis=None, kind="stable")] = np.linspace(0, 100, field.size)
    return np.interp(rank, _PERCENTS, quantiles).reshape(field.shape)
