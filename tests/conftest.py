"""Small ensembles that the tests share. One thread: results are then the same on every machine."""

from importlib.util import find_spec

import pytest
import torch

import bacs
from small import small_member
from torchvision_operators import import_torchvision

pytest_plugins = ["needs"]

torch.set_num_threads(1)
if find_spec("torchvision"):
    import_torchvision()  # before torchmetrics does, and fails


@pytest.fixture
def ensemble():
    """Three members of 5 classes for images of 3 channels."""
    return bacs.Ensemble([small_member(seed) for seed in range(3)])


@pytest.fixture
def images():
    """40 images of 3 x 12 x 12, with a shift in mean and contrast."""
    return 1.5 * torch.randn(40, 3, 12, 12, generator=torch.Generator().manual_seed(1)) + 0.5


@pytest.fixture
def labels():
    return torch.arange(40) % 5
