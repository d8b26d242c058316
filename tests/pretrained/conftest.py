"""Images whose brightest channel is their class, and a member that has learned to tell."""

import numpy as np
import pytest
import torch

import bacs


def coloured(count, seed):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, count)
    images = random.integers(0, 120, (count, 12, 12, 3))
    images[np.arange(count), :, :, labels] += 90
    return images.astype(np.uint8), labels.astype(np.int64)


@pytest.fixture(scope="session")
def source():
    return coloured(96, seed=0)


@pytest.fixture(scope="session")
def trained(source):
    """A small network without a posterior, as people have it; tests must leave it as it is."""
    model = bacs.training.initialised(lambda: bacs.models.build("resnet26", width=4, blocks=1, classes=3), 0)
    member = bacs.training.fit(
        model, *source, epochs=4, batch_size=16, learning_rate=0.05, augment=bacs.training.Identity(), collect_from=0.0
    )
    model.zero_grad()
    return bacs.Member(member.model, bacs.posteriors.flat.init(bacs.parameters.read(model)), member.preprocessing)


@pytest.fixture
def untouched(trained):
    """Fails if a test changed the trained member."""
    before = {name: value.clone() for name, value in trained.model.state_dict().items()}
    yield trained
    assert all(torch.equal(value, trained.model.state_dict()[name]) for name, value in before.items())
    assert not trained.model.training
    assert all(p.requires_grad and p.grad is None for p in trained.model.parameters())
