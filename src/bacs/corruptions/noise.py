"""Noise that falls on every value of an image alone: Gaussian, shot, impulse, speckle.

Such noise is a table P(out | in) over the 256 values a byte can take, so all four are drawn in one way:
Walker's alias method, exact to 2^-32, with four random bytes for each value and no arithmetic on pixels at all.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Float, UInt32
from numpy.random import Generator
from scipy.special import ndtr, pdtr

_VALUES = np.arange(256)
_CACHED = 1 << 14  # values handled at a time: all that is needed for them stays in the core's cache


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


def _sample(images, table: UInt32[np.ndarray, "65536"], generators: list[Generator]):
    """One draw from P(. | value) for each value.

    The low byte of a random word chooses a column of the value's row; the word below the entry there: the column
    itself, else the alias in the entry's low byte.
    """
    values, out = images.reshape(len(images), -1), np.empty(images.shape, np.uint8)
    words = np.empty((len(images), (values.shape[1] + 1) // 2), np.uint64)
    for row, generator in zip(words, generators, strict=True):
        row[:] = generator.bit_generator.random_raw(row.size)
    words = words.view(np.uint32)[:, : values.shape[1]].ravel()
    values, flat = values.ravel(), out.reshape(-1)
    for start in range(0, values.size, _CACHED):
        part = slice(start, start + _CACHED)
        word = words[part]
        cell = values[part].astype(np.uint16) << 8
        column = word.astype(np.uint8)
        cell |= column
        entry = table.take(cell)
        alias = entry.astype(np.uint8)
        # alias ^ (column ^ alias) is the column: np.where waits for a wrong guess at every other random condition.
        column ^= alias
        column *= word < entry
        np.bitwise_xor(alias, column, out=flat[part])
    return out


@lru_cache
def _gaussian_table(sigma: float) -> UInt32[np.ndarray, "65536"]:
    return alias_table(_normal(np.full(256, 255 * sigma)))


@lru_cache
def _speckle_table(sigma: float) -> UInt32[np.ndarray, "65536"]:
    return alias_table(_normal(_VALUES * sigma))


@lru_cache
def _shot_table(photons: float) -> UInt32[np.ndarray, "65536"]:
    counts = np.arange(int(photons * 1.1) + 60)
    cumulative = pdtr(counts[None], _VALUES[:, None] / 255 * photons)
    mass = np.diff(cumulative, axis=1, prepend=0)
    mass[:, -1] += 1 - cumulative[:, -1]
    outputs = (np.clip(counts / photons, 0, 1) * 255).astype(np.uint8)
    return alias_table(np.stack([np.bincount(outputs, weights=row, minlength=256) for row in mass]))


@lru_cache
def _impulse_table(amount: float) -> UInt32[np.ndarray, "65536"]:
    probabilities = (1 - amount) * np.eye(256)
    probabilities[:, [0, 255]] += amount / 2
    return alias_table(probabilities)


def _normal(deviations: Float[np.ndarray, "256"]) -> Float[np.ndarray, "256 256"]:
    """P(floor(clip(N(value, deviation), 0, 255)) = out): the float is cut, not rounded, to a byte."""
    with np.errstate(divide="ignore"):
        upper = ndtr((_VALUES[None] + 1 - _VALUES[:, None]) / deviations[:, None])
    upper[:, 255] = 1
    return np.diff(upper, axis=1, prepend=0)


def alias_table(probabilities: Float[np.ndarray, "256 256"]) -> UInt32[np.ndarray, "65536"]:
    """Walker's table (Vose's construction) of each row: the threshold in the high 24 bits, the alias in the low 8."""
    entries = np.empty((256, 256), np.uint32)
    for row, entry in zip(probabilities, entries, strict=True):
        shares, aliases = (row * 256).tolist(), list(range(256))
        small = [column for column, share in enumerate(shares) if share < 1]
        large = [column for column, share in enumerate(shares) if share >= 1]
        while small and large:
            poor, rich = small.pop(), large[-1]
            aliases[poor] = rich
            shares[rich] -= 1 - shares[poor]
            if shares[rich] < 1:
                small.append(large.pop())
        for column in small + large:  # what is left differs from 1 by rounding only, and is its own alias
            shares[column] = 1.0
        thresholds = np.minimum(np.rint(np.array(shares) * 2**24), 2**24 - 1).astype(np.uint32)
        entry[:] = thresholds << 8 | np.array(aliases, np.uint32)
    return entries.ravel()
