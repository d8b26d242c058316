"""A saved ensemble of two tiny members for the images that ship with bacs, and a sweep of seconds."""

from dataclasses import replace

import pytest

import bacs
from bacs.benchmark.recipe import parse
from small import small_member

SWEEP = {
    "data": "fashion-mnist-part-c",
    "corruptions": ["gaussian_noise", "fog"],
    "methods": ["vanilla", "bn", "tent", "bacs"],
    "batch_size": 16,
    "limit": 32,
}


def tiny_ensemble(seeds=(0, 1), classes=10):
    preprocessing = bacs.Preprocessing((0.5,), (0.25,))
    members = [small_member(seed, classes=classes, channels=1) for seed in seeds]
    return bacs.Ensemble([replace(member, preprocessing=preprocessing) for member in members])


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    tiny_ensemble().save(folder)
    return folder


@pytest.fixture
def recipe():
    return parse(SWEEP)
