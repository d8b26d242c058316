"""SWAG in a training loop of your own: three lines (marked 1, 2, 3) make any model ready for `bacs.adapt`.

Run it: python examples/own_loop.py
"""

import torch
from torch import nn

import bacs
from bacs.parameters import read
from bacs.posteriors import swag_diag


def train_member(inputs, labels, *, seed=0, epochs=20):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(2, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    posterior = swag_diag.init(read(model))  # 1
    for epoch in range(epochs):
        for batch in torch.randperm(len(inputs)).split(32):
            loss = nn.functional.cross_entropy(model(inputs[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch >= epochs // 2:
            posterior = swag_diag.update(posterior, read(model))  # 2
    return bacs.training.at_mean(model, posterior, inputs)  # 3


if __name__ == "__main__":
    inputs = torch.randn(512, 2)
    labels = (inputs[:, 0] > inputs[:, 1]).long()
    ensemble = bacs.Ensemble([train_member(inputs, labels, seed=seed) for seed in range(3)])
    shifted = inputs * 0.5 + 2
    adapted = bacs.adapt(ensemble, shifted)
    print(f"unadapted {bacs.metrics.accuracy(ensemble.predict(shifted), labels):.3f}")
    print(f"adapted   {bacs.metrics.accuracy(adapted.predict(shifted), labels):.3f}")
