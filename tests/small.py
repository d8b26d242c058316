"""Models and members small enough to adapt many times in a test."""

import torch

import bacs
from bacs.parameters import read


def noisy_iterates(model, count=5, deviation=1e-3, seed=0):
    """Iterates around a model's weights, as SGD would leave them."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        yield {
            name: p + deviation * torch.randn(p.shape, generator=generator, dtype=p.dtype)
            for name, p in read(model).items()
        }


def small_model(seed=0, **arguments):
    """A residual network of a few thousand weights."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return bacs.models.build("resnet26", **({"width": 4, "blocks": 1, "classes": 5} | arguments)).eval()


def small_member(seed=0, module=bacs.posteriors.swag_diag, **arguments):
    model = small_model(seed, **arguments)
    state = module.init(read(model))
    for iterate in noisy_iterates(model, seed=seed):
        state = module.update(state, iterate)
    return bacs.Member(model, state)
