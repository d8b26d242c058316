"""Blobs in eight dimensions, a sensor that shifts them, and small networks that know them: auto in miniature."""

import torch
from torch import nn

import bacs
from bacs.parameters import read
from bacs.posteriors import swag_diag

CLASSES = 6
CENTRES = 2.2 * torch.randn(CLASSES, 8, generator=torch.Generator().manual_seed(0))


def blobs(count, seed, classes=tuple(range(CLASSES))):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.tensor(classes)[torch.randint(len(classes), (count,), generator=generator)]
    return CENTRES[labels] + torch.randn(count, 8, generator=generator), labels


def shifted(points):
    """Another sensor: its own gain and offset in every channel."""
    return points * torch.linspace(0.3, 2.5, 8) + torch.linspace(3, -3, 8)


def trained(seed):
    """A network with batch norm after its inputs, and a posterior of the last iterates."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = nn.BatchNorm1d(8), nn.Linear(8, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, CLASSES)
        model = nn.Sequential(*layers)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        points, labels = blobs(1200, 100 + seed)
        state = swag_diag.init(read(model))
        for step in range(150):
            chosen = torch.randperm(1200)[:128]
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(points[chosen]), labels[chosen]).backward()
            optimizer.step()
            if step >= 120:
                state = swag_diag.update(state, read(model))
    return bacs.Member(model.eval(), state)


def accuracy(ensemble, points, labels):
    return bacs.metrics.accuracy(ensemble.predict(points, batch_size=64), labels)
