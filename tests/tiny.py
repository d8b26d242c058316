"""Ensembles for the images that ship with bacs, small enough to sweep many times; what sweeps must have in common."""

from dataclasses import replace

import bacs
from bacs.benchmark import records
from small import small_member

SWEEP = {
    "data": "fashion-mnist-part-c",
    "corruptions": ["gaussian_noise", "fog"],
    "methods": ["vanilla", "bn", "tent", "bacs"],
    "batch_size": 16,
    "limit": 32,
}
ALWAYS_EQUAL = ("members", "single", "ensemble", "class_accuracy", "reliability", "risk_coverage", "images", "settings")


def tiny_ensemble(seeds=(0, 1), classes=10):
    preprocessing = bacs.Preprocessing((0.5,), (0.25,))
    members = [small_member(seed, classes=classes, channels=1) for seed in seeds]
    return bacs.Ensemble([replace(member, preprocessing=preprocessing) for member in members])


def scores_of(out):
    """What must be the same however a sweep came to its end, by cell."""
    return {record["id"]: {key: record[key] for key in ALWAYS_EQUAL} for record in records(out)}
