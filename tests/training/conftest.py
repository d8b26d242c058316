"""Small data and a small recipe that train in a second."""

import numpy as np
import pytest

RECIPE = """
data = "{data}"
members = 2
epochs = 3
batch_size = 16
learning_rate = 0.05
collect_from = 0.3
collections_per_epoch = 2
[model]
name = "resnet26"
width = 4
blocks = 1
[augment]
name = "pad_crop_flip"
padding = 1
"""


def coloured(count, seed):
    """uint8 images of 12 x 12 whose brightest channel is their class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, count)
    images = random.integers(0, 120, (count, 12, 12, 3))
    images[np.arange(count), :, :, labels] += 90
    return images.astype(np.uint8), labels.astype(np.int64)


@pytest.fixture
def train_data():
    return coloured(60, seed=0)


@pytest.fixture
def other_data():
    return coloured(60, seed=9)


@pytest.fixture
def data_file(tmp_path):
    x_train, y_train = coloured(60, seed=0)
    x_test, y_test = coloured(30, seed=1)
    np.savez(tmp_path / "coloured.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    return tmp_path / "coloured.npz"


@pytest.fixture
def recipe_file(tmp_path, data_file):
    file = tmp_path / "recipe.toml"
    file.write_text(RECIPE.format(data=data_file))
    return file
