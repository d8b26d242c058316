"""Rows of a table: a small network with batch norm meets sensors that were exchanged, and adapts to them.

Run it: python examples/tabular.py
"""

import torch
from torch import nn

import bacs
from bacs.parameters import read
from bacs.posteriors import flat, posterior_weight_for


def readings(count, seed):
    """Rows of 12 sensors in four states of a machine, with their labels."""
    generator = torch.Generator().manual_seed(seed)
    states = 2 * torch.randn(4, 12, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(0, 4, (count,), generator=generator)
    return states[labels] + 3 * torch.randn(count, 12, generator=generator), labels


def train(rows, labels, seed, epochs):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(
            nn.Linear(12, 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Linear(64, 32),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.Linear(32, 4),
        )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    order = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for batch in torch.randperm(len(rows), generator=order).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(rows[batch]), labels[batch]).backward()
            optimizer.step()
    member = bacs.Member(model.eval(), flat.init(read(model)))
    return bacs.pretrained.with_fisher(member, rows[:256], source_size=len(rows))  # a posterior, without labels


def main(count=1000, epochs=10):
    rows, labels = readings(2000, seed=1)
    ensemble = bacs.Ensemble([train(rows, labels, seed, epochs) for seed in range(3)])
    shifted, truth = readings(count, seed=2)
    shifted = shifted * torch.linspace(0.4, 1.8, 12) + torch.linspace(-3, 3, 12)  # every new sensor has its own scale
    weight = posterior_weight_for(ensemble.members[0], pull=0.1, learning_rate=0.01)
    settings = {"bacs": {"learning_rate": 0.01, "posterior_weight": weight}}
    for method in ("vanilla", "bn", "bacs", "auto"):
        adapted = bacs.adapt(ensemble, shifted, method, batch_size=64, **settings.get(method, {}))
        p = adapted.predict(shifted, batch_size=64)
        print(f"{method:<8} accuracy {bacs.metrics.accuracy(p, truth):.3f}  nll {bacs.metrics.nll(p, truth):.3f}")


if __name__ == "__main__":
    main()
