"""What the parts measure on: ResNet26 members with a SWAG-D posterior, batches of 128 images of 32 x 32 pixels."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

import bacs
from bacs.parameters import read
from bacs.posteriors import swag_diag
from benchmarks.training import network

BATCH = 128
WIDTHS = (16, 64)
# So small that hundreds of steps leave the entropies as they were: gradients that fade into subnormal numbers are slow.
LEARNING_RATE = 1e-5


def images(count: int) -> Tensor:
    """Noise, as the models take it: float NCHW. Speed does not depend on what images show."""
    return torch.randn(count, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def member(width: int, seed: int = 0) -> bacs.Member:
    """An untrained network and the posterior of two iterates around it."""
    model = network(width).eval()
    generator = torch.Generator().manual_seed(seed)
    state = swag_diag.init(read(model))
    for _ in range(2):
        state = swag_diag.update(
            state, {name: p + 1e-3 * torch.randn(p.shape, generator=generator) for name, p in read(model).items()}
        )
    return bacs.Member(model, state)


def ensemble(width: int, members: int) -> bacs.Ensemble:
    return bacs.Ensemble([member(width, seed) for seed in range(members)])


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sharings(width: int) -> list[tuple[int, int]]:
    """(threads, members) of a step: one thread, all threads on one member, all threads with a member each.

    A wide network has no row of one thread, which would take minutes.
    """
    every = [(1, 1)] + [(cores(), 1), (cores(), cores())] * (cores() > 1)
    return every if width < 64 else every[-2:]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """torch on so many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
