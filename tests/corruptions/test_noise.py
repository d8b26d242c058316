import numpy as np
import pytest
from scipy import stats

from bacs.corruptions import corrupt, noise
from bacs.corruptions.constants import CONSTANTS

SIDE = 200


def flat(value: int) -> np.ndarray:
    return np.full((1, SIDE, SIDE, 1), value, np.uint8)


def cut(values: np.ndarray) -> np.ndarray:
    return (np.clip(values, 0, 1) * 255).astype(np.uint8).astype(float)


def simulate(name: str, value: int, strength: float) -> np.ndarray:
    """The definition, with NumPy's own normal and Poisson draws."""
    rng, x, size = np.random.default_rng(1), value / 255, 400_000
    match name:
        case "gaussian_noise":
            return cut(x + rng.normal(scale=strength, size=size))
        case "shot_noise":
            return cut(rng.poisson(x * strength, size=size) / strength)
        case "speckle_noise":
            return cut(x + x * rng.normal(scale=strength, size=size))
    raise AssertionError(name)


@pytest.mark.parametrize("constants", ["cifar", "imagenet"])
@pytest.mark.parametrize("name", ["gaussian_noise", "shot_noise", "speckle_noise"])
@pytest.mark.parametrize("value", [0, 3, 128, 250, 255])
def test_values_are_distributed_as_the_definition_says(name, value, constants):
    for severity in (1, 5):
        expected = simulate(name, value, CONSTANTS[constants][name][severity - 1])
        ours = corrupt(flat(value), name, severity, constants=constants).ravel()
        if expected.std() == 0:
            assert (ours == value).all()
            continue
        # Five standard errors of a mean over 40,000; the deviation has about the same error.
        tolerance = 5 * expected.std() / SIDE + 1e-3
        assert abs(ours.mean() - expected.mean()) < tolerance
        assert abs(ours.std() - expected.std()) < 2 * tolerance
        # Values that are rare stand together in one column, so that two are always there to be compared.
        counts = np.array([np.bincount(part.astype(int), minlength=256) for part in (ours, expected)])
        rare = counts[1] <= 500
        table = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
        table = table[:, table.sum(axis=0) > 0]
        assert table.shape[1] >= 2
        assert stats.chi2_contingency(table).pvalue > 1e-5


@pytest.mark.parametrize(("constants", "severity", "amount"), [("cifar", 5, 0.07), ("imagenet", 5, 0.27)])
def test_impulses_are_salt_and_pepper_in_equal_parts(constants, severity, amount):
    ours = corrupt(flat(100), "impulse_noise", severity, constants=constants).ravel()
    assert set(np.unique(ours)) == {0, 100, 255}
    error = 5 * np.sqrt(amount / 2) / SIDE
    assert abs((ours == 0).mean() - amount / 2) < error
    assert abs((ours == 255).mean() - amount / 2) < error


def test_channels_and_pixels_are_independent():
    ours = corrupt(np.full((1, SIDE, SIDE, 3), 128, np.uint8), "gaussian_noise", 5)[0].astype(float)
    assert abs(np.corrcoef(ours.reshape(-1, 3).T)[0, 1]) < 5 / SIDE
    assert abs(np.corrcoef(ours[:, 1:, 0].ravel(), ours[:, :-1, 0].ravel())[0, 1]) < 5 / SIDE


def test_alias_table_holds_the_probabilities_it_was_made_from():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.full(256, 0.05), size=256)
    entries = noise.alias_table(probabilities).reshape(256, 256)
    threshold, alias = (entries >> 8) / 2**24, entries & 255
    found = threshold / 256
    for row in range(256):
        found[row] += np.bincount(alias[row], weights=(1 - threshold[row]) / 256, minlength=256)
    assert abs(found - probabilities).max() < 1e-7
