"""Noise that falls on every value of an image alone: Gaussian, shot, impulse, speckle.

Such noise is a table P(out | in) over the 256 values a byte can take, so all four are drawn in one way:
Walker's alias method, exact to 2^-32, with four random bytes for each value and no arithmetic on pixels at all.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8, UInt32
from numpy.random import Generator
from scipy.special import ndtr, pdtr

_VALUES = np.arange(256)


class AliasTable(NamedTuple):
    """P(out | in): column u of row `in` gives u itself below the threshold, else its alias."""

    thresholds: UInt32[np.ndarray, "inputs_times_columns"]
    aliases: UInt8[np.ndarray, "inputs_times_columns"]


def gaussian_noise(images, sigma: float, generators: list[Generator]):
    """x + sigma N(0, 1) with x in [0, 1], clipped."""
    return _sample(images, _gaussian_table(sigma), generators)


def shot_noise(images, photons: float, generators: list[Generator]):
    """Poisson(photons x) / photons with x in [0, 1], clipped."""
    return _sample(images, _shot_table(photons), generators)


def impulse_noise(images, amount: float, generators: list[Generator]):
    """0 or 255, equally often, in place of a fraction `amount` of the values (each channel by itself)."""
    return _sample(images, _impulse_table(amount), generators)


def speckle_noise(images, sigma: float, generators: list[Generator]):
    """x + x sigma N(0, 1) with x in [0, 1], clipped."""
    return _sample(images, _speckle_table(sigma), generators)


def _sample(images, table: AliasTable, generators: list[Generator]):
    size = images[0].size
    words = np.empty((len(images), (size + 1) // 2 * 2), np.uint32)
    for row, generator in zip(words.view(np.uint64), generators, strict=True):
        row[:] = generator.bit_generator.random_raw(row.size)
    words = words[:, :size].reshape(images.shape)
    columns = words.astype(np.uint8)
    cells = images.astype(np.intp)
    cells <<= 8
    cells += columns
    return np.where((words >> 8) < table.thresholds[cells], columns, table.aliases[cells])


@lru_cache
def _gaussian_table(sigma: float) -> AliasTable:
    return alias_table(_normal(np.full(256, 255 * sigma)))


@lru_cache
def _speckle_table(sigma: float) -> AliasTable:
    return alias_table(_normal(_VALUES * sigma))


@lru_cache
def _shot_table(photons: float) -> AliasTable:
    counts = np.arange(int(photons * 1.1) + 60)
    cumulative = pdtr(counts[None], _VALUES[:, None] / 255 * photons)
    mass = np.diff(cumulative, axis=1, prepend=0)
    mass[:, -1] += 1 - cumulative[:, -1]
    outputs = (np.clip(counts / photons, 0, 1) * 255).astype(np.uint8)
    return alias_table(np.stack([np.bincount(outputs, weights=row, minlength=256) for row in mass]))


@lru_cache
def _impulse_table(amount: float) -> AliasTable:
    probabilities = (1 - amount) * np.eye(256)
    probabilities[:, [0, 255]] += amount / 2
    return alias_table(probabilities)


def _normal(deviations: Float[np.ndarray, "256"]) -> Float[np.ndarray, "256 256"]:
    """P(floor(clip(N(value, deviation), 0, 255)) = out): the float is cut, not rounded, to a byte."""
    with np.errstate(divide="ignore"):
        upper = ndtr((_VALUES[None] + 1 - _VALUES[:, None]) / deviations[:, None])
    upper[:, 255] = 1
    return np.diff(upper, axis=1, prepend=0)


def alias_table(probabilities: Float[np.ndarray, "inputs columns"]) -> AliasTable:
    """Walker's table (Vose's construction) of each row; columns must be 256, the values of a byte."""
    thresholds = np.empty(probabilities.shape, np.uint32)
    aliases = np.empty(probabilities.shape, np.uint8)
    for row, (threshold, alias) in enumerate(zip(thresholds, aliases, strict=True)):
        shares = (probabilities[row] * 256).tolist()
        alias[:] = _VALUES
        small = [column for column, share in enumerate(shares) if share < 1]
        large = [column for column, share in enumerate(shares) if share >= 1]
        while small and large:
            poor, rich = small.pop(), large[-1]
            alias[poor] = rich
            shares[rich] -= 1 - shares[poor]
            if shares[rich] < 1:
                small.append(large.pop())
        for column in small + large:  # what is left differs from 1 by rounding only
            shares[column] = 1.0
        threshold[:] = np.rint(np.array(shares) * 2**24)
    return AliasTable(thresholds.ravel(), aliases.ravel())
