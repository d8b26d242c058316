"""Preprocessing: the arithmetic, the geometry, and that all of it travels with the checkpoint."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import bacs
from bacs.errors import CheckpointError
from bacs.files import seal
from bacs.preprocessing import Preprocessing
from bacs.training.fit import preprocessing_of
from bacs.training.recipe import read as read_recipe
from small import small_member

RECIPES = Path(bacs.__file__).parent / "recipes"
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def pixels(rng, *shape):
    return rng.integers(0, 256, shape, dtype=np.uint8)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_efficientnet_lite_takes_x_minus_127_by_128(rng):
    images = pixels(rng, 2, 6, 5, 3)
    found = Preprocessing((127 / 255,) * 3, (128 / 255,) * 3)(torch.from_numpy(images))
    np.testing.assert_allclose(found.permute(0, 2, 3, 1), (images.astype(float) - 127) / 128, atol=1e-6)


def test_mean_and_std_are_in_the_order_of_the_model(rng):
    images = pixels(rng, 2, 6, 5, 3)
    mean, std = (103.94, 116.78, 123.68), (57.1, 57.2, 57.3)  # blue, green, red, as models from OpenCV state them
    scaled = Preprocessing([m / 255 for m in mean], [s / 255 for s in std], channel_order="bgr")
    expected = (images[..., [2, 1, 0]] - np.array(mean)) / np.array(std)
    np.testing.assert_allclose(scaled(torch.from_numpy(images)).permute(0, 2, 3, 1), expected, atol=1e-5)


def test_the_usual_evaluation_is_shorter_side_to_256_then_the_central_224(rng):
    picture = Image.fromarray(pixels(rng, 512, 640, 3))
    found = np.asarray(Preprocessing(**IMAGENET, size=(224, 224), crop=224 / 256).fit_picture(picture))
    expected = picture.resize((320, 256), Image.Resampling.BILINEAR).crop((48, 16, 272, 240))
    difference = np.abs(found.astype(int) - np.asarray(expected).astype(int))
    assert difference[2:-2, 2:-2].max() <= 1  # at the border the recipe also sees pixels outside of the crop


def test_crop_keeps_shapes_and_squash_does_not():
    # A disk in the middle of a wide picture stays round under crop and becomes an ellipse under squash.
    y, x = np.mgrid[:60, :120]
    picture = Image.fromarray((((x - 60) ** 2 + (y - 30) ** 2 < 20**2) * 255).astype(np.uint8))
    cropped, squashed = (
        np.asarray(Preprocessing((0,), (1,), size=(30, 30), crop=crop).fit_picture(picture)) > 127
        for crop in (1.0, None)
    )
    widths = [(int(image.any(axis=0).sum()), int(image.any(axis=1).sum())) for image in (cropped, squashed)]
    np.testing.assert_allclose(widths, [(20, 20), (10, 20)], atol=1)


@pytest.mark.parametrize("size", [(7, 13), (224, 224), (1, 1)])
@pytest.mark.parametrize("crop", [1.0, 0.875, None])
def test_every_shape_of_picture_becomes_the_models_size(rng, size, crop):
    fit = Preprocessing((0.5,) * 3, (0.5,) * 3, size=size, crop=crop)
    for height, width in ((1, 1), (3, 500), (501, 7), (29, 31), (333, 97), (7, 13)):
        assert fit.fit_picture(Image.fromarray(pixels(rng, height, width, 3))).size == size[::-1]


@pytest.mark.parametrize("channels", [1, 3])
def test_arrays_of_another_size_become_what_their_pictures_would(rng, channels):
    images = pixels(rng, 3, 20, 30, channels)
    fit = Preprocessing((0.0,) * channels, (1 / 255,) * channels, size=(8, 8), crop=0.9, interpolation="bicubic")
    found = fit(torch.from_numpy(images)).permute(0, 2, 3, 1)
    for image, row in zip(images, found, strict=True):
        picture = Image.fromarray(image.squeeze(-1) if channels == 1 else image)
        expected = picture.resize((8, 8), Image.Resampling.BICUBIC, box=(6, 1, 24, 19))
        np.testing.assert_allclose(row, np.asarray(expected).reshape(8, 8, channels), atol=1e-3)


def test_an_image_of_the_models_size_is_not_cropped_again(rng):
    images = torch.from_numpy(pixels(rng, 2, 8, 8, 3))
    fit = Preprocessing(**IMAGENET, size=(8, 8), crop=0.5)
    assert torch.equal(fit(images), Preprocessing(**IMAGENET)(images))


def test_members_of_different_sizes_prepare_their_own(rng):
    images = torch.from_numpy(pixels(rng, 12, 20, 20, 3))
    sizes = [(12, 12), (16, 10)]
    members = [replace(small_member(0), preprocessing=Preprocessing(**IMAGENET, size=size)) for size in sizes]
    alone = [bacs.Ensemble([member]).predict(images) for member in members]
    assert not torch.allclose(alone[0], alone[1], atol=1e-4)
    torch.testing.assert_close(bacs.Ensemble(members).predict(images), (alone[0] + alone[1]) / 2)


def test_all_of_it_travels_with_the_checkpoint(tmp_path, rng):
    given = Preprocessing(**IMAGENET, size=(10, 12), crop=None, interpolation="bicubic", channel_order="bgr")
    ensemble = bacs.Ensemble([replace(small_member(), preprocessing=given)])
    ensemble.save(tmp_path / "run")
    again = bacs.load(tmp_path / "run")
    assert again.members[0].preprocessing == given
    images = torch.from_numpy(pixels(rng, 4, 16, 16, 3))
    assert torch.equal(ensemble.predict(images), again.predict(images))


def test_what_bacs_trains_knows_its_size(rng):
    assert preprocessing_of(torch.from_numpy(pixels(rng, 4, 9, 7, 3))).size == (9, 7)
    given = read_recipe(RECIPES / "imagenet.toml").given_preprocessing()
    assert given == Preprocessing(**IMAGENET, size=(224, 224), crop=224 / 256, interpolation="bicubic")


def test_a_checkpoint_of_before_sizes_means_what_it_did(tmp_path, rng):
    bacs.Ensemble([replace(small_member(), preprocessing=Preprocessing(**IMAGENET))]).save(tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "bacs.json").read_text())
    stored = manifest["members"][0]["preprocessing"]
    manifest["members"][0]["preprocessing"] = {name: stored[name] for name in ("mean", "std")}
    del manifest["sha256"]
    manifest["format"] = 2
    (tmp_path / "run" / "bacs.json").write_text(json.dumps(manifest))
    member = bacs.load(tmp_path / "run").members[0]
    images = pixels(rng, 2, 9, 7, 3)
    expected = (images / 255 - np.array(IMAGENET["mean"])) / np.array(IMAGENET["std"])
    np.testing.assert_allclose(member.prepare(torch.from_numpy(images)).permute(0, 2, 3, 1), expected, atol=1e-5)


def test_a_checkpoint_that_asks_for_what_is_unknown_is_refused(tmp_path):
    bacs.Ensemble([replace(small_member(), preprocessing=Preprocessing(**IMAGENET))]).save(tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "bacs.json").read_text().replace('"channel_order"', '"colour_space"'))
    del manifest["sha256"]
    (tmp_path / "run" / "bacs.json").write_text(json.dumps(seal(manifest)))
    with pytest.raises(CheckpointError, match="preprocessing has an unknown key 'colour_space'; it may have mean, std"):
        bacs.load(tmp_path / "run")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean": (), "std": ()}, "one value per channel, got 0 and 0"),
        ({"mean": (float("nan"),) * 3}, "mean must be finite"),
        ({"size": 224}, r"size must be \(height, width\) in pixels, got 224"),
        ({"size": (224, 0)}, r"size must be \(height, width\) in pixels, got \(224, 0\)"),
        ({"size": (224.0, 224)}, "size must be"),
        ({"crop": 1.5}, "crop must be above 0 and at most 1, or None to squash the picture, got 1.5"),
        ({"interpolation": "cubic"}, "did you mean 'bicubic'"),
        ({"channel_order": "BGR"}, "channel_order must be one of rgb, bgr"),
        ({"mean": (0.5,), "std": (0.5,), "channel_order": "bgr"}, "'bgr' needs 3 channels, got 1"),
    ],
)
def test_impossible_wishes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Preprocessing(**(IMAGENET | arguments))


def test_images_that_cannot_be_resized_are_named():
    four = Preprocessing((0.5,) * 4, (0.5,) * 4, size=(8, 8))
    with pytest.raises(ValueError, match=r"only images of 1 or 3 channels can be resized to \(8, 8\), got 4"):
        four(torch.zeros(2, 9, 9, 4, dtype=torch.uint8))
    assert four(torch.zeros(2, 8, 8, 4, dtype=torch.uint8)).shape == (2, 4, 8, 8)
