import numpy as np
import pytest
from numpy.random import SFC64, Generator
from scipy import ndimage
from scipy.fft import dctn, idctn

from bacs.corruptions import corrupt, elastic
from bacs.corruptions.constants import Elastic


def test_without_jitter_and_displacement_nothing_moves(small):
    out = elastic.elastic_transform(small[:2], Elastic(0.0, 0.0, 0.0), [Generator(SFC64(0)), Generator(SFC64(1))])
    assert (out == small[:2]).all()


def test_a_flat_image_stays_flat():
    flat = np.full((3, 40, 32, 3), 201, np.uint8)
    for constants in ("cifar", "imagenet"):
        assert (corrupt(flat, "elastic_transform", 5, constants=constants) == 201).all()


@pytest.mark.parametrize("sigma", [0.6, 5.0, 30.0])
def test_cosine_gains_are_scipys_mirrored_gaussian(sigma):
    field = np.random.default_rng(0).standard_normal((40, 56))
    gains = elastic._cosine_gains(40, sigma)[:, None] * elastic._cosine_gains(56, sigma)
    expected = ndimage.gaussian_filter(field, sigma, mode="reflect", truncate=3)
    assert abs(idctn(dctn(field) * gains) - expected).max() < 1e-12


def test_the_affine_map_is_undone_by_its_inverse():
    height, width, jitter = 60, 48, 4.0
    inverse = elastic._inverse_affine(height, width, jitter, Generator(SFC64(7)))
    moves = Generator(SFC64(7)).uniform(-jitter, jitter, size=(3, 2))
    corners = np.array([[24 + 16, 30 + 16], [24 + 16, 30 - 16], [24 - 16, 30 - 16]])
    assert abs((corners + moves) @ inverse[:, :2].T + inverse[:, 2] - corners).max() < 1e-9


@pytest.mark.parametrize(("half_sample", "mode"), [(True, "reflect"), (False, "mirror")])
def test_interpolation_is_scipys(half_sample, mode):
    rng = np.random.default_rng(0)
    planes = rng.uniform(0, 255, (2, 3, 9, 14)).astype(np.float32)
    y, x = (rng.uniform(-60, 60, (3, 9, 14)).astype(np.float32) for _ in range(2))
    ours = elastic._interpolate(planes, y, x, half_sample=half_sample)
    for channel in range(2):
        for image in range(3):
            where = (y[image], x[image])
            expected = ndimage.map_coordinates(planes[channel, image], where, order=1, mode=mode)
            assert abs(ours[channel, image] - expected).max() < 0.01


def test_displacement_has_the_size_that_the_constants_ask_for():
    constants, side = Elastic(0.1, 0.04, 0.0), 64
    shifts = np.stack([elastic._displacement(side, side, constants, Generator(SFC64(seed))) for seed in range(20)])
    # Uniform noise has deviation 1/sqrt(3); a Gaussian of sigma pixels divides it by 2 sqrt(pi) sigma.
    expected = 0.1 * side / np.sqrt(3) / (2 * np.sqrt(np.pi) * 0.04 * side)
    assert abs(shifts.std() / expected - 1) < 0.1
    assert abs(shifts.mean()) < 0.05
