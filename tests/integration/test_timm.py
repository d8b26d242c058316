"""timm's models by name, and their preprocessing."""

import pytest
from PIL import Image

import bacs
from guide import snippet
from integration.libraries import check_contract, smooth_picture

pytestmark = pytest.mark.needs("timm")


@pytest.fixture(scope="module")
def timm():
    import timm

    return timm


MODELS = {
    "resnet10t": ({}, 28),
    "convnext_atto": ({"depths": [1, 1, 1, 1], "dims": [8, 8, 16, 16]}, 18),
    "vit_tiny_patch16_224": (
        {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 1, "num_heads": 2},
        6,
    ),
    "efficientnet_lite0": ({}, 98),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_a_model_by_name_comes_back_by_timms_own_function(timm, name, tmp_path):
    arguments, norm_affine = MODELS[name]
    architecture = bacs.Architecture("timm:create_model", {"model_name": name, "num_classes": 5} | arguments)
    check_contract(
        lambda: timm.create_model(**architecture.arguments),
        tmp_path / "run",
        norm_affine=norm_affine,
        architecture=architecture,
        source="timm:create_model",
    )


def test_preprocessing_comes_from_the_models_own_configuration(timm):
    model = timm.create_model("resnet18", num_classes=5)
    names = {"timm": timm, "bacs": bacs, "model": model}
    exec(snippet("resolve_data_config"), names)
    preprocessing, transform = names["preprocessing"], timm.data.create_transform(**names["config"])
    pixels = smooth_picture()
    expected = transform(Image.fromarray(pixels.numpy()))
    # timm resizes and crops in two roundings, bacs in one: the same picture up to a fraction of a pixel.
    assert (preprocessing(pixels[None])[0] - expected).abs().mean() < 0.02
    assert preprocessing(pixels[None])[0].shape == expected.shape
