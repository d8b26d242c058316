"""The layout of memory changes speed, and must not change results or crash."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import bacs
from bacs.adaptation import loop
from bacs.layout import arrange_images, layout_of
from bacs.methods.prepare import mover_for, working_copy
from bacs.methods.settings import Settings
from small import small_member, small_model


@pytest.mark.parametrize(
    ("model", "layout"),
    [
        (small_model(width=16), torch.channels_last),
        (small_model(width=8), torch.contiguous_format),
        (nn.Linear(3, 2), torch.contiguous_format),
        (nn.Sequential(nn.Conv2d(3, 4, 3)), torch.channels_last),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv3d(1, 1, 3)), torch.contiguous_format),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4)), torch.contiguous_format),
    ],
)
def test_convolutions_get_channels_last_where_it_is_safe(model, layout):
    assert layout_of(model) == layout
    images = torch.randn(3, 3, 8, 8)
    assert arrange_images(images, model).is_contiguous(memory_format=layout)
    assert torch.equal(arrange_images(images, model), images)


def test_both_layouts_give_the_same_adapted_weights_within_rounding(images):
    ensemble = bacs.Ensemble([small_member(width=16)])
    adapted = bacs.adapt(ensemble, images, "bacs", learning_rate=0.01).members[0].model
    assert adapted.conv.weight.is_contiguous()
    member = working_copy(ensemble.members[0])
    member.model.to(memory_format=torch.contiguous_format)
    row = bacs.METHODS["bacs"]
    loop.step([mover_for(member, row, Settings(learning_rate=0.01).of(row), None)], [images])
    for a, b in zip(adapted.parameters(), member.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_group_norm_survives_adapting_its_scales_and_shifts_alone():
    """In a process of its own: what is tested for is a crash."""
    code = (
        "import torch, bacs\n"
        "from torch import nn\n"
        "from bacs.parameters import read\n"
        "layers = nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)\n"
        "model = nn.Sequential(*layers).eval()\n"
        "member = bacs.Member(model, bacs.posteriors.flat.init(read(model)))\n"
        "images = torch.randn(16, 3, 32, 32).contiguous(memory_format=torch.channels_last)\n"
        "bacs.adapt(bacs.Ensemble([member]), images, 'tent', batch_size=8)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_narrow_networks_survive_odd_batches_on_two_threads():
    """In a process of its own: what is tested for is a crash."""
    code = (
        "import torch, bacs\n"
        "from bacs.parameters import read\n"
        "torch.set_num_threads(2)\n"
        "model = bacs.models.build('resnet26', width=8, blocks=1)\n"
        "preprocessing = bacs.Preprocessing((0.5,) * 3, (0.2,) * 3)\n"
        "member = bacs.Member(model, bacs.posteriors.flat.init(read(model)), preprocessing)\n"
        "pixels = torch.randint(0, 256, (57, 28, 28, 3), dtype=torch.uint8)\n"
        "bacs.adapt(bacs.Ensemble([member]), pixels, 'bacs-no-posterior', batch_size=19)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
