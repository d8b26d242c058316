"""What holds for all 19 corruptions."""

import inspect
import threading

import numpy as np
import pytest

from bacs.corruptions import TEST, VALIDATION, corrupt

ALL = TEST + VALIDATION
BOTH = ("cifar", "imagenet")

# Where the plain definitions are not ordered on photographs either: results/corruptions/fidelity.json, "psnr".
NOT_ORDERED = {
    "cifar": {"glass_blur", "frost", "elastic_transform", "spatter", "saturate"},
    "imagenet": {"glass_blur", "frost", "elastic_transform", "saturate"},
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
def test_seed_severity_and_index_each_change_the_draws(name, small):
    images = np.stack([small[0]] * 8)
    out = corrupt(images, name, 5)
    assert (corrupt(images, name, 5) == out).all()
    assert (corrupt(images, name, 5, seed=1) != out).any()
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
@pytest.mark.parametrize("name", ALL)
def test_distance_to_the_clean_image_grows_with_severity(name, constants, small, large):
    images = small if constants == "cifar" else np.concatenate([large, large[:, ::-1], large[:, :, ::-1]])
    distances = [
        np.mean((corrupt(images, name, severity, constants=constants).astype(float) - images) ** 2)
        for severity in (1, 2, 3, 4, 5)
    ]
    assert distances[0] > 0
    if (name, constants) == ("motion_blur", "cifar"):
        del distances[3]  # severities 3 and 4 have the same sigma: equal but for the directions drawn
    if name not in NOT_ORDERED[constants]:
        assert distances == sorted(distances)


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
