"""Adaptation under torch's own autocast: less precision in the passes, none lost in weights and probabilities."""

import torch
from torch.nn.utils import parameters_to_vector

import bacs
from small import small_member

IMAGES = torch.randn(40, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def test_steps_under_autocast_stay_near_those_in_float32():
    ensemble = bacs.Ensemble([small_member(seed) for seed in (0, 1)])
    exact = bacs.adapt(ensemble, IMAGES, "bacs", batch_size=20)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = bacs.adapt(ensemble, IMAGES, "bacs", batch_size=20)
    for members in zip(ensemble.members, exact.members, rounded.members, strict=True):
        start, there, here = (parameters_to_vector(member.model.parameters()) for member in members)
        assert here.dtype == torch.float32
        assert 0 < (here - there).norm() < 0.2 * (there - start).norm()
