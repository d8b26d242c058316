"""What holds for all 19 corruptions."""

import colorsys
import inspect
import itertools
import threading

import numpy as np
import pytest

from bacs.corruptions import TEST, VALIDATION, corrupt
from bacs.corruptions.constants import CONSTANTS

ALL = TEST + VALIDATION
BOTH = ("cifar", "imagenet")

IN_ORDER = ((1, 2, 3, 4, 5),)
# Where the plain definitions are in another order on photographs too (results/corruptions/fidelity.json, "psnr"): from
# weak to strong, as far as that does not depend on the picture.
OTHER_ORDERS = {
    ("cifar", "motion_blur"): ((1, 2, 3, 5), (2, 4, 5)),  # 3 and 4 have the same sigma
    ("cifar", "glass_blur"): tuple(itertools.product((1, 2, 3), (4, 5))),  # 4 and 5 have twice the rounds
    ("cifar", "elastic_transform"): ((5, 4, 3, 2, 1),),
    ("cifar", "spatter"): ((1, 2, 3), (2, 4, 5)),  # water, then mud
    ("imagenet", "glass_blur"): ((1, 4, 3), (2, 4, 5)),
    ("imagenet", "elastic_transform"): ((3, 5, 1, 2), (4, 5)),
}


def test_catalogue_has_fifteen_and_four_in_the_published_order():
    assert " ".join(TEST) == (
        "gaussian_noise shot_noise impulse_noise defocus_blur glass_blur motion_blur zoom_blur snow frost fog "
        "brightness contrast elastic_transform pixelate jpeg_compression"
    )
    assert VALIDATION == ("speckle_noise", "gaussian_blur", "spatter", "saturate")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", [(2, 8, 8, 3), (2, 28, 28, 1), (1, 45, 30, 3), (1, 33, 64, 1), (1, 3, 3, 3)])
def test_any_size_and_one_or_three_channels(name, shape):
    images = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    before = images.copy()
    for constants in BOTH:
        for severity in (1, 2, 3, 4, 5):
            out = corrupt(images, name, severity, constants=constants)
            assert out.shape == images.shape
            assert out.dtype == np.uint8
            assert not np.shares_memory(out, images)
    assert (images == before).all()


@pytest.mark.parametrize("constants", BOTH)
@pytest.mark.parametrize("name", ALL)
def test_an_image_alone_equals_the_same_image_in_a_batch(name, constants, small):
    whole = corrupt(small, name, 3, seed=5, constants=constants)
    for index in (0, 7, 23):
        alone = corrupt(small[index : index + 1], name, 3, seed=5, constants=constants, first_index=index)
        assert (alone[0] == whole[index]).all()


@pytest.mark.parametrize("name", ALL)
def test_parts_in_any_order_equal_the_whole(name, small):
    whole = corrupt(small, name, 4)
    for start, stop in ((17, 24), (0, 5), (5, 17)):
        assert (corrupt(small[start:stop], name, 4, first_index=start) == whole[start:stop]).all()


@pytest.mark.parametrize("name", ALL)
def test_threads_do_not_change_the_result(name, large):
    many = np.concatenate([large] * 3)
    one = corrupt(many, name, 5, constants="imagenet", threads=1)
    for threads in (2, 5):
        assert (corrupt(many, name, 5, constants="imagenet", threads=threads) == one).all()


@pytest.mark.parametrize("name", ALL)
def test_memory_layout_does_not_matter(name, small):
    turned = np.asfortranarray(small[:3])
    spaced = np.repeat(small[:3], 2, axis=2)[:, :, ::2]
    expected = corrupt(small[:3], name, 2)
    assert (corrupt(turned, name, 2) == expected).all()
    assert (corrupt(spaced, name, 2) == expected).all()


RANDOM = [
    name
    for name in ALL
    if name
    not in (
        "defocus_blur",
        "zoom_blur",
        "brightness",
        "contrast",
        "pixelate",
        "jpeg_compression",
        "gaussian_blur",
        "saturate",
    )
]


@pytest.mark.parametrize("name", RANDOM)
def test_seed_severity_and_index_each_change_the_draws(name, small, monkeypatch):
    # With one strength at all severities only the draws can differ. Two of eight may meet: directions are few.
    monkeypatch.setitem(CONSTANTS["cifar"], name, CONSTANTS["cifar"][name][4:] * 5)
    images = np.stack([small[0]] * 8)
    out = corrupt(images, name, 5)
    assert (corrupt(images, name, 5) == out).all()
    assert (corrupt(images, name, 5, seed=1) != out).any(axis=(1, 2, 3)).sum() >= 6
    for severity in (1, 2, 3, 4):
        assert (corrupt(images, name, severity) != out).any(axis=(1, 2, 3)).sum() >= 6
    assert (corrupt(images, name, 5, first_index=8) != out).any(axis=(1, 2, 3)).sum() >= 6
    assert (out[0] != out[1:]).any(axis=(1, 2, 3)).all()


def test_eleven_corruptions_are_random():
    assert len(RANDOM) == 11


def test_global_random_state_is_left_alone(small):
    before = np.random.get_state()[1].copy()
    for name in ALL:
        corrupt(small[:2], name, 5)
    assert (np.random.get_state()[1] == before).all()


def test_no_thread_is_left_behind(large):
    before = threading.active_count()
    corrupt(np.concatenate([large] * 3), "contrast", 1, threads=4)
    assert threading.active_count() == before


