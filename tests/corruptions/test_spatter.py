import numpy as np
import pytest
from scipy import ndimage

from bacs.corruptions import corrupt, spatter
from bacs.corruptions.constants import CONSTANTS


@pytest.mark.parametrize("share", [0.2, 0.02, 0.001])
def test_square_distance_is_scipys(share):
    marked = np.random.default_rng(0).random((3, 50, 41)) < share
    marked[:, 10, 10] = True
    expected = np.stack([ndimage.distance_transform_edt(~image) for image in marked])
    assert abs(np.sqrt(spatter.square_distance(marked)) - np.minimum(expected, 20)).max() < 1e-6


def test_without_a_mark_everything_is_far():
    assert (spatter.square_distance(np.zeros((1, 30, 5), bool)) == 400).all()


def test_edges_run_along_a_step_and_nowhere_else():
    film = np.zeros((1, 20, 20), np.uint8)
    film[:, :, 10:] = 200
    found = spatter.edges(film)[0]
    assert found[:, 9:11].any(axis=1).all()
    assert not found[:, :8].any()
    assert not found[:, 12:].any()


def test_weak_edges_survive_only_beside_strong_ones():
    film = np.zeros((2, 20, 20), np.uint8)
    film[:, :, 10:] = 20  # gradient 80: weak
    film[1, :10, 10:] = 100  # gradient 400: strong, in the same column
    found = spatter.edges(film)
    assert not found[0].any()
    assert found[1, 15:, 8:12].any()


def test_equalise_spreads_ranks_over_all_levels():
    distance = np.repeat(np.arange(16, dtype=np.float32), 16).reshape(1, 16, 16)
    levels = spatter.equalise(distance)
    assert levels[0, :, 0].tolist() == [round(255 * k / 15) for k in range(16)]
    assert (spatter.equalise(np.full((1, 4, 4), 7.5, np.float32)) == 7).all()


@pytest.mark.parametrize("constants", ["cifar", "imagenet"])
def test_water_only_adds_light_and_mud_pulls_towards_brown(constants, small):
    for severity in (1, 2, 3):
        water = corrupt(small, "spatter", severity, constants=constants)
        assert (water >= small).all()
        added = (water.astype(int) - small).max(axis=(1, 2))
        assert (added[:, 1] >= added[:, 0]).mean() > 0.8  # turquoise: more green than red
    brown = np.array([63, 42, 20])
    for severity in (4, 5):
        muddy = corrupt(small, "spatter", severity, constants=constants).astype(int)
        changed = (muddy != small).any(axis=3)
        assert 0.005 < changed.mean() < 0.6
        gap_before, gap_after = abs(small[changed] - brown), abs(muddy[changed] - brown)
        assert (gap_after <= np.ceil(0.2 * gap_before) + 1).all()


def test_the_liquid_covers_what_the_constants_say():
    strength = CONSTANTS["imagenet"]["spatter"][4]
    muddy = corrupt(np.full((4, 128, 128, 3), 255, np.uint8), "spatter", 5, constants="imagenet")
    rng = np.random.default_rng(0)
    film = ndimage.gaussian_filter(
        rng.normal(strength.mean, strength.deviation, (4, 128, 128)), (0, 1, 1), mode="nearest"
    )
    cover = ndimage.gaussian_filter((film > strength.threshold).astype(float), (0, 1.5, 1.5), mode="nearest")
    assert abs((muddy[..., 0] < 255).mean() - (cover >= 0.8).mean()) < 0.02
