"""timm's models by name, and their preprocessing."""

import pytest
import torch
from PIL import Image

import bacs
from integration.libraries import check_contract, library

timm = library("timm")

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
def test_a_model_by_name_comes_back_by_timms_own_function(name, tmp_path):
    arguments, norm_affine = MODELS[name]
    architecture = bacs.Architecture("timm:create_model", {"model_name": name, "num_classes": 5} | arguments)
    check_contract(
        lambda: timm.create_model(**architecture.arguments),
        tmp_path / "run",
        norm_affine=norm_affine,
        architecture=architecture,
        source="timm:create_model",
    )


def test_preprocessing_comes_from_the_models_own_configuration():
    model = timm.create_model("resnet18", num_classes=5)
    config = timm.data.resolve_data_config(model.pretrained_cfg)
    preprocessing = bacs.Preprocessing(
        config["mean"],
        config["std"],
        size=config["input_size"][1:],
        crop=config["crop_pct"],
        interpolation=config["interpolation"],
    )
    transform = timm.data.create_transform(**config)
    generator = torch.Generator().manual_seed(0)
    smooth = torch.nn.functional.interpolate(torch.rand(1, 3, 6, 6, generator=generator), (320, 280), mode="bilinear")
    pixels = (255 * smooth[0]).byte().permute(1, 2, 0)
    expected = transform(Image.fromarray(pixels.numpy()))
    # timm resizes and crops in two roundings, bacs in one: the same picture up to a fraction of a pixel.
    assert (preprocessing(pixels[None])[0] - expected).abs().mean() < 0.02
    assert preprocessing(pixels[None])[0].shape == expected.shape
