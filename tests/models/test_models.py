import pytest
import torch

from bacs import models
from bacs.models.efficientnet_lite0 import SameConv2d


def count(model):
    return sum(p.numel() for p in model.parameters())


def test_resnet26_has_the_published_number_of_parameters():
    assert count(models.resnet26()) == 369_690


def test_resnet50v2_has_the_number_of_parameters_of_its_layers():
    """Counted by hand from the widths: stem, bottlenecks, final norm, head."""
    expected, inputs = 3 * 64 * 49, 64
    for index, blocks in enumerate((3, 4, 6, 3)):
        outputs, inner = 256 * 2**index, 64 * 2**index
        for position in range(blocks):
            expected += 2 * inputs + inputs * inner + 2 * inner + 9 * inner * inner + 2 * inner + inner * outputs
            expected += inputs * outputs if position == 0 else 0
            inputs = outputs
    expected += 2 * 2048 + 2048 * 1000 + 1000
    assert count(models.resnet50v2()) == expected


def test_cifar_resnets_have_the_published_numbers_of_parameters():
    """0.27 M, 0.46 M, 0.66 M and 0.85 M in the paper's table 6, to the last weight in every re-implementation."""
    counts = {depth: count(models.cifar_resnet(depth=depth)) for depth in (20, 32, 44, 56)}
    assert counts == {20: 269_722, 32: 464_154, 44: 658_586, 56: 853_018}


def test_efficientnet_lite0_has_the_published_number_of_parameters():
    """4,652,008 in the published weight file, where batch norm's buffers come on top."""
    model = models.efficientnet_lite0()
    assert count(model) == 4_652_008
    assert sum(isinstance(layer, torch.nn.BatchNorm2d) for layer in model.modules()) == 49


@pytest.mark.parametrize(
    ("kernel", "stride", "size", "pads"),
    [(3, 2, 8, (0, 1)), (3, 2, 7, (1, 1)), (5, 2, 8, (1, 2)), (5, 1, 7, (2, 2)), (1, 1, 5, (0, 0))],
)
def test_padding_is_tensorflows_same(kernel, stride, size, pads):
    """By its definition: ceil(size / stride) outputs, and of an odd number of zeros the larger half at the end."""
    layer = SameConv2d(2, 2, kernel, stride, bias=False)
    x = torch.randn(1, 2, size, size)
    expected = torch.nn.functional.conv2d(torch.nn.functional.pad(x, pads * 2), layer.weight, stride=stride)
    assert expected.shape[2:] == (-(-size // stride),) * 2
    torch.testing.assert_close(layer(x), expected)


def test_a_plain_shortcut_drops_pixels_and_pads_channels():
    block = models.cifar_resnet(depth=8, width=2).layer2[0].eval()
    torch.nn.init.zeros_(block.bn2.weight)
    x = torch.rand(1, 2, 4, 4)
    out = block(x)
    assert torch.equal(out[:, 1:3], x[:, :, ::2, ::2])
    assert not out[:, [0, 3]].any()


@pytest.mark.parametrize(
    ("name", "size", "arguments"),
    [
        ("resnet26", 28, {"channels": 1, "classes": 3, "width": 4}),
        ("resnet26", 28, {"channels": 1, "classes": 3, "width": 4, "stem_stride": 2}),
        ("resnet26", 32, {"channels": 6, "classes": 100, "width": 8, "blocks": 2}),
        ("cifar_resnet", 32, {"channels": 1, "classes": 4, "depth": 8, "width": 4}),
        ("resnet50v2", 64, {"channels": 1, "classes": 7, "width": 8}),
        ("efficientnet_lite0", 64, {"channels": 1, "classes": 7}),
    ],
)
def test_any_channels_and_classes(name, size, arguments):
    model = models.build(name, **arguments).eval()
    assert model(torch.randn(2, arguments["channels"], size, size)).shape == (2, arguments["classes"])
    assert models.built_from(model) == (name, arguments)


def test_resnet26_halves_the_picture_twice_and_has_26_weighted_layers():
    model = models.resnet26(width=4)
    layers = [
        m for n, m in model.named_modules() if isinstance(m, (torch.nn.Conv2d, torch.nn.Linear)) and "shortcut" not in n
    ]
    assert len(layers) == 26
    shapes = []
    for stage in model.stages:
        stage.register_forward_hook(lambda m, i, o: shapes.append(tuple(o.shape[1:])))
    model.eval()(torch.randn(1, 3, 32, 32))
    assert shapes == [(4, 32, 32), (8, 16, 16), (16, 8, 8)]


def test_resnet50v2_begins_with_equal_chances():
    model = models.resnet50v2(classes=4, width=8).eval()
    torch.testing.assert_close(model(torch.randn(2, 3, 64, 64)).softmax(dim=1), torch.full((2, 4), 0.25))


def test_wrong_names_and_numbers_are_named():
    with pytest.raises(ValueError, match=r"model must be one of .*; got 'resnet25' \(did you mean 'resnet26'"):
        models.build("resnet25")
    with pytest.raises(ValueError, match=r"depth must be 6n \+ 2, such as 20, 32, 44 or 56, got 18"):
        models.cifar_resnet(depth=18)
    with pytest.raises(ValueError, match="width must be at least 1, got 0"):
        models.resnet26(width=0)
