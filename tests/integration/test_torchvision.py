"""torchvision's models: batch norm, layer norm, transformers and frozen batch norm."""

import pytest
from PIL import Image

import bacs
from guide import snippet
from integration.libraries import check_contract, smooth_picture

pytestmark = pytest.mark.needs("torchvision")


@pytest.fixture(scope="module")
def torchvision():
    import torchvision

    return torchvision


def test_a_resnet_by_its_import_path(torchvision, tmp_path):
    models = torchvision.models
    architecture = bacs.Architecture("torchvision.models:resnet18", {"num_classes": 5})
    check_contract(
        lambda: models.resnet18(num_classes=5),
        tmp_path / "run",
        norm_affine=40,
        architecture=architecture,
        source="torchvision.models:resnet18",
    )


def test_a_convnext_adapts_its_layer_norms(torchvision, tmp_path):
    convnext = torchvision.models.convnext
    blocks = [convnext.CNBlockConfig(8, 16, 1), convnext.CNBlockConfig(16, None, 1)]
    check_contract(lambda: convnext.ConvNeXt(blocks, num_classes=5), tmp_path / "run", norm_affine=10)


def test_a_vision_transformer(torchvision, tmp_path):
    def build():
        return torchvision.models.VisionTransformer(
            image_size=32, patch_size=8, num_layers=1, num_heads=2, hidden_dim=16, mlp_dim=32, num_classes=5
        )

    check_contract(build, tmp_path / "run", norm_affine=6)


def test_frozen_batch_norm_stays_frozen(torchvision, tmp_path):
    def build():
        return torchvision.models.resnet18(num_classes=5, norm_layer=torchvision.ops.FrozenBatchNorm2d)

    check_contract(build, tmp_path / "run", norm_affine=0)


def test_preprocessing_is_that_of_the_weights_own_transforms(torchvision):
    names = {"torchvision": torchvision, "bacs": bacs}
    exec(snippet("transforms()"), names)
    preprocessing, preset = names["preprocessing"], names["preset"]
    pixels = smooth_picture()
    expected = preset(Image.fromarray(pixels.numpy()))
    # torchvision resizes and crops in two roundings, bacs in one: the same picture up to a fraction of a pixel.
    assert preprocessing(pixels[None])[0].shape == expected.shape
    assert (preprocessing(pixels[None])[0] - expected).abs().mean() < 0.02