@pytest.mark.parametrize("constants", BOTH)
@pytest.mark.parametrize("name", [name for name in ALL if name not in ("frost", "saturate")])
def test_distance_to_the_clean_image_grows_in_the_order_of_the_definition(name, constants, small, large):
    images = small if constants == "cifar" else np.concatenate([large, large[:, ::-1], large[:, :, ::-1]])
    distances = {
        severity: np.mean((corrupt(images, name, severity, constants=constants).astype(float) - images) ** 2)
        for severity in (1, 2, 3, 4, 5)
    }
    chains = OTHER_ORDERS.get((constants, name), IN_ORDER)
    assert {severity for chain in chains for severity in chain} == {1, 2, 3, 4, 5}
    assert min(distances.values()) > 0
    for chain in chains:
        for weaker, stronger in itertools.pairwise(chain):
            assert distances[weaker] < distances[stronger], distances


@pytest.mark.parametrize("constants", BOTH)
def test_frost_on_black_is_as_bright_as_its_weight(constants):
    """How far frost is from a picture depends on the picture; on black, it is the weighted frost alone."""
    black = np.zeros((200, 32, 32, 3), np.uint8)
    means = [corrupt(black, "frost", severity, constants=constants).mean() for severity in (1, 2, 3, 4, 5)]
    weights = {"cifar": (0.2, 0.3, 0.4, 0.4, 0.45), "imagenet": (0.4, 0.6, 0.7, 0.7, 0.75)}[constants]
    relative = np.array(means) / means[0]
    np.testing.assert_allclose(relative, np.array(weights) / weights[0], rtol=0.1)  # of 200 random parts


@pytest.mark.parametrize("constants", BOTH)
def test_saturation_is_scaled_by_the_factor_and_moved_by_the_offset(constants):
    """Distances say nothing here: 1 and 2 take colour away, 3 to 5 add some."""
    rows = {
        "cifar": ((0.3, 0), (0.1, 0), (1.5, 0), (2.0, 0.1), (2.5, 0.2)),
        "imagenet": ((0.3, 0), (0.1, 0), (2.0, 0), (5.0, 0.1), (20.0, 0.2)),
    }[constants]
    colour = colorsys.hsv_to_rgb(0.6, 0.2, 0.8)
    image = np.tile(np.round(np.array(colour) * 255).astype(np.uint8), (1, 8, 8, 1))
    for severity, (factor, offset) in enumerate(rows, start=1):
        pixel = corrupt(image, "saturate", severity, constants=constants)[0, 4, 4] / 255
        hue, saturation, value = colorsys.rgb_to_hsv(*pixel)
        assert saturation == pytest.approx(min(1.0, 0.2 * factor + offset), abs=0.02)
        assert value == pytest.approx(0.8, abs=0.01)
        assert hue == pytest.approx(0.6, abs=0.05)


def test_an_empty_batch_comes_back_empty():
    assert corrupt(np.empty((0, 32, 32, 3), np.uint8), "fog", 1).shape == (0, 32, 32, 3)


GOOD = np.zeros((1, 8, 8, 3), np.uint8)
unchecked = inspect.unwrap(corrupt)  # without the type checks of this test run, as users call it


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": GOOD.astype(np.float32)}, "images must be uint8 (0..255), got float32"),
        ({"images": GOOD[0]}, "images must have 4 axes [batch, height, width, channels], got shape (8, 8, 3)"),
        ({"images": GOOD[..., :2]}, "images must have 1 or 3 channels in the last axis, got shape (1, 8, 8, 2)"),
        (
            {"images": np.zeros((1, 3, 8, 8), np.uint8)},
            "images must have 1 or 3 channels in the last axis, got shape (1, 3, 8, 8)",
        ),
        ({"images": GOOD[:, :0]}, "images must have at least one pixel, got shape (1, 0, 8, 3)"),
        ({"name": "gausian_noise"}, "(did you mean 'gaussian_noise'?)"),
        ({"severity": 0}, "severity must be an integer 1..5, got 0"),
        ({"severity": 6}, "severity must be an integer 1..5, got 6"),
        ({"severity": 2.5}, "severity must be an integer 1..5, got 2.5"),
        ({"severity": 2.0}, "severity must be an integer 1..5, got 2.0"),
        ({"severity": True}, "severity must be an integer 1..5, got True"),
        ({"severity": "3"}, "severity must be an integer 1..5, got '3'"),
        ({"constants": "cifar10"}, "constants must be one of cifar, imagenet; got 'cifar10' (did you mean 'cifar'?)"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"seed": 0.5}, "seed must be an integer >= 0, got 0.5"),
        ({"first_index": -3}, "first_index must be an integer >= 0, got -3"),
        ({"threads": 0}, "threads must be an integer >= 1, got 0"),
        (
            {"name": "elastic_transform", "images": GOOD[:, :2]},
            "images must be at least 3 x 3 pixels for elastic_transform, got 2 x 8",
        ),
    ],
)
def test_a_wrong_argument_is_named_with_its_rule_and_value(change, message):
    arguments = {"images": GOOD, "name": "fog", "severity": 1} | change
    with pytest.raises(ValueError) as caught:
        unchecked(**arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_list_is_not_an_array():
    with pytest.raises(TypeError, match="images must be a uint8 array"):
        unchecked([[0]], "fog", 1)


def test_numpy_integers_are_integers():
    assert unchecked(GOOD, "fog", np.int64(1), seed=np.uint8(3)).shape == GOOD.shape
